/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl help`: the same text as --help; with --json the tables, for tests and tools.
 */
#include <stdio.h>

#include "launcher/command.h"

static json_t *option_json(const tctl_cli_option *o)
{
    char letter[] = {'-', o->letter, '\0'};
    return json_pack("{s:s, s:s?, s:s, s:b, s:s?}", "name", o->name, "value", o->value, "doc", o->doc,
                     "repeated", (int)o->repeated, "letter", o->letter == '\0' ? NULL : letter);
}

static json_t *command_json(const tctl_command *command)
{
    json_t *options = json_array(), *usage = json_array();
    for (const tctl_cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        json_array_append_new(options, option_json(o));
    for (const char *const *line = command->usage; *line != NULL; line++)
        json_array_append_new(usage, json_string(*line));
    return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?, s:i}", "name", command->name, "summary",
                     command->summary, "options", options, "usage", usage, "details", command->details,
                     "examples", command->examples, "rank", command->rank);
}

static int run(tctl_command_line *line)
{
    if (tctl_cli_has(line, "--json")) {
        json_t *all = json_array();
        for (size_t i = 0; tctl_commands[i] != NULL; i++)
            json_array_append_new(all, command_json(tctl_commands[i]));
        return tctl_cli_print_json(line, all, TCTL_EXIT_OK);
    }
    if (line->n_args == 0) {
        tctl_help_overview();
        return TCTL_EXIT_OK;
    }
    const tctl_command *command = tctl_command_find(line->args[0]);
    if (command == NULL)
        return tctl_cli_usage(line, "there is no command '%s'", line->args[0]);
    tctl_help_command(command);
    return TCTL_EXIT_OK;
}

static const char *const usage_lines[] = {"[COMMAND]", NULL};
static const tctl_cli_option options[] = {
    {.name = "--json", .doc = "print all commands and their options as JSON"},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_help;
const tctl_command tctl_cmd_help = {
    .name = "help",
    .summary = "Explain trainctl, or one command",
    .usage = usage_lines,
    .options = options,
    .examples = "  trainctl help run",
    .rank = 900,
    .argument = TCTL_ARG_COMMAND,
    .max_args = 1,
    .run = run,
};
