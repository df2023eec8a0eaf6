/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: parsing by the option table, and saying what is wrong.
 */
#include "launcher/command.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "config/options.h"

#define MAX_SUGGESTIONS 64

const tctl_command *tctl_command_find(const char *name)
{
    for (size_t i = 0; tctl_commands[i] != NULL; i++) {
        if (strcmp(tctl_commands[i]->name, name) == 0)
            return tctl_commands[i];
    }
    return NULL;
}

static const tctl_cli_option *find_option(const tctl_command *command, const char *name, size_t length)
{
    for (const tctl_cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        if (strlen(o->name) == length && memcmp(o->name, name, length) == 0)
            return o;
    }
    return NULL;
}

static const tctl_cli_option *find_letter(const tctl_command *command, char letter)
{
    for (const tctl_cli_option *o = command->options; o != NULL && o->name != NULL; o++) {
        if (o->letter == letter && letter != '\0')
            return o;
    }
    return NULL;
}

static void unknown_option(const tctl_command_line *line, const char *word, size_t length)
{
    const char *names[MAX_SUGGESTIONS];
    size_t n = 0;
    for (const tctl_cli_option *o = line->command->options;
         o != NULL && o->name != NULL && n < MAX_SUGGESTIONS; o++)
        names[n++] = o->name;
    char *name = tctl_arena_copy(line->arena, word, length);
    const char *near = name == NULL ? NULL : tctl_suggest(name, names, n);
    if (near != NULL)
        tctl_cli_usage(line, "unknown option '%.*s', did you mean '%s'?", (int)length, word, near);
    else
        tctl_cli_usage(line, "unknown option '%.*s'", (int)length, word);
}

static bool give(tctl_command_line *line, const tctl_cli_option *option, const char *value)
{
    for (uint32_t i = 0; i < line->n_given && !option->repeated; i++) {
        if (line->given[i].option == option) {
            tctl_cli_usage(line, "'%s' was given twice", option->name);
            return false;
        }
    }
    line->given[line->n_given].option = option;
    line->given[line->n_given++].value = value;
    return true;
}

/* Reads the option at argv[*i] and moves *i past its value. */
static bool read_option(tctl_command_line *line, int argc, char *const *argv, int *i)
{
    const char *word = argv[*i], *value = NULL;
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals != NULL ? (size_t)(equals - word) : strlen(word);
    const tctl_cli_option *option =
        is_long ? find_option(line->command, word, length) : find_letter(line->command, word[1]);
    if (option == NULL) {
        unknown_option(line, word, length);
        return false;
    }
    if (equals != NULL)
        value = equals + 1;
    else if (!is_long && word[2] != '\0')
        value = word + 2;
    if (option->value == NULL && value != NULL) {
        tctl_cli_usage(line, "'%s' takes no value", option->name);
        return false;
    }
    if (option->value != NULL && value == NULL) {
        if (*i + 1 >= argc) {
            tctl_cli_usage(line, "'%s' needs a value: %s %s", option->name, option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return give(line, option, value);
}

static bool check_count(const tctl_command_line *line)
{
    const tctl_command *c = line->command;
    bool any = c->max_args < c->min_args;
    if (line->n_args < c->min_args) {
        tctl_cli_usage(line, "an argument is missing: trainctl %s %s", c->name, c->usage[0]);
        return false;
    }
    if (!any && line->n_args > c->max_args) {
        tctl_cli_usage(line, "unexpected argument '%s'", line->args[c->max_args]);
        return false;
    }
    return true;
}

bool tctl_cli_parse(tctl_command_line *line, int argc, char *const *argv)
{
    size_t room = argc > 0 ? (size_t)argc : 1;
    line->args = tctl_arena_take_array(line->arena, room + 1, sizeof *line->args);
    line->given = tctl_arena_take_array(line->arena, room + 1, sizeof *line->given);
    if (line->args == NULL || line->given == NULL) {
        fputs("trainctl: out of memory\n", stderr);
        return false;
    }
    bool only_arguments = false;
    for (int i = 2; i < argc; i++) {
        const char *word = argv[i];
        if (!only_arguments && strcmp(word, "--") == 0)
            only_arguments = true;
        else if (only_arguments || word[0] != '-' || word[1] == '\0')
            line->args[line->n_args++] = word;
        else if (!read_option(line, argc, argv, &i))
            return false;
    }
    return check_count(line);
}

static const tctl_cli_option *declared(const tctl_command_line *line, const char *option)
{
    const tctl_cli_option *o = find_option(line->command, option, strlen(option));
    TCTL_BUG_IF(o == NULL);
    return o;
}

bool tctl_cli_has(const tctl_command_line *line, const char *option)
{
    const tctl_cli_option *o = declared(line, option);
    for (uint32_t i = 0; i < line->n_given; i++) {
        if (line->given[i].option == o)
            return true;
    }
    return false;
}

const char *tctl_cli_value(const tctl_command_line *line, const char *option)
{
    const tctl_cli_option *o = declared(line, option);
    const char *value = NULL;
    for (uint32_t i = 0; i < line->n_given; i++) {
        if (line->given[i].option == o)
            value = line->given[i].value;
    }
    return value;
}

const char *const *tctl_cli_values(const tctl_command_line *line, const char *option)
{
    static const char *const none[] = {NULL};
    const tctl_cli_option *o = declared(line, option);
    const char **values = tctl_arena_take_array(line->arena, (size_t)line->n_given + 1, sizeof *values);
    if (values == NULL)
        return none;
    uint32_t n = 0;
    for (uint32_t i = 0; i < line->n_given; i++) {
        if (line->given[i].option == o)
            values[n++] = line->given[i].value;
    }
    return values;
}

bool tctl_cli_number(const tctl_command_line *line, const char *option, int64_t min, int64_t max,
                     int64_t *ret)
{
    const char *text = tctl_cli_value(line, option);
    int64_t v = 0;
    if (text == NULL)
        return true;
    if (!tctl_parse_int(text, strlen(text), &v) || v < min || v > max) {
        tctl_cli_usage(line, "'%s' must be an integer from %" PRId64 " to %" PRId64 ", got '%s'", option, min,
                       max, text);
        return false;
    }
    *ret = v;
    return true;
}

/* ---- saying what is wrong ---------------------------------------------------------------------------- */

int tctl_cli_exit_code(tctl_status code)
{
    switch (code) {
    case TCTL_OK:
        return TCTL_EXIT_OK;
    case TCTL_ESPEC:
        return TCTL_EXIT_SPEC;
    case TCTL_EPLUGIN:
        return TCTL_EXIT_PLUGIN;
    case TCTL_EDETERMINISM:
        return TCTL_EXIT_DETERMINISM;
    case TCTL_ECANCELED:
        return TCTL_EXIT_SIGNAL + 2;
    default:
        return TCTL_EXIT_FAILED;
    }
}

int tctl_cli_fail(const tctl_command_line *line, const tctl_error *err)
{
    const char *bold = line->colour ? "\033[1;31m" : "", *plain = line->colour ? "\033[0m" : "";
    if (err->loc.file != NULL && err->loc.line > 0)
        fprintf(stderr, "%s:%u:%u: ", err->loc.file, err->loc.line, err->loc.col);
    else
        fputs("trainctl: ", stderr);
    fprintf(stderr, "%serror:%s %s\n", bold, plain,
            err->message[0] != '\0' ? err->message : tctl_status_text(err->code));
    for (uint32_t i = 0; i < err->n_notes; i++)
        fprintf(stderr, "  note: %s\n", err->notes[i]);
    if (err->hint[0] != '\0')
        fprintf(stderr, "  hint: %s\n", err->hint);
    return tctl_cli_exit_code(err->code);
}

int tctl_cli_usage(const tctl_command_line *line, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "trainctl %s: ", line->command->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry 'trainctl %s --help'.\n", line->command->name);
    return TCTL_EXIT_USAGE;
}

void tctl_cli_warn(const tctl_command_line *line, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "trainctl: %swarning:%s ", line->colour ? "\033[1;33m" : "",
            line->colour ? "\033[0m" : "");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

int tctl_cli_print_json(const tctl_command_line *line, json_t *value, int exit_code)
{
    tctl_error err = {0};
    tctl_buf text = TCTL_BUF_INIT;
    int ret = exit_code;
    if (value == NULL)
        tctl_fail_memory(&err, 0);
    else if (tctl_json_canonical(value, &text, &err) == TCTL_OK && text.broken)
        tctl_fail_memory(&err, text.size);
    if (err.code != TCTL_OK)
        ret = tctl_cli_fail(line, &err);
    else if (puts(tctl_buf_text(&text)) == EOF || fflush(stdout) != 0)
        ret = TCTL_EXIT_FAILED;
    tctl_buf_release(&text);
    json_decref(value);
    return ret;
}
