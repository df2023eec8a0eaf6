/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl show`: a run's manifest, for people or as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "launcher/runs.h"
#include "manifest/manifest.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "-" : text;
}

static void show_list(const json_t *list, const char *title, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
        printf("%-10s%.12s  %s\n", i == 0 ? title : "", text_of(item, "sha256"), text_of(item, name));
}

static void show_code(const json_t *code)
{
    const char *commit = json_string_value(json_object_get(code, "commit"));
    if (commit == NULL)
        commit = json_string_value(json_object_get(json_object_get(code, "git"), "commit"));
    if (commit != NULL)
        printf("commit    %s\n", commit);
    printf("code      %s\n", text_of(code, "digest"));
}

/* The planned memory is the native trainer's; the process has its code, its data and what libraries take besides. */
static void show_memory(const json_t *m)
{
    const json_t *timings = json_object_get(json_object_get(m, "metrics"), "timings");
    const json_t *activations = json_object_get(timings, "activation_bytes"),
                 *parameters = json_object_get(timings, "parameter_bytes");
    uint64_t peak = 0;
    const char *text = text_of(json_object_get(m, "run"), "peak_bytes");
    if (!tctl_parse_uint(text, strlen(text), &peak))
        return;
    printf("memory    %.1f MiB at most", (double)peak / 0x1p20);
    if (json_is_number(activations) && json_is_number(parameters))
        printf("; planned: activations %.1f MiB, parameters %.1f MiB",
               json_number_value(activations) / 0x1p20, json_number_value(parameters) / 0x1p20);
    printf("\n");
}

static void show_manifest(tctl_arena *arena, const json_t *m)
{
    const json_t *metrics = json_object_get(m, "metrics"), *trace = json_object_get(m, "trace");
    const char *metric = tctl_runs_metric(arena, metrics);
    printf("contract  %s\nrecipe    %s\nresult    %s\nexperim.  %s\n", text_of(m, "contract"),
           text_of(m, "recipe_digest"), text_of(m, "result_digest"), text_of(m, "experiment_digest"));
    if (metric[0] != '\0')
        printf("last      %s\n", metric);
    printf("seconds   %.1f\n", json_number_value(json_object_get(json_object_get(m, "run"), "seconds")));
    show_memory(m);
    printf("spec      %s\n", text_of(json_object_get(m, "request"), "spec"));
    if (json_is_string(json_object_get(m, "command")))
        printf("command   %s\n", text_of(m, "command"));
    show_code(json_object_get(m, "code"));
    show_list(json_object_get(m, "data"), "data", "path");
    show_list(json_object_get(m, "plugins"), "plugins", "name");
    show_list(json_object_get(m, "outputs"), "outputs", "path");
    if (json_is_object(trace))
        printf("trace     %.12s  %s steps\n", text_of(trace, "sha256"), text_of(trace, "steps"));
}

static int show(const tctl_command_line *line, const tctl_run *run)
{
    tctl_error err = {0};
    json_t *manifest = NULL;
    bool json = tctl_cli_has(line, "--json"), sealed = strcmp(tctl_run_state(run), TCTL_STATE_DONE) == 0;
    if (sealed && tctl_manifest_load(run->path, &manifest, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    if (json)
        return tctl_cli_print_json(line, sealed ? manifest : json_incref(run->state), TCTL_EXIT_OK);
    const char *reason = json_string_value(json_object_get(run->state, "reason"));
    printf("run       %s\nstate     %s%s%s\nstarted   %s\npath      %s\n", run->id, tctl_run_state(run),
           reason == NULL ? "" : ": ", reason == NULL ? "" : reason,
           tctl_runs_when(line->arena, tctl_run_started(run)), run->path);
    if (sealed)
        show_manifest(line->arena, manifest);
    json_decref(manifest);
    return TCTL_EXIT_OK;
}

static int run(tctl_command_line *line)
{
    if (tctl_cli_has(line, "--schema"))
        return tctl_cli_print_json(line, tctl_manifest_schema(), TCTL_EXIT_OK);
    if (line->n_args == 0)
        return tctl_cli_usage(line, "an argument is missing: trainctl show RUN");
    tctl_run found = TCTL_RUN_NONE;
    int exit_code = tctl_runs_find(line, line->args[0], &found);
    if (exit_code == TCTL_EXIT_OK)
        exit_code = show(line, &found);
    tctl_run_release(&found);
    return exit_code;
}

static const char *const usage[] = {"RUN [--json]", "--schema", NULL};
static const tctl_cli_option options[] = {
    {.name = "--json", .doc = "print the manifest; of a run that was not sealed, its state"},
    {.name = "--schema", .doc = "print the JSON Schema of manifests"},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_show;
const tctl_command tctl_cmd_show = {
    .name = "show",
    .summary = "Show what a run was and what it gave",
    .usage = usage,
    .options = options,
    .examples = "  trainctl show last\n  trainctl show last --json | jq .environment",
    .rank = 50,
    .argument = TCTL_ARG_RUN,
    .max_args = 1,
    .run = run,
};
