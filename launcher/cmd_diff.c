/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl diff`: what differs between two sealed runs, from what went in to what came out.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "launcher/runs.h"
#include "launcher/verify.h"
#include "manifest/compare.h"
#include "manifest/manifest.h"

#define MAX_DIFFERENCES 1000
#define SHOWN           20
#define VALUE_WIDTH     48

/* In the order of cause and effect. */
static const char *const sections[] = {"recipe",         "code",        "data",     "plugins",
                                       "shared_objects", "environment", "envelope", "outputs"};

static int load(const tctl_command_line *line, const char *which, tctl_run *run, json_t **ret)
{
    tctl_error err = {0};
    int exit_code = tctl_runs_find(line, which, run);
    if (exit_code != TCTL_EXIT_OK)
        return TCTL_EXIT_USAGE;
    if (tctl_manifest_load(run->path, ret, &err) == TCTL_OK)
        return TCTL_EXIT_OK;
    if (strcmp(tctl_run_state(run), TCTL_STATE_DONE) != 0)
        tctl_note(&err, "run '%s' is '%s': only sealed runs can be compared", run->id, tctl_run_state(run));
    tctl_cli_fail(line, &err);
    return TCTL_EXIT_USAGE;
}

/* {"outputs": […], …, "trace": {…} or null, "first_divergence": of tctl_classify, null if the results are the same}; empty lists where nothing
 * differs. */
static tctl_status compare(tctl_verification *v, const tctl_run runs[2], json_t *const manifests[2],
                           json_t **ret, tctl_error *err)
{
    json_t *all = json_object(), *trace = NULL, *verdict = NULL;
    tctl_arena *arena = v->arena;
    tctl_status st =
        tctl_verify_pair(v, runs[0].path, manifests[0], runs[1].path, manifests[1], &verdict, err);
    json_object_set_new(all, "first_divergence", verdict == NULL ? json_null() : verdict);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
        json_object_set_new(all, sections[i],
                            tctl_compare_json(json_object_get(manifests[0], sections[i]),
                                              json_object_get(manifests[1], sections[i]), MAX_DIFFERENCES));
    const char *a = tctl_path_join(arena, runs[0].path, "trace.bin"),
               *b = tctl_path_join(arena, runs[1].path, "trace.bin");
    if (st == TCTL_OK && a != NULL && b != NULL && tctl_path_exists(a) && tctl_path_exists(b))
        st = tctl_compare_traces(arena, a, b, &trace, err);
    json_object_set_new(all, "trace", trace == NULL ? json_null() : trace);
    if (st == TCTL_OK)
        *ret = all;
    else
        json_decref(all);
    return st;
}

/* A value on one line, cut where it is long. */
static void add_value(tctl_buf *text, const json_t *value)
{
    tctl_buf canonical = TCTL_BUF_INIT;
    if (json_is_null(value))
        tctl_buf_add_text(text, "(none)");
    else if (tctl_json_canonical(value, &canonical, NULL) == TCTL_OK && canonical.size <= VALUE_WIDTH)
        tctl_buf_add(text, canonical.data, canonical.size);
    else
        tctl_buf_add_format(text, "%.*s…", VALUE_WIDTH, tctl_buf_text(&canonical));
    tctl_buf_release(&canonical);
}

static void print_section(const char *name, const json_t *differences)
{
    size_t i, n = json_array_size(differences);
    json_t *one;
    if (n == 0)
        return;
    printf("%s:\n", name);
    json_array_foreach((json_t *)(uintptr_t)differences, i, one)
    {
        tctl_buf text = TCTL_BUF_INIT;
        if (i == SHOWN) {
            printf("  and %zu more\n", n - i);
            break;
        }
        tctl_buf_add_format(&text, "  %s: ", json_string_value(json_object_get(one, "path")));
        add_value(&text, json_object_get(one, "a"));
        tctl_buf_add_text(&text, " → ");
        add_value(&text, json_object_get(one, "b"));
        puts(tctl_buf_text(&text) == NULL ? "  out of memory" : tctl_buf_text(&text));
        tctl_buf_release(&text);
    }
}

/* True if something was printed. */
static bool print_all(const json_t *all)
{
    const json_t *first = json_object_get(all, "first_divergence");
    bool any = json_is_object(first);
    if (any)
        printf("stage %s (%s): %s\n", json_string_value(json_object_get(first, "stage")),
               json_string_value(json_object_get(first, "confidence")),
               json_string_value(json_object_get(first, "why")));
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        const json_t *list = json_object_get(all, sections[i]);
        print_section(sections[i], list);
        any = any || json_array_size(list) > 0;
    }
    const json_t *trace = json_object_get(all, "trace");
    if (json_is_object(trace)) {
        tctl_buf words = TCTL_BUF_INIT;
        tctl_divergence_explain(trace, &words);
        printf("trace:\n  %s\n", tctl_buf_text(&words));
        tctl_buf_release(&words);
        any = true;
    }
    return any;
}

static void print_verdict(json_t *const manifests[2], bool same, bool any)
{
    json_t *repacked = tctl_repacked_outputs(json_object_get(manifests[0], "outputs"),
                                             json_object_get(manifests[1], "outputs"));
    size_t n = json_array_size(repacked);
    if (!same)
        puts("the results differ");
    else if (n > 0)
        printf("the results are the same content; %zu %s other container bytes\n", n,
               n == 1 ? "output has" : "outputs have");
    else
        printf("the results are the same bits%s\n", any ? "" : ", and so is all that went in");
    json_decref(repacked);
}

static int run(tctl_command_line *line)
{
    tctl_error err = {0};
    tctl_run runs[2] = {TCTL_RUN_NONE, TCTL_RUN_NONE};
    json_t *manifests[2] = {NULL, NULL}, *all = NULL;
    tctl_verification v = {.arena = line->arena};
    int exit_code = TCTL_EXIT_OK;
    for (uint32_t i = 0; i < 2 && exit_code == TCTL_EXIT_OK; i++)
        exit_code = load(line, line->args[i], &runs[i], &manifests[i]);
    if (exit_code == TCTL_EXIT_OK && compare(&v, runs, manifests, &all, &err) != TCTL_OK) {
        tctl_cli_fail(line, &err);
        exit_code = TCTL_EXIT_USAGE;
    }
    if (exit_code == TCTL_EXIT_OK) {
        bool same = json_equal(json_object_get(manifests[0], "result_digest"),
                               json_object_get(manifests[1], "result_digest"));
        exit_code = same ? TCTL_EXIT_OK : TCTL_EXIT_FAILED;
        if (tctl_cli_has(line, "--json")) {
            json_object_set_new(all, "same_result", json_boolean(same));
            exit_code = tctl_cli_print_json(line, json_incref(all), exit_code);
        } else {
            bool any = print_all(all);
            print_verdict(manifests, same, any);
        }
    }
    for (int i = 0; i < 2; i++) {
        json_decref(manifests[i]);
        tctl_run_release(&runs[i]);
    }
    json_decref(all);
    return exit_code;
}

static const char *const usage[] = {"RUN RUN [--json]", NULL};
static const tctl_cli_option options[] = {
    {.name = "--json", .doc = "print one JSON object: a list of differences per section"},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_diff;
const tctl_command tctl_cmd_diff = {
    .name = "diff",
    .summary = "Show what differs between two runs",
    .usage = usage,
    .options = options,
    .details =
        "First where the two part, and why, as far as the records tell; then all that differs: "
        "recipe, code,\n"
        "data, plugins, libraries, machine, envelope, outputs, and the first step. Nothing is run. Exit "
        "code: 0 the\n"
        "results are the same bits, 1 they differ, 2 the runs could not be compared.",
    .examples = "  trainctl diff last~1 last",
    .rank = 30,
    .argument = TCTL_ARG_RUN,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
