/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl check`: reads a spec as `run` would and says all that is wrong with it, or that nothing is.
 *
 * Reads tables of plugins and runs no code of theirs beyond what loading a library runs; looks at no data file.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/command.h"
#include "launcher/experiment.h"

static int print_reference(const tctl_command_line *line)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_error err = {0};
    int code = TCTL_EXIT_OK;
    tctl_spec_reference(&text);
    if (!tctl_buf_text(&text)) {
        tctl_fail_memory(&err, text.size);
        code = tctl_cli_fail(line, &err);
    } else if (fputs(tctl_buf_text(&text), stdout) < 0 || fflush(stdout) != 0) {
        tctl_fail(&err, TCTL_EIO, "cannot write to standard output");
        code = tctl_cli_fail(line, &err);
    }
    tctl_buf_release(&text);
    return code;
}

/* Loads every plugin of this installation; one that cannot be loaded is left out with a warning. */
static tctl_status load_all(const tctl_command_line *line, tctl_plugins *plugins, const tctl_plugin ***ret,
                            uint32_t *ret_n, tctl_error *err)
{
    const char *const *names = NULL;
    uint32_t n = 0;
    tctl_status status = tctl_plugins_names(plugins, line->arena, &names, &n, err);
    if (status)
        return status;
    *ret = tctl_arena_take_array(line->arena, n ? n : 1, sizeof **ret);
    if (!*ret)
        return tctl_fail_memory(err, n * sizeof **ret);
    for (uint32_t i = 0; i < n; i++) {
        const tctl_loaded *loaded = NULL;
        tctl_error why = {0};
        if (tctl_plugins_load(plugins, names[i], ".", &loaded, &why) == TCTL_OK)
            (*ret)[(*ret_n)++] = loaded->plugin;
        else
            tctl_cli_warn(line, "%s", why.message);
    }
    return TCTL_OK;
}

static int print_schema(const tctl_command_line *line)
{
    tctl_error err = {0};
    const char *program = NULL;
    tctl_plugins *plugins = NULL;
    const tctl_plugin **all = NULL;
    uint32_t n = 0;
    tctl_status status = tctl_program_path(line->arena, &program, &err);
    if (!status)
        status = tctl_plugins_create(program, &plugins, &err);
    if (!status)
        status = load_all(line, plugins, &all, &n, &err);
    int code = status ? tctl_cli_fail(line, &err)
                      : tctl_cli_print_json(line, tctl_spec_schema(all, n), TCTL_EXIT_OK);
    tctl_plugins_destroy(plugins);
    return code;
}

static int report(const tctl_command_line *line, const tctl_experiment *experiment, bool json)
{
    const tctl_spec *spec = experiment->spec;
    char digest[TCTL_SHA256_HEX];
    tctl_sha256_hex(&experiment->recipe_digest, digest);
    if (json)
        return tctl_cli_print_json(line,
                                   json_pack("{s:s, s:s, s:s, s:s, s:O, s:[], s:i}", "state", "ok", "path",
                                             spec->path, "contract", tctl_contract_name(spec->contract),
                                             "recipe_digest", digest, "recipe", spec->recipe, "errors",
                                             "dropped", 0),
                                   TCTL_EXIT_OK);
    printf("%s: ok, recipe %.12s, contract %s\n", spec->path, digest, tctl_contract_name(spec->contract));
    return TCTL_EXIT_OK;
}

static int run(tctl_command_line *line)
{
    if (tctl_cli_has(line, "--reference"))
        return print_reference(line);
    if (tctl_cli_has(line, "--schema"))
        return print_schema(line);
    if (line->n_args == 0)
        return tctl_cli_usage(line, "an argument is missing: trainctl check SPEC");
    bool json = tctl_cli_has(line, "--json");
    const tctl_spec_request request = {.path = line->args[0],
                                       .set = tctl_cli_values(line, "--set"),
                                       .without = tctl_cli_values(line, "--without"),
                                       .seed = tctl_cli_value(line, "--seed")};
    tctl_experiment experiment;
    int code = tctl_experiment_load(line, &request, json, &experiment);
    if (code == TCTL_EXIT_OK)
        code = report(line, &experiment, json);
    tctl_experiment_release(&experiment);
    return code;
}

static const char *const usage[] = {"[--set KEY=VALUE]... [--without STAGE]... [--seed N] [--json] SPEC",
                                    "--schema | --reference", NULL};

static const tctl_cli_option options[] = {
    {"--set", "KEY=VALUE", "change a value of the spec, as in train.epochs=5", true, 0},
    {"--without", "STAGE", "leave a stage out", true, 0},
    {"--seed", "N", "use another seed", false, 0},
    {"--json", NULL, "print the mistakes, or the recipe, as JSON", false, 0},
    {"--schema", NULL, "print a JSON Schema of specs with the installed plugins", false, 0},
    {"--reference", NULL, "print the tables of all keys of a spec as Markdown", false, 0},
    {NULL, NULL, NULL, false, 0},
};

extern const tctl_command tctl_cmd_check;
const tctl_command tctl_cmd_check = {
    .name = "check",
    .summary = "Show every mistake in a spec",
    .usage = usage,
    .options = options,
    .details =
        "Reads the spec as 'run' would, with the options of the plugins that it uses, and shows all mistakes "
        "at "
        "once with file, line and column (docs/spec.md). Looks at no data and trains nothing. Exit code 0 if "
        "the spec is good, 3 if it is not, 4 if a plugin cannot be loaded.",
    .examples = "  trainctl check exp.yaml\n"
                "  trainctl check exp.yaml --set train.epochs=5 --without amp\n"
                "  trainctl check --schema > spec.schema.json\n",
    .rank = 70,
    .argument = TCTL_ARG_SPEC,
    .min_args = 0,
    .max_args = 1,
    .run = run,
};
