/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl ls`: the runs of the store, oldest first.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/runs.h"
#include "manifest/path_json.h"

static json_t *run_json(const tctl_run *run)
{
    json_t *one = json_pack("{s:s, s:o, s:s}", "id", run->id, "path", tctl_text_to_json(run->path), "state",
                            tctl_run_state(run));
    static const char *const members[] = {"started",  "finished", "reason",        "exit_code",
                                          "contract", "metrics",  "recipe_digest", "result_digest"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        json_t *value = json_object_get(run->state, members[i]);
        json_object_set_new(one, members[i], value == NULL ? json_null() : json_incref(value));
    }
    return one;
}

static void print_run(const tctl_command_line *line, const tctl_run *run, int id_width)
{
    const char *reason = json_string_value(json_object_get(run->state, "reason"));
    const char *last = strcmp(tctl_run_state(run), TCTL_STATE_DONE) == 0
                           ? tctl_runs_metric(line->arena, json_object_get(run->state, "metrics"))
                           : (reason == NULL ? "" : reason);
    printf("%-*s  %-11s  %s  %-12s  %-12s  %s\n", id_width, run->id, tctl_run_state(run),
           tctl_runs_when(line->arena, tctl_run_started(run)),
           tctl_runs_short(line->arena, json_object_get(run->state, "recipe_digest")),
           tctl_runs_short(line->arena, json_object_get(run->state, "result_digest")), last);
}

static int run(tctl_command_line *line)
{
    tctl_error err = {0};
    tctl_run *runs = NULL;
    uint32_t n = 0;
    const char *store = NULL;
    int exit_code = tctl_runs_store(line, &store);
    if (exit_code != TCTL_EXIT_OK)
        return exit_code;
    if (tctl_run_list(line->arena, store, &runs, &n, &err) != TCTL_OK)
        return tctl_cli_fail(line, &err);
    json_t *list = json_array();
    int width = 2;
    for (uint32_t i = 0; i < n; i++)
        width = (int)strlen(runs[i].id) > width ? (int)strlen(runs[i].id) : width;
    bool json = tctl_cli_has(line, "--json");
    if (!json && n > 0)
        printf("%-*s  %-11s  %-20s  %-12s  %-12s  %s\n", width, "run", "state", "started", "recipe", "result",
               "last");
    for (uint32_t i = 0; i < n; i++) {
        if (json)
            json_array_append_new(list, run_json(&runs[i]));
        else
            print_run(line, &runs[i], width);
        tctl_run_release(&runs[i]);
    }
    if (json)
        return tctl_cli_print_json(line, list, TCTL_EXIT_OK);
    json_decref(list);
    if (n == 0)
        fprintf(stderr, "trainctl: no runs in '%s'\n", store);
    return TCTL_EXIT_OK;
}

static const char *const usage[] = {"[--json]", NULL};
static const tctl_cli_option options[] = {
    {.name = "--json", .doc = "print one JSON array"},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_ls;
const tctl_command tctl_cmd_ls = {
    .name = "ls",
    .summary = "List the runs, oldest first",
    .usage = usage,
    .options = options,
    .details = "The store is $TRAINCTL_STORE, else the nearest .trainctl in this folder or above it.",
    .examples = "  trainctl ls\n  trainctl ls --json | jq -r '.[] | select(.state == \"failed\") | .id'",
    .rank = 40,
    .argument = TCTL_ARG_NONE,
    .run = run,
};
