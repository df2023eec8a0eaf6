/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl plugins: which there are, what one does, whether it keeps what it claims.
 *
 * Every plugin is looked at in a process of its own: nobody asked for all of them, and one that crashes is one line.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "host/conform.h"
#include "launcher/command.h"
#include "launcher/inspect.h"
#include "launcher/plugin_text.h"

/* What all three forms need. */
typedef struct context {
    const tctl_command_line *line;
    tctl_plugins *plugins;
    char folder[4096]; /* working directory: where relative paths start */
} context;

/* ---- the table --------------------------------------------------------------------------------------- */

static void print_row(const context *c, const json_t *plugin, int width)
{
    tctl_buf provides = TCTL_BUF_INIT;
    tctl_plugin_provides(plugin, &provides);
    const char *text = tctl_buf_text(&provides);
    (void)c;
    printf("%-*s  %-8s  %-16s  %-6s  %s\n", width, json_string_value(json_object_get(plugin, "name")),
           json_string_value(json_object_get(plugin, "version")), text ? text : "",
           json_string_value(json_object_get(plugin, "bits")),
           json_string_value(json_object_get(plugin, "summary")));
    tctl_buf_release(&provides);
}

static int longest(const char *const *names, uint32_t n)
{
    size_t width = 4;
    for (uint32_t i = 0; i < n; i++)
        width = strlen(names[i]) > width ? strlen(names[i]) : width;
    return (int)width;
}

/* One row, or one object of the list; true if the plugin could be looked at. */
static bool list_one(const context *c, const char *name, int width, json_t *list)
{
    tctl_error err;
    json_t *plugin = NULL;
    tctl_error_clear(&err);
    tctl_status status = tctl_inspect(c->plugins, name, c->folder, &plugin, &err);
    if (status && list)
        (void)json_array_append_new(list, json_pack("{s:s, s:s}", "name", name, "error", err.message));
    else if (status)
        printf("%-*s  %-8s  error: %s\n", width, name, "-", err.message);
    else if (list)
        (void)json_array_append(list, plugin);
    else
        print_row(c, plugin, width);
    json_decref(plugin);
    return status == TCTL_OK;
}

static int list_plugins(const context *c)
{
    const char *const *names = NULL;
    uint32_t n = 0;
    tctl_error err;
    tctl_error_clear(&err);
    if (tctl_plugins_names(c->plugins, c->line->arena, &names, &n, &err))
        return tctl_cli_fail(c->line, &err);
    json_t *list = tctl_cli_has(c->line, "--json") ? json_array() : NULL;
    int width = longest(names, n);
    if (!list && n)
        printf("%-*s  %-8s  %-16s  %-6s  %s\n", width, "NAME", "VERSION", "PROVIDES", "BITS", "SUMMARY");
    for (uint32_t i = 0; i < n; i++)
        (void)list_one(c, names[i], width, list);
    if (list)
        return tctl_cli_print_json(c->line, json_pack("{s:o}", "plugins", list), TCTL_EXIT_OK);
    if (n == 0)
        tctl_cli_warn(c->line, "no plugins were found; TRAINCTL_PLUGIN_PATH may name more folders");
    return TCTL_EXIT_OK;
}

/* ---- one plugin -------------------------------------------------------------------------------------- */

static int show_plugin(const context *c, const char *name)
{
    tctl_error err;
    json_t *plugin = NULL;
    tctl_buf text = TCTL_BUF_INIT;
    tctl_error_clear(&err);
    if (tctl_inspect(c->plugins, name, c->folder, &plugin, &err))
        return tctl_cli_fail(c->line, &err);
    if (tctl_cli_has(c->line, "--json"))
        return tctl_cli_print_json(c->line, plugin, TCTL_EXIT_OK);
    if (tctl_cli_has(c->line, "--yaml"))
        tctl_plugin_yaml(plugin, &text);
    else
        tctl_plugin_text(plugin, &text);
    int code = TCTL_EXIT_OK;
    if (tctl_buf_text(&text)) {
        fputs(tctl_buf_text(&text), stdout);
    } else {
        tctl_fail_memory(&err, text.size);
        code = tctl_cli_fail(c->line, &err);
    }
    tctl_buf_release(&text);
    json_decref(plugin);
    return code;
}

/* ---- the conformance suite --------------------------------------------------------------------------- */

static const char *const words[] = {"ok", "FAIL", "skip"};

static void print_check(void *arg, const char *check, int result, const char *detail)
{
    if (result == TCTL_CHECK_SKIPPED && strcmp(check, TCTL_CHECK_WORK) == 0)
        *(bool *)arg = false;
    printf("%-4s  %s%s%s\n", words[result], check, *detail ? ": " : "", detail);
    (void)fflush(stdout);
}

static void keep_check(void *arg, const char *check, int result, const char *detail)
{
    static const char *const results[] = {"ok", "failed", "skipped"};
    json_t *list = arg;
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s, s:s}", "check", check, "result", results[result], "detail", detail));
}

static int test_plugin(const context *c, const char *name)
{
    json_t *checks = tctl_cli_has(c->line, "--json") ? json_array() : NULL;
    json_t *plugin = NULL;
    uint32_t failed = 0;
    bool worked = true; /* the suite could put it to work */
    tctl_error err;
    tctl_error_clear(&err);
    /* First in a process of its own, so that one that crashes when it is loaded is an error like others. */
    tctl_status status = tctl_inspect(c->plugins, name, c->folder, &plugin, &err);
    json_decref(plugin);
    const tctl_conform_request request = {.plugins = c->plugins,
                                          .use = name,
                                          .folder = c->folder,
                                          .set = tctl_cli_values(c->line, "--set"),
                                          .report = checks ? keep_check : print_check,
                                          .report_arg = checks ? (void *)checks : &worked};
    if (!status)
        status = tctl_conform_run(&request, &failed, &err);
    int code = failed ? TCTL_EXIT_PLUGIN : TCTL_EXIT_OK;
    if (status) {
        json_decref(checks);
        return tctl_cli_fail(c->line, &err);
    }
    if (checks)
        return tctl_cli_print_json(
            c->line, json_pack("{s:s, s:i, s:o}", "plugin", name, "failed", (int)failed, "checks", checks),
            code);
    if (failed)
        printf("plugin '%s' failed %u check%s\n", name, failed, failed == 1 ? "" : "s");
    else if (worked)
        printf("plugin '%s' keeps what it claims\n", name);
    else
        printf("plugin '%s' can be made and destroyed; whether it keeps what it claims was not tested\n",
               name);
    return code;
}

/* ---- the command ------------------------------------------------------------------------------------- */

static int dispatch(const context *c)
{
    const tctl_command_line *line = c->line;
    bool test = line->n_args > 0 && strcmp(line->args[0], "test") == 0;
    bool settings = tctl_cli_values(line, "--set")[0] != NULL;
    if (!test && line->n_args > 1)
        return tctl_cli_usage(line, "one plugin at a time, got '%s' and '%s'", line->args[0], line->args[1]);
    if (!test && settings)
        return tctl_cli_usage(line, "'--set' goes with 'plugins test NAME'");
    if (tctl_cli_has(line, "--yaml") && (test || line->n_args == 0))
        return tctl_cli_usage(line, "'--yaml' goes with 'plugins NAME'");
    if (test && line->n_args != 2)
        return tctl_cli_usage(line, "'test' needs the name of a plugin, or its path");
    if (test)
        return test_plugin(c, line->args[1]);
    return line->n_args == 1 ? show_plugin(c, line->args[0]) : list_plugins(c);
}

static int run(tctl_command_line *line)
{
    context c = {.line = line};
    tctl_error err;
    tctl_error_clear(&err);
    if (!getcwd(c.folder, sizeof c.folder))
        c.folder[0] = '\0';
    if (tctl_inspect_plugins(&c.plugins, &err))
        return tctl_cli_fail(line, &err);
    int code = dispatch(&c);
    tctl_plugins_destroy(c.plugins);
    return code;
}

static const char *const usage[] = {"[--json]", "NAME|PATH [--json|--yaml]",
                                    "test NAME|PATH [--set OPTION=VALUE]...", NULL};
static const tctl_cli_option options[] = {
    {.name = "--json", .doc = "print JSON to standard output"},
    {.name = "--yaml", .doc = "print the beginning of a spec that uses the plugin"},
    {.name = "--set", .value = "OPTION=VALUE", .doc = "an option of the plugin under test", .repeated = true},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_plugins;
const tctl_command tctl_cmd_plugins = {
    .name = "plugins",
    .summary = "Show what plugins do, and test their claims",
    .usage = usage,
    .options = options,
    .details = "Without a name, lists the plugins in TRAINCTL_PLUGIN_PATH and beside the program. With one, "
               "shows what it\n"
               "provides, its options, its effect on bits, its digest, and which functions it imports that a "
               "plugin should\n"
               "not need. 'test' runs the conformance suite: the same work again, in reverse, with 1, 2 and "
               "8 threads, with\n"
               "other values of every option that claims to change nothing, saved and loaded in the middle, "
               "with each host\n"
               "allocation failing once. Equal bits or a clean error; exit code 4 if a check fails.",
    .examples = "  trainctl plugins\n"
                "  trainctl plugins idx --yaml\n"
                "  trainctl plugins test ./brightness.so --set amount=0.2",
    .rank = 100,
    .argument = TCTL_ARG_PLUGIN,
    .min_args = 0,
    .max_args = 2,
    .run = run,
};
