/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl verify`: does the work of a sealed run again, in an empty folder, and compares bit for bit.
 *
 * The verdict is `identical` (exit 0), `differs` (1), or `unverifiable` (2: what went in is not there any more, so that
 * nothing was proved either way). Results are never taken from a cache.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "launcher/deep.h"
#include "launcher/runs.h"
#include "launcher/verify.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

#define MAX_VERIFICATIONS 10000
#define DEFAULT_RUNS      3
#define SHOWN_CAUSES      5

typedef struct context {
    tctl_command_line *line;
    tctl_verification v;
    tctl_run run;
    json_t *manifest;
    tctl_experiment experiment;
    tctl_spec_request asked;
    const char *folder; /* of the attempt; NULL: not made */
    int64_t runs;       /* under each probe */
    tctl_repeater repeater;
    tctl_repeat first;
    tctl_deep deep;
} context;

static const char *const verdict_words[] = {"unverifiable", "identical", "differs", "unverifiable"};

/* ---- what to do again ----------------------------------------------------------------------------------- */

/* A NULL-ended list of the texts in `list`, with room for two more. */
static const char **texts_of(tctl_arena *arena, const json_t *list, uint32_t *ret_n)
{
    const char **texts = tctl_arena_take_array(arena, json_array_size(list) + 3, sizeof *texts);
    size_t i;
    json_t *item;
    *ret_n = 0;
    if (texts == NULL)
        return NULL;
    json_array_foreach((json_t *)(uintptr_t)list, i, item) texts[(*ret_n)++] = json_string_value(item);
    return texts;
}

/* What was asked for then, and other resources if they are asked for now. */
static tctl_status ask(context *c, tctl_error *err)
{
    const json_t *request = json_object_get(c->manifest, "request");
    tctl_arena *arena = c->line->arena;
    uint32_t n = 0, n_without = 0;
    char *folder = NULL;
    const char **set = texts_of(arena, json_object_get(request, "set"), &n);
    const char **without = texts_of(arena, json_object_get(request, "without"), &n_without);
    const char *threads = tctl_cli_value(c->line, "--threads"),
               *workers = tctl_cli_value(c->line, "--workers");
    if (set == NULL || without == NULL)
        return tctl_fail_memory(err, 0);
    const json_t *recorded = json_object_get(json_object_get(c->manifest, "resources"), "threads");
    bool is_command = json_is_string(json_object_get(c->manifest, "command"));
    /* A command's sums follow the count, and where the spec has none it was the machine's. */
    if (threads == NULL && is_command && json_is_integer(recorded))
        threads = tctl_arena_format(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(recorded));
    if (threads != NULL)
        set[n++] = tctl_arena_format(arena, "resources.threads=%s", threads);
    if (workers != NULL)
        set[n++] = tctl_arena_format(arena, "resources.workers=%s", workers);
    tctl_status st = tctl_path_from_json(json_object_get(request, "folder"), &folder, err);
    if (st != TCTL_OK)
        return st;
    c->asked.folder = tctl_arena_copy(arena, folder, strlen(folder));
    free(folder);
    c->asked.path = json_string_value(json_object_get(request, "spec"));
    c->asked.text_path = tctl_path_join(arena, c->run.path, "spec.yaml");
    c->asked.set = set;
    c->asked.without = without;
    c->asked.seed = json_string_value(json_object_get(request, "seed"));
    if (c->asked.folder == NULL || c->asked.text_path == NULL)
        return tctl_fail_memory(err, 0);
    return TCTL_OK;
}

/* <run>/verify-1, or the next number that is free. */
static tctl_status make_folder(context *c, tctl_error *err)
{
    for (int i = 1; i <= MAX_VERIFICATIONS; i++) {
        const char *path = tctl_arena_format(c->line->arena, "%s/verify-%d", c->run.path, i);
        if (path == NULL)
            return tctl_fail_memory(err, 0);
        if (mkdir(path, 0777) == 0) {
            c->folder = path;
            return TCTL_OK;
        }
        if (errno != EEXIST)
            return tctl_fail_errno(err, errno, "cannot create '%s'", path);
    }
    return tctl_fail(err, TCTL_EBUSY, "there are %d verifications in '%s': remove some", MAX_VERIFICATIONS,
                     c->run.path);
}

/* What the second time has to say, and the probes. */
static void look_deeper(context *c, tctl_view *view, tctl_view *quiet)
{
    tctl_error err = {0};
    c->deep = (tctl_deep){.repeater = c->repeater,
                          .runs = (uint32_t)c->runs,
                          .view = tctl_cli_has(c->line, "--quiet") ? NULL : view,
                          .quiet = quiet,
                          .probes = c->deep.probes};
    c->deep.repeater.scratch = c->folder;
    tctl_status st = tctl_deep_look(&c->deep, &c->first, &err);
    c->repeater.stopped = c->deep.repeater.stopped;
    if (st != TCTL_OK && c->repeater.stopped == 0)
        tctl_verify_failed(&c->v, "deep", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
    else if (st == TCTL_OK)
        tctl_verify_passed(&c->v, "deep",
                           strcmp(c->deep.self, "agrees") == 0
                               ? "done twice now: the program agrees with itself"
                               : "done twice now: the program disagrees with itself");
}

/* Returns an exit code above 128 if somebody stopped us, else 0. */
static int do_again(context *c, tctl_view *view, tctl_view *quiet)
{
    tctl_error err = {0};
    const char *store = tctl_path_folder(c->line->arena, tctl_path_folder(c->line->arena, c->run.path));
    if (make_folder(c, &err) != TCTL_OK) {
        tctl_verify_failed(&c->v, "run again", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
        return 0;
    }
    c->repeater = (tctl_repeater){
        .v = &c->v,
        .spec = c->experiment.spec,
        .asked = &c->asked,
        .recipe_digest = &c->experiment.recipe_digest,
        .run_id = json_string_value(json_object_get(json_object_get(c->manifest, "run"), "id")),
        .store = store,
        .scratch = c->folder,
        .keep = tctl_cli_has(c->line, "--keep"),
        .envelope = json_object_get(c->manifest, "envelope"),
    };
    const tctl_repeat_request request = {.view = view};
    tctl_status st = tctl_repeat_make(&c->repeater, c->folder, &request, &c->first, &err);
    if (st != TCTL_OK) {
        if (c->v.verdict == TCTL_VERDICT_NONE)
            tctl_verify_failed(&c->v, "run again", TCTL_VERDICT_UNVERIFIABLE, "%s%s",
                               c->repeater.stopped != 0 ? "the run interrupted this time: " : "",
                               err.message);
    } else if (c->first.failure != NULL) {
        tctl_verify_failed(&c->v, "run again", TCTL_VERDICT_UNVERIFIABLE, "the run failed this time: %s",
                           c->first.failure);
        if (c->first.end.details != NULL)
            fputs(c->first.end.details, stderr);
    } else {
        tctl_verify_compare(&c->v, c->folder, &c->first.end);
        if (tctl_cli_has(c->line, "--deep"))
            look_deeper(c, view, quiet);
    }
    return c->repeater.stopped;
}

static int verify(context *c)
{
    tctl_error err = {0};
    const char *reason = json_string_value(json_object_get(c->run.state, "reason"));
    c->v.run = &c->run;
    if (strcmp(tctl_run_state(&c->run), TCTL_STATE_DONE) != 0) {
        tctl_verify_failed(&c->v, "state", TCTL_VERDICT_UNVERIFIABLE,
                           "the run was never sealed: it is '%s'%s%s", tctl_run_state(&c->run),
                           reason == NULL ? "" : ": ", reason == NULL ? "" : reason);
        return 0;
    }
    if (tctl_manifest_load(c->run.path, &c->manifest, &err) != TCTL_OK) {
        tctl_verify_failed(&c->v, "manifest", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
        return 0;
    }
    c->v.manifest = c->manifest;
    if (!tctl_verify_recorded(&c->v) || !tctl_verify_inputs(&c->v))
        return 0;
    if (ask(c, &err) != TCTL_OK) {
        tctl_verify_failed(&c->v, "spec", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
        return 0;
    }
    if (tctl_experiment_load(c->line, &c->asked, false, &c->experiment) != TCTL_EXIT_OK) {
        tctl_verify_failed(&c->v, "spec", TCTL_VERDICT_UNVERIFIABLE,
                           "the recorded spec is not accepted any more");
        return 0;
    }
    if (!tctl_verify_resolved(&c->v, &c->experiment))
        return 0;
    tctl_view *view = tctl_view_create(tctl_cli_has(c->line, "--quiet"), c->line->colour),
              *quiet = tctl_view_create(true, false);
    int stopped = view == NULL || quiet == NULL ? TCTL_EXIT_USAGE : do_again(c, view, quiet);
    tctl_view_destroy(view);
    tctl_view_destroy(quiet);
    return stopped;
}

/* ---- saying it ------------------------------------------------------------------------------------------ */

/* The stage, what else differs of what went in, and what is known to make results vary. */
static void print_place(const json_t *first)
{
    const json_t *one;
    size_t i;
    if (first == NULL)
        return;
    printf("stage %s (%s)\n", json_string_value(json_object_get(first, "stage")),
           json_string_value(json_object_get(first, "confidence")));
    json_array_foreach(json_object_get(first, "causes"), i, one)
    {
        if (i > 0 && i <= SHOWN_CAUSES)
            printf("      also: %s\n", json_string_value(json_object_get(one, "what")));
    }
    json_array_foreach(json_object_get(first, "advice"), i, one)
        printf("      advice: %s\n", json_string_value(one));
    json_array_foreach(json_object_get(first, "suspects"), i, one)
    {
        if (i < SHOWN_CAUSES)
            printf("      suspect: %s\n", json_string_value(one));
    }
}

static void print_verdict(const context *c)
{
    size_t i;
    json_t *check;
    json_array_foreach(c->v.checks, i, check)
    {
        const char *name = json_string_value(json_object_get(check, "check"));
        const char *what = json_string_value(json_object_get(check, "what"));
        printf("%-5s %s: %s\n", json_is_true(json_object_get(check, "ok")) ? "ok" : "NOT", name, what);
    }
    print_place(c->v.first_divergence);
    printf("%s%s%s\n", verdict_words[c->v.verdict], c->v.reason == NULL ? "" : ": ",
           c->v.reason == NULL ? "" : c->v.reason);
}

static json_t *verdict_json(const context *c, int exit_code)
{
    json_t *none = json_null(), *contract = json_object_get(c->manifest, "contract");
    return json_pack(
        "{s:s, s:s?, s:O, s:o, s:O, s:O, s:o, s:O, s:i, s:o}", "verdict", verdict_words[c->v.verdict], "self",
        c->deep.self, "probes", c->deep.probes, "reason", tctl_text_to_json(c->v.reason), "first_divergence",
        c->v.first_divergence == NULL ? none : c->v.first_divergence, "checks", c->v.checks, "id",
        tctl_text_to_json(c->run.id == NULL ? c->line->args[0] : c->run.id), "contract",
        contract == NULL ? none : contract, "exit_code", exit_code, "folder", tctl_text_to_json(c->folder));
}

static void release(context *c)
{
    tctl_repeat_release(&c->repeater, &c->first, false);
    json_decref(c->deep.probes);
    tctl_experiment_release(&c->experiment);
    json_decref(c->v.checks);
    json_decref(c->v.first_divergence);
    json_decref(c->v.environment);
    json_decref(c->v.differences);
    json_decref(c->v.data);
    json_decref(c->manifest);
    tctl_run_release(&c->run);
}

static int run(tctl_command_line *line)
{
    static const int exit_codes[] = {TCTL_EXIT_USAGE, TCTL_EXIT_OK, TCTL_EXIT_FAILED, TCTL_EXIT_USAGE};
    tctl_error err = {0};
    context c = {.line = line, .run = TCTL_RUN_NONE, .runs = DEFAULT_RUNS};
    int64_t number = 0;
    if (!tctl_cli_number(line, "--threads", 1, 1024, &number) ||
        !tctl_cli_number(line, "--workers", 0, 1024, &number) ||
        !tctl_cli_number(line, "--repeats", 2, 1000, &c.runs))
        return TCTL_EXIT_USAGE;
    const char *store = NULL;
    if (tctl_runs_store(line, &store) != TCTL_EXIT_OK)
        return TCTL_EXIT_USAGE;
    c.v = (tctl_verification){
        .arena = line->arena, .checks = json_array(), .anyway = tctl_cli_has(line, "--anyway")};
    c.deep.probes = json_array();
    int stopped = 0;
    if (tctl_run_find(line->arena, store, line->args[0], &c.run, &err) != TCTL_OK) {
        tctl_cli_fail(line, &err);
        tctl_verify_failed(&c.v, "run", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
    } else {
        stopped = verify(&c);
    }
    int exit_code = stopped != 0 ? stopped : exit_codes[c.v.verdict];
    if (c.folder != NULL && c.v.verdict == TCTL_VERDICT_IDENTICAL && !tctl_cli_has(line, "--keep")) {
        tctl_remove_tree(c.folder, NULL);
        c.folder = NULL;
    }
    if (tctl_cli_has(line, "--json"))
        exit_code = tctl_cli_print_json(line, verdict_json(&c, exit_code), exit_code);
    else
        print_verdict(&c);
    if (c.folder != NULL)
        fprintf(stderr, "trainctl: the repeated run is in '%s'\n", c.folder);
    release(&c);
    return exit_code;
}

static const char *const usage[] = {"RUN [--threads N] [--workers N]", "RUN --deep", NULL};
static const tctl_cli_option options[] = {
    {.name = "--threads", .value = "N", .doc = "compute with another number of threads than recorded"},
    {.name = "--workers", .value = "N", .doc = "load with another number of workers than recorded"},
    {.name = "--deep",
     .doc =
         "run twice now and, if bits differ, find out what they depend on, and the first step and element"},
    {.name = "--repeats", .value = "N", .doc = "with --deep: runs that must agree under a probe (default 3)"},
    {.name = "--anyway", .doc = "run again although data or plugins have changed, and compare"},
    {.name = "--keep", .doc = "keep the folders of all repeated runs, also of identical ones and of probes"},
    {.name = "--json", .doc = "print one JSON object, and nothing else, to standard output"},
    {.name = "--quiet", .doc = "no progress, no curve, not the child's words", .letter = 'q'},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_verify;
const tctl_command tctl_cmd_verify = {
    .name = "verify",
    .summary = "Run a sealed run again and compare bit for bit",
    .usage = usage,
    .options = options,
    .details = "First it is checked that the recorded outputs, data and plugins are what they were; then the "
               "work is done\n"
               "again in an empty folder. Where bits differ, the stage is named at which they part "
               "(docs/verify.md); --deep\n"
               "tells whether the program disagrees with itself or only with its record, and tries with one "
               "circumstance after\n"
               "the other held still on which it depends: clock, entropy, threads, addresses, uninitialised "
               "memory, …\n"
               "Exit code: 0 identical, 1 differs, 2 could not be checked.",
    .examples = "  trainctl verify last\n"
                "  trainctl verify last --threads 5 --workers 0\n"
                "  trainctl verify last --deep\n"
                "  trainctl verify last --json | jq .first_divergence",
    .rank = 20,
    .argument = TCTL_ARG_RUN,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
