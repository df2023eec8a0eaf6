/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl run`: from a spec to a sealed manifest. The steps are those of docs/architecture.md, "Life of a run".
 *
 * Invariant: from the moment the run directory exists, every way out leaves a state in it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "launcher/attempt.h"
#include "launcher/capture.h"
#include "launcher/experiment.h"
#include "launcher/interrupt.h"
#include "launcher/record.h"
#include "launcher/twice.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

#define DEFAULT_GRACE_SECONDS 30

typedef struct run_context {
    tctl_command_line *line;
    tctl_arena *arena;
    bool json;
    int64_t grace;
    tctl_spec_request asked;
    tctl_experiment experiment;
    const char *store;
    tctl_run run;
    tctl_view *view;
    tctl_capture capture;
    tctl_attempt_end end;
    json_t *manifest;
    int64_t twice; /* steps; 0: not asked for */
    tctl_twice check;
} run_context;

/* ---- what is printed at the end ------------------------------------------------------------------------- */

static json_t *result_json(const run_context *c, int exit_code)
{
    const json_t *state = c->run.state;
    json_t *digest = json_object_get(state, "result_digest"), *reason = json_object_get(state, "reason");
    json_t *none = json_null();
    if (c->end.child.exit_code != 0) /* the child's own, where there was one */
        exit_code = c->end.child.exit_code;
    return json_pack("{s:s, s:O, s:o, s:s, s:s, s:o, s:O, s:i, s:O, s:f, s:O}", "id", c->run.id,
                     "first_divergence", c->check.verdict == NULL ? none : c->check.verdict, "path",
                     tctl_text_to_json(c->run.path), "state", tctl_run_state(&c->run), "contract",
                     tctl_contract_name(c->experiment.spec->contract), "recipe_digest",
                     tctl_json_sha256(&c->experiment.recipe_digest), "result_digest",
                     digest == NULL ? none : digest, "exit_code", exit_code, "reason",
                     reason == NULL ? none : reason, "seconds", c->end.child.seconds, "metrics",
                     c->end.child.last_metrics == NULL ? none : c->end.child.last_metrics);
}

static void print_accuracy(const json_t *metrics)
{
    const json_t *values = json_object_get(metrics, "values"),
                 *accuracy = json_object_get(values, "test_accuracy");
    if (!json_is_number(accuracy))
        accuracy = json_object_get(values, "train_accuracy");
    if (json_is_number(accuracy))
        printf("accuracy  %.2f %%\n", 100 * json_number_value(accuracy));
}

static void print_result(const run_context *c)
{
    char recipe[TCTL_SHA256_HEX], result[TCTL_SHA256_HEX];
    tctl_sha256_hex(&c->experiment.recipe_digest, recipe);
    tctl_sha256_hex(&c->end.result, result);
    printf("run       %s\n", c->run.id);
    print_accuracy(c->end.child.last_metrics);
    printf("recipe    %s\nresult    %s\npath      %s\ntime      %.1f s\n", recipe, result, c->run.path,
           c->end.child.seconds);
}

enum { NOTES_SHOWN = 10 };

/* What the script turned back, and where: a person should hear of it before a difference makes them look. */
static void print_notes(const run_context *c)
{
    size_t i;
    json_t *note, *notes = json_object_get(c->end.python, "notes");
    json_array_foreach(notes, i, note)
    {
        const char *file = json_string_value(json_object_get(note, "file"));
        if (i == NOTES_SHOWN) {
            fprintf(stderr, "trainctl: note: %zu more are in the manifest\n", json_array_size(notes) - i);
            return;
        }
        fprintf(stderr, "trainctl: note: %s: %s", json_string_value(json_object_get(note, "what")),
                json_string_value(json_object_get(note, "detail")));
        if (file[0] != '\0')
            fprintf(stderr, " (%s:%" JSON_INTEGER_FORMAT ")", file,
                    json_integer_value(json_object_get(note, "line")));
        fputc('\n', stderr);
    }
}

/* ---- the steps ------------------------------------------------------------------------------------------ */

/* So that `trainctl log` says it too. It was said elsewhere if this fails. */
static void append_to_log(const run_context *c, const char *text)
{
    const char *path = tctl_path_join(c->arena, c->run.path, "log.txt");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return;
    tctl_write_all(fd, text, strlen(text), path, NULL);
    close(fd);
}

/* Records that the run is over and says so. The reason is `reason` or, if NULL, the error's message. */
static int finish_badly(run_context *c, const char *state, const char *reason, int exit_code,
                        const tctl_error *err)
{
    tctl_error more = {0};
    const char *shown = reason;
    if (reason == NULL && err == NULL)
        shown = "out of memory";
    else if (reason == NULL && err->code == TCTL_ENOSPC)
        shown = tctl_arena_format(c->arena, "disk full: %s", err->message);
    else if (reason == NULL)
        shown = err->message;
    if (tctl_run_set_state(&c->run, state, shown, c->end.child.exit_code, &more) != TCTL_OK)
        tctl_cli_fail(c->line, &more);
    tctl_view_destroy(c->view);
    c->view = NULL;
    if (c->end.details != NULL) { /* has the reason, and where and why */
        fprintf(stderr, "%strainctl: %s %s\n", c->end.details, c->run.id, state);
        append_to_log(c, c->end.details);
    } else {
        fprintf(stderr, "trainctl: %s %s: %s\n", c->run.id, state, shown);
    }
    for (uint32_t i = 0; err != NULL && i < err->n_notes; i++)
        fprintf(stderr, "  note: %s\n", err->notes[i]);
    if (err != NULL && err->hint[0] != '\0')
        fprintf(stderr, "  hint: %s\n", err->hint);
    fprintf(stderr, "  log: %s/log.txt\n", c->run.path);
    return c->json ? tctl_cli_print_json(c->line, result_json(c, exit_code), exit_code) : exit_code;
}

static int fail_with(run_context *c, const tctl_error *err)
{
    return finish_badly(c, TCTL_STATE_FAILED, NULL, tctl_cli_exit_code(err->code), err);
}

static tctl_status write_recipe(const run_context *c, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    const char *path = tctl_path_join(c->arena, c->run.path, "recipe.json");
    tctl_status st = tctl_json_canonical(c->experiment.spec->recipe, &text, err);
    if (st == TCTL_OK && (path == NULL || text.broken))
        st = tctl_fail_memory(err, text.size);
    if (st == TCTL_OK)
        st = tctl_file_put(path, text.data, text.size, 0666, err);
    tctl_buf_release(&text);
    return st;
}

static tctl_status reserve(run_context *c, tctl_error *err)
{
    tctl_spec *spec = c->experiment.spec;
    tctl_status st = tctl_store_locate(c->arena, ".", true, &c->store, err);
    if (st == TCTL_OK)
        st = tctl_run_create(c->arena, c->store, spec->name, &c->run, err);
    if (st != TCTL_OK)
        return st;
    json_object_set_new(c->run.state, "contract", json_string(tctl_contract_name(spec->contract)));
    json_object_set_new(c->run.state, "recipe_digest", tctl_json_sha256(&c->experiment.recipe_digest));
    return tctl_interrupt_arm(&c->run, err);
}

static tctl_status prepare(run_context *c, tctl_error *err)
{
    tctl_status st = write_recipe(c, err);
    if (st == TCTL_OK)
        st = tctl_capture_make(c->arena, c->experiment.spec, &c->run, c->store,
                               tctl_cli_has(c->line, "--no-vcs"), c->view, &c->capture, err);
    if (st == TCTL_OK)
        st = tctl_run_set_state(&c->run, TCTL_STATE_RUNNING, NULL, -1, err);
    return st;
}

static tctl_status seal(run_context *c, tctl_error *err)
{
    tctl_record record = {.spec = c->experiment.spec,
                          .asked = &c->asked,
                          .recipe_digest = &c->experiment.recipe_digest,
                          .run = &c->run,
                          .capture = &c->capture,
                          .end = &c->end};
    tctl_status st = tctl_capture_recheck(c->arena, &c->capture, err);
    if (st == TCTL_OK)
        st = tctl_record_make(&record, &c->manifest, err);
    if (st == TCTL_OK)
        st = tctl_manifest_seal(c->run.path, c->manifest, err);
    if (st != TCTL_OK)
        return st;
    json_object_set_new(c->run.state, "result_digest", tctl_json_sha256(&c->end.result));
    if (c->end.child.last_metrics != NULL)
        json_object_set(c->run.state, "metrics", c->end.child.last_metrics);
    tctl_interrupt_disarm();
    return tctl_run_set_state(&c->run, TCTL_STATE_DONE, NULL, c->end.child.exit_code, err);
}

/* Without --twice all is well. Else what is wrong is said, and the exit code returned. */
static int check_twice(run_context *c)
{
    tctl_error err = {0};
    if (c->twice == 0)
        return TCTL_EXIT_OK;
    tctl_verification v = {.arena = c->arena, .environment = c->capture.environment};
    tctl_repeater repeater = {
        .v = &v,
        .spec = c->experiment.spec,
        .asked = &c->asked,
        .recipe_digest = &c->experiment.recipe_digest,
        .run_id = c->run.id,
        .allow_env = tctl_cli_values(c->line, "--allow-env"),
        .scratch = tctl_path_join(c->arena, c->run.path, "twice"),
    };
    if (repeater.scratch == NULL)
        return fail_with(c, &(tctl_error){.code = TCTL_ENOMEM, .message = "out of memory"});
    tctl_view *view = tctl_cli_has(c->line, "--quiet") ? NULL : c->view;
    tctl_status st = tctl_run_twice(&repeater, (uint64_t)c->twice, view, &c->check, &err);
    if (st == TCTL_OK)
        return TCTL_EXIT_OK;
    if (st == TCTL_ECANCELED)
        return finish_badly(c, TCTL_STATE_INTERRUPTED, err.message, c->check.stopped, NULL);
    if (st != TCTL_EDETERMINISM)
        return fail_with(c, &err);
    tctl_hint(&err,
              "both are in '%s'; 'trainctl run' without --twice, and 'trainctl verify last --deep', find out "
              "on what it depends",
              repeater.scratch);
    return finish_badly(c, TCTL_STATE_FAILED, NULL, TCTL_EXIT_FAILED, &err);
}

static int work(run_context *c)
{
    tctl_error err = {0};
    if (reserve(c, &err) != TCTL_OK)
        return c->run.path == NULL ? tctl_cli_fail(c->line, &err) : fail_with(c, &err);
    if (!tctl_cli_has(c->line, "--quiet"))
        tctl_view_say(c->view, "trainctl: run %s", c->run.id);
    if (prepare(c, &err) != TCTL_OK)
        return fail_with(c, &err);
    int exit_code = check_twice(c);
    if (exit_code != TCTL_EXIT_OK)
        return exit_code;
    tctl_attempt attempt = {
        .spec = c->experiment.spec,
        .asked = &c->asked,
        .recipe_digest = &c->experiment.recipe_digest,
        .run_id = c->run.id,
        .folder = c->run.path,
        .cache = c->capture.cache,
        .work_folder = c->experiment.spec->folder,
        .grace_seconds = (double)c->grace,
        .view = c->view,
        .allow_env = tctl_cli_values(c->line, "--allow-env"),
    };
    if (tctl_attempt_run(c->arena, &attempt, &c->end, &err) != TCTL_OK)
        return fail_with(c, &err);
    if (strcmp(c->end.state, TCTL_STATE_DONE) != 0)
        return finish_badly(c, c->end.state, c->end.reason, c->end.exit_code, NULL);
    if (seal(c, &err) != TCTL_OK)
        return fail_with(c, &err);
    tctl_view_destroy(c->view);
    c->view = NULL;
    if (!tctl_cli_has(c->line, "--quiet"))
        print_notes(c);
    if (c->json)
        return tctl_cli_print_json(c->line, result_json(c, TCTL_EXIT_OK), TCTL_EXIT_OK);
    print_result(c);
    return TCTL_EXIT_OK;
}

/* What would run, without a run directory and without opening data. */
static int dry_run(const run_context *c)
{
    tctl_error err = {0};
    tctl_inputs inputs = {0};
    tctl_buf text = TCTL_BUF_INIT;
    const tctl_spec *spec = c->experiment.spec;
    char hex[TCTL_SHA256_HEX];
    tctl_status st = tctl_inputs_collect(c->arena, spec, &inputs, &err);
    if (st == TCTL_OK && c->json) {
        return tctl_cli_print_json(c->line,
                                   json_pack("{s:s, s:s, s:o, s:O}", "state", "dry-run", "contract",
                                             tctl_contract_name(spec->contract), "recipe_digest",
                                             tctl_json_sha256(&c->experiment.recipe_digest), "recipe",
                                             spec->recipe),
                                   TCTL_EXIT_OK);
    }
    if (st == TCTL_OK)
        st = tctl_json_pretty(spec->recipe, &text, &err);
    if (st == TCTL_OK && tctl_buf_text(&text) != NULL) {
        tctl_sha256_hex(&c->experiment.recipe_digest, hex);
        fputs(tctl_buf_text(&text), stdout);
        printf("recipe    %s\ncontract  %s\n", hex, tctl_contract_name(spec->contract));
        for (uint32_t i = 0; i < inputs.n; i++)
            printf("input     %s (%s)\n", inputs.items[i].path, inputs.items[i].name);
        if (spec->command != NULL)
            printf("command   %s\n", spec->command);
    }
    tctl_buf_release(&text);
    return st == TCTL_OK ? TCTL_EXIT_OK : tctl_cli_fail(c->line, &err);
}

/* Before anything is made: the user's variables that no run starts with. */
static int check_environment(const run_context *c)
{
    tctl_error err = {0};
    const tctl_envelope_request request = {.determinism = &c->experiment.spec->determinism,
                                           .secrets = tctl_secret_names(c->arena, c->experiment.spec),
                                           .allow = tctl_cli_values(c->line, "--allow-env"),
                                           .from = (const char *const *)environ};
    tctl_status st = tctl_envelope_check(&request, &err);
    return st == TCTL_OK ? TCTL_EXIT_OK : tctl_cli_fail(c->line, &err);
}

static int run(tctl_command_line *line)
{
    run_context c = {
        .line = line, .arena = line->arena, .run = TCTL_RUN_NONE, .grace = DEFAULT_GRACE_SECONDS};
    c.json = tctl_cli_has(line, "--json");
    c.asked.path = line->args[0];
    c.asked.set = tctl_cli_values(line, "--set");
    c.asked.without = tctl_cli_values(line, "--without");
    c.asked.seed = tctl_cli_value(line, "--seed");
    if (!tctl_cli_number(line, "--grace", 0, 86400, &c.grace) ||
        !tctl_cli_number(line, "--twice", 1, INT64_MAX, &c.twice))
        return TCTL_EXIT_USAGE;
    int exit_code = tctl_experiment_load(line, &c.asked, c.json, &c.experiment);
    if (exit_code == TCTL_EXIT_OK)
        exit_code = check_environment(&c);
    if (exit_code == TCTL_EXIT_OK && tctl_cli_has(line, "--dry-run")) {
        exit_code = dry_run(&c);
    } else if (exit_code == TCTL_EXIT_OK) {
        c.view = tctl_view_create(tctl_cli_has(line, "--quiet"), line->colour);
        exit_code = c.view == NULL ? TCTL_EXIT_FAILED : work(&c);
    }
    tctl_view_destroy(c.view);
    tctl_attempt_release(&c.end);
    tctl_capture_release(&c.capture);
    json_decref(c.check.verdict);
    json_decref(c.manifest);
    tctl_run_release(&c.run);
    tctl_experiment_release(&c.experiment);
    return exit_code;
}

static const char *const usage[] = {
    "SPEC [--set KEY=VALUE]... [--without STAGE]... [--seed N] [--allow-env NAME]...", NULL};
static const tctl_cli_option options[] = {
    {.name = "--set",
     .value = "KEY=VALUE",
     .doc = "change a value of the spec: train.epochs=1",
     .repeated = true},
    {.name = "--without", .value = "STAGE", .doc = "leave out a stage", .repeated = true},
    {.name = "--seed", .value = "N", .doc = "another root seed"},
    {.name = "--allow-env",
     .value = "NAME",
     .doc = "pass this variable of yours as it is, and record it",
     .repeated = true},
    {.name = "--twice",
     .value = "N",
     .doc =
         "do the first N steps twice before, and stop if they differ (without a trace: the whole command)"},
    {.name = "--dry-run", .doc = "print the recipe, its digest and the inputs; run nothing"},
    {.name = "--no-vcs", .doc = "do not look at git: keep the code in the run store"},
    {.name = "--grace", .value = "SECONDS", .doc = "time between the first Ctrl-C and the kill (default 30)"},
    {.name = "--json", .doc = "print one JSON object at the end, and nothing else, to standard output"},
    {.name = "--quiet", .doc = "no progress, no curve, not the child's words", .letter = 'q'},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_run;
const tctl_command tctl_cmd_run = {
    .name = "run",
    .summary = "Run a spec and seal what came of it in a manifest",
    .usage = usage,
    .options = options,
    .details =
        "Code, data and machine are recorded first; then one child does the work, and whatever happens to "
        "it, the\n"
        "run directory says what. Exit code: 0 done, 1 failed, 3 the spec is wrong, 4 a plugin, 6 a variable "
        "of yours\n"
        "with which results may not repeat (docs/determinism.md), 130 Ctrl-C.",
    .examples = "  trainctl run exp.yaml\n"
                "  trainctl run exp.yaml --set train.optimizer.lr=0.05 --seed 7\n"
                "  trainctl run exp.yaml --json | jq -r .result_digest",
    .rank = 10,
    .argument = TCTL_ARG_SPEC,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
