/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The option tables of plugins and operators. Defaults are read by the reader that reads the user's text, so that
 * what passes here cannot fail in a spec.
 */
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/utf8.h"
#include "config/options.h"
#include "config/yaml.h"
#include "host/lint.h"

#define MAX_OPTIONS 1000

static const uint32_t known_flags =
    TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED | TCTL_OPT_SECRET | TCTL_OPT_REPEATED;

/* One option under test and how to speak of it. */
typedef struct subject {
    const tctl_option *option;
    char who[256]; /* "plugin './x.so': option 'lr'" */
    tctl_error *err;
} subject;

bool tctl_lint_is_utf8(const char *text)
{
    uint32_t code;
    size_t size = strlen(text), at = 0;
    for (size_t n; at < size && (n = tctl_utf8_decode(text + at, size - at, &code)) > 0;)
        at += n;
    return at == size;
}

static bool is_option_name(const char *name)
{
    if (!(name[0] >= 'a' && name[0] <= 'z'))
        return false;
    for (const char *c = name; *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_'))
            return false;
    }
    return true;
}

static tctl_status wrong(const subject *s, const char *what)
{
    return tctl_fail(s->err, TCTL_EPLUGIN, "%s %s", s->who, what);
}

static tctl_status check_name(const subject *s)
{
    static const char *const kept[] = {"use", "name", "from", "op", "transforms"};
    if (!is_option_name(s->option->name))
        return wrong(s, "has a bad name: lower-case letters, digits and '_', beginning with a letter");
    for (size_t i = 0; i < TCTL_COUNT_OF(kept); i++) {
        if (strcmp(s->option->name, kept[i]) == 0)
            return wrong(s, "has a name that specs use for something else");
    }
    return TCTL_OK;
}

static tctl_status check_doc(const subject *s)
{
    const char *doc = s->option->doc;
    if (!doc || !*doc)
        return wrong(s, "has no doc: one sentence on what it does");
    if (!tctl_lint_is_utf8(doc) || (s->option->unit && !tctl_lint_is_utf8(s->option->unit)))
        return wrong(s, "has a doc or a unit that is not UTF-8");
    if (doc[strlen(doc) - 1] == '.')
        return wrong(s, "has a doc that ends in a full stop");
    return TCTL_OK;
}

static tctl_status check_flags(const subject *s)
{
    uint32_t flags = s->option->flags;
    if (flags & ~known_flags)
        return tctl_fail(s->err, TCTL_EPLUGIN, "%s has unknown flags 0x%x", s->who, flags & ~known_flags);
    if ((flags & TCTL_OPT_REQUIRED) && s->option->default_yaml)
        return wrong(s, "is required and has a default: it can only be one of them");
    if ((flags & TCTL_OPT_HASHED) && s->option->type != TCTL_PATH)
        return wrong(s, "is TCTL_OPT_HASHED but no path");
    if ((flags & TCTL_OPT_SECRET) && (flags & TCTL_OPT_SEMANTIC))
        return wrong(s, "is a secret that changes results: such a run could never be repeated");
    return TCTL_OK;
}

static tctl_status check_bounds(const subject *s)
{
    const tctl_option *o = s->option;
    bool counts = o->type == TCTL_INT || o->type == TCTL_COUNT || o->type == TCTL_SIZE;
    bool measures = o->type == TCTL_REAL || o->type == TCTL_DURATION;
    if (!counts && (o->int_min || o->int_max))
        return wrong(s, "has integer bounds, which only INT, COUNT and SIZE have");
    if (!measures && (fpclassify(o->real_min) != FP_ZERO || fpclassify(o->real_max) != FP_ZERO))
        return wrong(s, "has real bounds, which only REAL and DURATION have");
    if (counts && o->int_min > o->int_max)
        return tctl_fail(s->err, TCTL_EPLUGIN, "%s has a minimum %lld above its maximum %lld", s->who,
                         (long long)o->int_min, (long long)o->int_max);
    if (measures && !(isfinite(o->real_min) && isfinite(o->real_max)))
        return wrong(s, "has bounds that are not finite");
    if (measures && o->real_min > o->real_max)
        return tctl_fail(s->err, TCTL_EPLUGIN, "%s has a minimum %g above its maximum %g", s->who,
                         o->real_min, o->real_max);
    return TCTL_OK;
}

static tctl_status check_choices(const subject *s)
{
    const tctl_option *o = s->option;
    bool wanted = o->type == TCTL_ENUM || o->type == TCTL_COUNT || o->type == TCTL_PLUGIN;
    uint32_t n = 0;
    if (!wanted)
        return o->choices ? wrong(s, "has choices, which only ENUM, COUNT and PLUGIN have") : TCTL_OK;
    for (; o->choices && o->choices[n]; n++) {
        if (!*o->choices[n])
            return wrong(s, "has an empty choice");
        for (uint32_t i = 0; i < n; i++) {
            if (strcmp(o->choices[i], o->choices[n]) == 0)
                return tctl_fail(s->err, TCTL_EPLUGIN, "%s has the choice '%s' twice", s->who, o->choices[n]);
        }
    }
    if (n == 0)
        return wrong(s, o->type == TCTL_ENUM    ? "has no choices: an ENUM needs its words"
                        : o->type == TCTL_COUNT ? "has no choices: a COUNT needs its units"
                                                : "has no choices: a PLUGIN needs the extension it wants");
    if (o->type == TCTL_PLUGIN && n != 1)
        return wrong(s, "names more than one extension");
    return TCTL_OK;
}

/* Reads "NAME: DEFAULT" as a spec with this one option would be read. */
static tctl_status read_default(const subject *s, tctl_arena *arena, tctl_diags *diags)
{
    tctl_option option = *s->option;
    option.default_yaml = NULL; /* the text is what is under test, not what happens without it */
    char *text = tctl_arena_format(arena, "%s: %s\n", option.name, s->option->default_yaml);
    tctl_yaml_node *root = NULL;
    tctl_config *config = NULL;
    if (!text)
        return tctl_fail_memory(s->err, strlen(s->option->default_yaml));
    tctl_status status = tctl_yaml_parse(arena, "default", text, strlen(text), &root, diags);
    const tctl_reader_context context = {.arena = arena, .diags = diags, .folder = "/", .finder = NULL};
    if (!status && root)
        status =
            tctl_config_read(&context, root, &option, 1, sizeof option, NULL, s->who, "default", &config);
    if (diags->n)
        return tctl_fail(s->err, TCTL_EPLUGIN, "%s has a default that is not valid: %s", s->who,
                         diags->errors[0].message);
    return status ? tctl_fail(s->err, status, "%s has a default that cannot be read", s->who) : TCTL_OK;
}

static tctl_status check_default(const subject *s)
{
    /* A PLUGIN's default names another plugin: whether that exists is known only when it is used. */
    if (!s->option->default_yaml || s->option->type == TCTL_PLUGIN)
        return TCTL_OK;
    tctl_arena *arena = tctl_arena_create();
    tctl_diags diags = {0};
    tctl_status status = arena ? read_default(s, arena, &diags) : tctl_fail_memory(s->err, 0);
    tctl_diags_release(&diags);
    tctl_arena_destroy(arena);
    return status;
}

static tctl_status check_option(const subject *s)
{
    if (s->option->type < TCTL_BOOL || s->option->type > TCTL_SIZE)
        return tctl_fail(s->err, TCTL_EPLUGIN, "%s has the unknown type %d", s->who, s->option->type);
    static tctl_status (*const checks[])(const subject *) = {check_name,   check_doc,     check_flags,
                                                             check_bounds, check_choices, check_default};
    tctl_status status = TCTL_OK;
    for (size_t i = 0; !status && i < TCTL_COUNT_OF(checks); i++)
        status = checks[i](s);
    return status;
}

static const tctl_option *option_at(const tctl_option *options, uint32_t i, uint32_t option_size)
{
    return (const tctl_option *)(const void *)((const char *)options + (size_t)i * option_size);
}

tctl_status tctl_options_lint(const tctl_option *options, uint32_t n, uint32_t option_size, const char *who,
                              tctl_error *err)
{
    if (n > MAX_OPTIONS)
        return tctl_fail(err, TCTL_EPLUGIN, "%s has %u options, more than %d", who, n, MAX_OPTIONS);
    if (n && !options)
        return tctl_fail(err, TCTL_EPLUGIN, "%s says that it has %u options, but has no table of them", who,
                         n);
    for (uint32_t i = 0; i < n; i++) {
        subject s = {.option = option_at(options, i, option_size), .err = err};
        if (!s.option->name || !*s.option->name)
            return tctl_fail(err, TCTL_EPLUGIN, "%s: option number %u has no name", who, i);
        snprintf(s.who, sizeof s.who, "%.128s: option '%.64s'", who, s.option->name);
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(option_at(options, j, option_size)->name, s.option->name) == 0)
                return wrong(&s, "is declared twice");
        }
        tctl_status status = check_option(&s);
        if (status)
            return status;
    }
    return TCTL_OK;
}
