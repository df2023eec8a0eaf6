/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preparing, running and reading back one attempt. See attempt.h; host/worker.h has the protocol.
 */
#include "launcher/attempt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "host/worker.h"
#include "launcher/capture.h"
#include "launcher/experiment.h"
#include "launcher/outputs.h"
#include "launcher/probe.h"
#include "launcher/report_interposer.h"
#include "launcher/report_python.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"
#include "manifest/store.h"
#include "manifest/trace.h"

#define REPORT_LIMIT ((size_t)64 << 20)
#define FULL_BYTES   65536u

/* ---- before -------------------------------------------------------------------------------------------- */

static json_t *texts_json(const char *const *texts)
{
    json_t *list = json_array();
    for (; texts != NULL && *texts != NULL; texts++)
        json_array_append_new(list, json_string(*texts));
    return list;
}

static tctl_status write_request(tctl_arena *arena, const tctl_attempt *a, const char *out, tctl_error *err)
{
    const char *path = tctl_path_join(arena, a->folder, "request.json");
    tctl_buf text = TCTL_BUF_INIT;
    json_t *request =
        json_pack("{s:o, s:o, s:o, s:o, s:s?, s:o, s:o}", "path", tctl_path_to_json(a->spec->path), "folder",
                  tctl_path_to_json(a->work_folder), "set", texts_json(a->asked->set), "without",
                  texts_json(a->asked->without), "seed", a->asked->seed, "recipe_digest",
                  tctl_json_sha256(a->recipe_digest), "out", tctl_path_to_json(out));
    json_t *trace = json_object();
    if (a->trace_every > 0)
        json_object_set_new(trace, "every", tctl_json_count(a->trace_every));
    if (a->trace_stop != NULL)
        json_object_set_new(trace, "stop", json_string(a->trace_stop));
    if (a->trace_dump != NULL)
        json_object_set_new(trace, "dump", json_string(a->trace_dump));
    if (json_object_size(trace) > 0)
        json_object_set(request, "trace", trace);
    json_decref(trace);
    tctl_status st =
        request == NULL || path == NULL ? tctl_fail_memory(err, 0) : tctl_json_pretty(request, &text, err);
    if (st == TCTL_OK)
        st = tctl_file_put(path, text.data, text.size, 0666, err);
    tctl_buf_release(&text);
    json_decref(request);
    return st;
}

static tctl_status prepare(tctl_arena *arena, const tctl_attempt *a, const char **out, tctl_error *err)
{
    const char *spec = tctl_path_join(arena, a->folder, "spec.yaml");
    *out = tctl_path_join(arena, a->folder, "out");
    const char *report = tctl_path_join(arena, a->folder, "report");
    if (spec == NULL || *out == NULL || report == NULL)
        return tctl_fail_memory(err, 0);
    if (mkdir(*out, 0777) != 0)
        return tctl_fail_errno(err, errno, "cannot create '%s'", *out);
    if (mkdir(report, 0777) != 0)
        return tctl_fail_errno(err, errno, "cannot create '%s'", report);
    tctl_status st = tctl_file_put(spec, a->spec->text, a->spec->text_size, 0666, err);
    return st == TCTL_OK ? write_request(arena, a, *out, err) : st;
}

/* The program to execute: the worker beside this program, or the shell. */
static tctl_status child_argv(tctl_arena *arena, const tctl_attempt *a, const char *const **ret,
                              tctl_error *err)
{
    const char **argv = tctl_arena_take_array(arena, 4, sizeof *argv);
    const char *program = NULL;
    if (argv == NULL)
        return tctl_fail_memory(err, 4 * sizeof *argv);
    tctl_status st = tctl_program_path(arena, &program, err);
    if (st != TCTL_OK)
        return st;
    if (a->spec->command != NULL) {
        argv[0] = "/bin/sh";
        argv[1] = "-c";
        argv[2] = a->spec->command;
    } else {
        const char *bin = tctl_path_folder(arena, program);
        argv[0] = bin == NULL ? NULL : tctl_arena_format(arena, "%s/../lib/trainctl/trainctl-worker", bin);
        argv[1] = a->folder;
        if (argv[0] == NULL)
            return tctl_fail_memory(err, 0);
    }
    *ret = argv;
    return TCTL_OK;
}

/* A file of ours beside the worker, absolute; NULL if it is not installed: a run goes on without it. */
static const char *own_library(tctl_arena *arena, const char *name)
{
    const char *program = NULL;
    if (tctl_program_path(arena, &program, NULL) != TCTL_OK)
        return NULL;
    const char *prefix = tctl_path_folder(arena, tctl_path_folder(arena, program));
    const char *path = prefix == NULL ? NULL : tctl_arena_format(arena, "%s/lib/trainctl/%s", prefix, name);
    return path != NULL && tctl_path_exists(path) ? path : NULL;
}

static const char *child_folder(const tctl_attempt *a)
{
    return a->spec->command != NULL ? a->work_folder : a->folder;
}

/* A worker's sanitizer must be its first library; a command's programs are looked at one by one. */
static bool may_preload(const tctl_attempt *a)
{
#ifdef TRAINCTL_SANITIZED
    return a->spec->command != NULL;
#else
    (void)a;
    return true;
#endif
}

/* The library to preload; NULL where it is not to be, or cannot be. */
static const char *interposer_of(tctl_arena *arena, const tctl_attempt *a)
{
    return a->spec->determinism.interposer && may_preload(a) ? own_library(arena, "libtrainctl-det.so")
                                                             : NULL;
}

static tctl_status make_envelope(tctl_arena *arena, const tctl_attempt *a, const char *out,
                                 tctl_envelope *ret, tctl_error *err)
{
    const char *const *secrets = tctl_secret_names(arena, a->spec);
    const tctl_determinism *d = &a->spec->determinism;
    tctl_envelope_request request = {
        .run = a->run_id,
        .out = out,
        .folder = child_folder(a),
        .report = tctl_path_join(arena, a->folder, "report"),
        .trace_fine = a->trace_fine,
        .trace_dump = a->trace_dump,
        .trace_stop = a->trace_stop,
        .interposer = interposer_of(arena, a),
        .python = d->python ? own_library(arena, "python") : NULL,
        .determinism = d,
        .seed = a->spec->seed,
        .threads = a->spec->resources.threads,
        .secrets = secrets,
        .allow = a->allow_env,
        .from = (const char *const *)environ,
        .recorded = a->envelope,
    };
    if (a->changed != NULL) {
        request.probe =
            a->changed->library && may_preload(a) ? own_library(arena, "libtrainctl-probe.so") : NULL;
        request.variables = a->changed->variables;
        request.one_cpu = a->changed->one_cpu;
    }
    if (a->spec->command != NULL && d->trace > 0)
        request.trace = tctl_path_join(arena, a->folder, "trace.bin");
    if (secrets == NULL || request.report == NULL || (d->trace > 0 && a->spec->command && !request.trace))
        return tctl_fail_memory(err, 0);
    return tctl_envelope_make(arena, &request, ret, err);
}

/* ---- behind -------------------------------------------------------------------------------------------- */

/* A JSON file of the worker's; NULL if there is none or it can't be read. */
static json_t *read_report(tctl_arena *arena, const char *folder, const char *name)
{
    tctl_buf text = TCTL_BUF_INIT;
    json_t *value = NULL;
    const char *path = tctl_path_join(arena, folder, name);
    if (path != NULL && tctl_file_read(path, REPORT_LIMIT, &text, NULL) == TCTL_OK)
        tctl_json_parse(path, tctl_buf_text(&text), text.size, &value, NULL);
    tctl_buf_release(&text);
    return value;
}

/* What the interposer saw, whatever became of the child. */
static tctl_status read_interposer(tctl_arena *arena, const tctl_attempt *a, tctl_attempt_end *end,
                                   tctl_error *err)
{
    const char *path = tctl_path_join(arena, a->folder, "report/interposer.jsonl");
    tctl_interposer_report report = {0};
    end->uncontrolled = json_array();
    if (path == NULL || end->uncontrolled == NULL)
        return tctl_fail_memory(err, 0);
    if (interposer_of(arena, a) == NULL)
        return TCTL_OK;
    tctl_status st = tctl_interposer_report_read(path, &report, err);
    if (st != TCTL_OK)
        return st;
    end->interposer = json_incref(report.interposer);
    json_array_extend(end->uncontrolled, report.uncontrolled);
    if (a->spec->command != NULL) {
        const tctl_object_place places[] = {
            {a->work_folder, "$FOLDER"}, {a->folder, "$RUN"}, {.folder = NULL}}; /* docs/manifest.md */
        tctl_stat_cache *own =
            a->cache == NULL ? tctl_stat_cache_open(tctl_stat_cache_default_path(arena), NULL) : NULL;
        end->shared_objects = tctl_interposer_shared_objects(&report, places, own == NULL ? a->cache : own);
        tctl_stat_cache_close(own);
        st = end->shared_objects == NULL ? tctl_fail_memory(err, 0) : TCTL_OK;
    }
    tctl_interposer_report_release(&report);
    return st;
}

static bool is_crash(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGABRT || signal == SIGSYS || signal == SIGTRAP;
}

static const char *copy_member(tctl_arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL || text[0] == '\0' ? NULL : tctl_arena_copy(arena, text, strlen(text));
}

/* A child that could not even write why it failed. */
static bool is_disk_full(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 && fs.f_bavail * fs.f_frsize < FULL_BYTES;
}

/* Says what became of a child that did not end well. */
static void judge_failure(tctl_arena *arena, const tctl_attempt *a, tctl_attempt_end *end)
{
    const tctl_child_end *child = &end->child;
    json_t *report = read_report(arena, a->folder, "error.json");
    const char *said = copy_member(arena, report, "message");
    json_int_t code = json_integer_value(json_object_get(report, "code"));
    bool is_worker = a->spec->command == NULL;
    end->state = TCTL_STATE_FAILED;
    end->exit_code =
        is_worker && child->signal == 0 && child->exit_code != 0 ? child->exit_code : TCTL_EXIT_FAILED;
    end->details = copy_member(arena, report, "rendered");
    if (child->stopped_by != 0) {
        end->state = TCTL_STATE_INTERRUPTED;
        end->reason = tctl_arena_format(arena, "stopped by SIG%s", sigabbrev_np(child->stopped_by));
        end->exit_code = TCTL_EXIT_SIGNAL + child->stopped_by;
        end->details = NULL;
    } else if (code == TCTL_ENOSPC || child->log_disk_full) {
        end->reason = said == NULL ? "disk full" : tctl_arena_format(arena, "disk full: %s", said);
    } else if (is_worker && is_crash(child->signal) && child->plugin != NULL) {
        end->reason = tctl_arena_format(arena, "%s crashed in %s (SIG%s)", child->plugin, child->phase,
                                        sigabbrev_np(child->signal));
        end->exit_code = TCTL_EXIT_PLUGIN;
    } else if (said != NULL && child->signal == 0) {
        end->reason = said;
    } else if (is_disk_full(a->folder)) {
        end->reason = tctl_arena_format(arena, "disk full: %s", tctl_child_reason(arena, child));
    } else {
        end->reason = tctl_child_reason(arena, child);
    }
    json_decref(report);
}

/* `out/` must have the files that the spec of a command declares. */
static bool has_outputs(tctl_arena *arena, const tctl_attempt *a, const char *out, tctl_attempt_end *end)
{
    for (uint32_t i = 0; i < a->spec->n_outputs; i++) {
        const char *path = tctl_path_join(arena, out, a->spec->outputs[i].path);
        if (path != NULL && tctl_path_exists(path))
            continue;
        end->state = TCTL_STATE_FAILED;
        end->exit_code = TCTL_EXIT_FAILED;
        end->reason = tctl_arena_format(arena, "output '%s' was not made", a->spec->outputs[i].path);
        return false;
    }
    return true;
}

static tctl_status read_trace(tctl_arena *arena, const tctl_attempt *a, tctl_attempt_end *end,
                              tctl_sha256 *ret, tctl_error *err)
{
    const char *path = tctl_path_join(arena, a->folder, "trace.bin");
    tctl_trace_data *trace = NULL;
    uint64_t size = 0;
    if (path == NULL)
        return tctl_fail_memory(err, 0);
    if (!tctl_path_exists(path))
        return TCTL_OK;
    tctl_status st = tctl_trace_read(arena, path, &trace, err);
    if (st == TCTL_OK)
        st = tctl_sha256_file(path, ret, &size, err);
    if (st != TCTL_OK)
        return st;
    end->trace = json_pack("{s:o, s:o, s:i}", "sha256", tctl_json_sha256(ret), "steps",
                           tctl_json_count(trace->n_records), "fields", (int)trace->n_fields);
    return end->trace == NULL ? tctl_fail_memory(err, 0) : TCTL_OK;
}

/* A command that ended well and left an output that its own reader would take for whole, or not at all. */
static tctl_status judge_damage(tctl_arena *arena, const char *path, const char *damage,
                                tctl_attempt_end *end)
{
    end->state = TCTL_STATE_FAILED;
    end->exit_code = TCTL_EXIT_FAILED;
    end->reason = tctl_arena_format(arena, "output '%s' is no result: %s", path, damage);
    end->details = tctl_arena_format(arena,
                                     "error: %s\n  hint: to record it as it is, write outputs: [{path: '%s', "
                                     "compare: bytes}]\n",
                                     end->reason == NULL ? "" : end->reason, path);
    json_decref(end->outputs);
    end->outputs = NULL;
    return TCTL_OK;
}

static tctl_status collect_results(tctl_arena *arena, const tctl_attempt *a, const char *out,
                                   tctl_attempt_end *end, tctl_error *err)
{
    tctl_sha256 trace = {{0}};
    const char *damage = NULL, *path = NULL;
    tctl_status st = tctl_outputs_collect(arena, a->spec, out, a->view, &end->outputs, &damage, &path, err);
    if (st != TCTL_OK)
        return st;
    if (damage != NULL)
        return judge_damage(arena, path, damage, end);
    st = read_trace(arena, a, end, &trace, err);
    if (st == TCTL_OK)
        st = tctl_result_digest(end->outputs, end->trace == NULL ? NULL : &trace, end->child.exit_code,
                                &end->result, err);
    return st;
}

tctl_status tctl_attempt_run(tctl_arena *arena, const tctl_attempt *a, tctl_attempt_end *ret, tctl_error *err)
{
    tctl_attempt_end end = {.state = TCTL_STATE_DONE};
    tctl_envelope envelope = {0};
    const char *const *argv = NULL;
    const char *out = NULL;
    tctl_status st = prepare(arena, a, &out, err);
    if (st == TCTL_OK)
        st = child_argv(arena, a, &argv, err);
    if (st == TCTL_OK)
        st = make_envelope(arena, a, out, &envelope, err);
    for (const char *const *note = envelope.notes; note != NULL && *note != NULL; note++)
        tctl_view_say(a->view, "trainctl: note: %s", *note);
    if (st == TCTL_OK) {
        tctl_child child = {
            .argv = argv,
            .folder = child_folder(a),
            .log_path = tctl_path_join(arena, a->folder, "log.txt"),
            .envelope = &envelope,
            .events = a->spec->command == NULL,
            .grace_seconds = a->grace_seconds,
            .limit_seconds = a->limit_seconds,
            .view = a->view,
        };
        st = child.log_path == NULL ? tctl_fail_memory(err, 0)
                                    : tctl_supervise(arena, &child, &end.child, err);
    }
    if (st == TCTL_OK)
        st = read_interposer(arena, a, &end, err);
    if (st == TCTL_OK && a->spec->command != NULL && a->spec->determinism.python)
        st = tctl_report_python_read(arena, a->folder, end.interposer, end.uncontrolled, &end.python, err);
    if (st == TCTL_OK) {
        end.envelope = json_incref(envelope.record);
        end.worker = a->spec->command == NULL ? read_report(arena, a->folder, "worker.json") : NULL;
        if (end.child.exit_code != 0 || end.child.log_disk_full)
            judge_failure(arena, a, &end);
        else if (a->spec->command == NULL && end.worker == NULL)
            st = tctl_fail(err, TCTL_EIO, "the worker ended well, but left no 'worker.json' in '%s'",
                           a->folder);
        else if (a->trace_stop != NULL || has_outputs(arena, a, out, &end))
            st = collect_results(arena, a, out, &end, err);
    }
    tctl_envelope_release(&envelope);
    if (st == TCTL_OK)
        *ret = end;
    else
        tctl_attempt_release(&end);
    return st;
}

void tctl_attempt_release(tctl_attempt_end *end)
{
    tctl_child_release(&end->child);
    json_decref(end->worker);
    json_decref(end->envelope);
    json_decref(end->interposer);
    json_decref(end->shared_objects);
    json_decref(end->python);
    json_decref(end->uncontrolled);
    json_decref(end->outputs);
    json_decref(end->trace);
    *end = (tctl_attempt_end){0};
}
