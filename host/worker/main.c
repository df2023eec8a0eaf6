/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl-worker RUN-DIR: the process in which the plugins work. host/worker.h is the protocol.
 *
 * Started by the launcher and by nobody else. Reads the launcher's copy of the spec with the same code, must find the
 * same recipe, makes the stages, runs the trainer. Before any call that could take the process down it says so on the
 * event descriptor, so that the launcher can name who was at work. Dies with the launcher.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "host/events.h"
#include "host/model.h"
#include "host/plugins.h"
#include "host/services.h"
#include "host/stage.h"
#include "host/surroundings.h"
#include "host/worker.h"
#include "host/worker/report.h"
#include "host/worker/request.h"
#include "trainctl/ext/trainer.h"

#define SELF "/proc/self/exe"

/* The signal that asked to stop; 0: none did. */
static volatile sig_atomic_t stop_signal;

static void on_stop(int signal_number)
{
    if (stop_signal) { /* asked twice */
        (void)signal(signal_number, SIG_DFL);
        (void)raise(signal_number);
    }
    stop_signal = signal_number;
}

typedef struct worker {
    tctl_arena *arena;
    const char *run;
    int events_fd;
    tctl_worker_request request;
    tctl_plugins *plugins;
    tctl_diags diags;
    tctl_spec *spec;
    tctl_pool *pool;
    tctl_services *services;
    tctl_stages *stages;
    tctl_model *model;
} worker;

/* ---- reading ----------------------------------------------------------------------------------------- */

static void on_load(void *arg, const char *path)
{
    tctl_event_phase(((const worker *)arg)->events_fd, "load", path);
}

static void on_stage(void *arg, const char *phase, const char *who)
{
    tctl_event_phase(((const worker *)arg)->events_fd, phase, who);
}

static tctl_status open_plugins(worker *w, tctl_error *err)
{
    char program[4096];
    ssize_t n = readlink(SELF, program, sizeof program - 1);
    if (n < 0)
        return tctl_fail_errno(err, errno, "cannot read the link '%s'", SELF);
    program[n] = '\0';
    tctl_status status = tctl_plugins_create(program, &w->plugins, err);
    if (!status)
        tctl_plugins_watch(w->plugins, on_load, w);
    return status;
}

static tctl_status check_recipe(const worker *w, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_status status = tctl_json_canonical(w->spec->recipe, &text, err);
    if (!status) {
        tctl_sha256 digest = tctl_sha256_of(text.data, text.size);
        char was[TCTL_SHA256_HEX], is[TCTL_SHA256_HEX];
        tctl_sha256_hex(&w->request.recipe_digest, was);
        tctl_sha256_hex(&digest, is);
        if (!tctl_sha256_equal(&digest, &w->request.recipe_digest)) {
            status = tctl_fail(err, TCTL_ECHANGED, "the worker reads another recipe than the launcher did");
            tctl_note(err, "the launcher's is %s, the worker's is %s", was, is);
            tctl_note(err, "a plugin, or trainctl itself, was changed in between");
        }
    }
    tctl_buf_release(&text);
    return status;
}

static tctl_status read_spec(worker *w, tctl_error *err)
{
    const tctl_plugin_finder finder = tctl_plugins_finder(w->plugins);
    tctl_status status = tctl_spec_load(&w->request.spec, &finder, &w->spec, &w->diags);
    if (status)
        return tctl_fail(err, status, "'%s' cannot be read: %s", w->request.spec.path,
                         tctl_status_text(status));
    if (!w->spec->trainer)
        return tctl_fail(err, TCTL_EINVAL, "'%s' has no 'train:', so there is nothing for a worker to do",
                         w->request.spec.path);
    return check_recipe(w, err);
}

/* ---- making ------------------------------------------------------------------------------------------ */

static tctl_status make_services(worker *w, tctl_error *err)
{
    tctl_status status = tctl_pool_create(w->spec->resources.threads, &w->pool, err);
    if (status)
        return status;
    const tctl_services_request request = {.seed = w->spec->seed,
                                           .pool = w->pool,
                                           .out = w->request.out,
                                           .partial = w->request.partial,
                                           .metrics = w->request.metrics,
                                           .trace = w->request.trace,
                                           .wish = w->request.wish,
                                           .log_fd = STDERR_FILENO,
                                           .events_fd = w->events_fd,
                                           .log_level = TCTL_LOG_INFO,
                                           .cancel = &stop_signal};
    return tctl_services_create(&request, &w->services, err);
}

static tctl_status make_stages(worker *w, tctl_error *err)
{
    const tctl_stages_request request = {.services = w->services, .watch = on_stage, .watch_arg = w};
    tctl_status status = tctl_stages_begin(&request, &w->stages, err);
    for (uint32_t i = 0; i < w->spec->n_data && !status; i++) {
        const tctl_data_spec *data = &w->spec->data[i];
        if (data->source)
            status = tctl_stages_add(w->stages, data->source, NULL, err);
        for (uint32_t k = 0; k < data->n_transforms && !status; k++)
            status = tctl_stages_add(w->stages, data->transforms[k], NULL, err);
    }
    for (uint32_t i = 0; i < w->spec->n_stages && !status; i++)
        status = tctl_stages_add(w->stages, w->spec->stages[i], NULL, err);
    if (!status)
        status = tctl_stages_add(w->stages, w->spec->trainer, "", err);
    return status;
}

static tctl_part *parts_of(tctl_arena *arena, tctl_use *const *uses, uint32_t n)
{
    tctl_part *parts = tctl_arena_take_array(arena, (size_t)n + 1, sizeof *parts);
    for (uint32_t i = 0; parts && i < n; i++)
        parts[i] = uses[i]->part;
    return parts;
}

static tctl_status make_job(worker *w, tctl_job *job, tctl_error *err)
{
    const tctl_spec *spec = w->spec;
    uint32_t n = 0;
    tctl_dataset *datasets = tctl_arena_take_array(w->arena, (size_t)spec->n_data + 1, sizeof *datasets);
    tctl_part *stages = parts_of(w->arena, spec->stages, spec->n_stages);
    if (!datasets || !stages)
        return tctl_fail_memory(err, spec->n_data * sizeof *datasets);
    for (uint32_t i = 0; i < spec->n_data; i++) {
        const tctl_data_spec *data = &spec->data[i];
        tctl_part *transforms = parts_of(w->arena, data->transforms, data->n_transforms);
        if (!transforms)
            return tctl_fail_memory(err, data->n_transforms * sizeof *transforms);
        if (data->source) /* a plain path is there to be hashed, not to be read */
            datasets[n++] = (tctl_dataset){.name = data->name,
                                           .source = data->source->part,
                                           .transforms = transforms,
                                           .n_transforms = data->n_transforms};
    }
    tctl_status status = tctl_model_from_spec(spec, &w->model, err);
    if (!status)
        *job = (tctl_job){.struct_size = sizeof *job,
                          .n_datasets = n,
                          .n_stages = spec->n_stages,
                          .seed = spec->seed,
                          .model = w->model,
                          .models = tctl_model_service_of(),
                          .datasets = datasets,
                          .stages = stages,
                          .resources = &spec->resources};
    return status;
}

/* ---- running ----------------------------------------------------------------------------------------- */

static tctl_status run_trainer(worker *w, tctl_error *err)
{
    const tctl_part *part = &w->spec->trainer->part;
    const tctl_trainer *trainer = tctl_plugin_extension(part->plugin, TCTL_TRAINER_ID);
    tctl_job job;
    char who[256];
    tctl_status status = make_job(w, &job, err);
    if (status)
        return status;
    snprintf(who, sizeof who, "%s (plugin '%.100s')", w->spec->trainer->config->where, part->plugin->name);
    if (!trainer)
        return tctl_fail(err, TCTL_EPLUGIN, "%s does not provide '%s'", who, TCTL_TRAINER_ID);
    tctl_event_phase(w->events_fd, "run", who);
    tctl_error_clear(err);
    status = trainer->run(part->stage, &job, err);
    if (status > 0 || (status && err->code == TCTL_OK))
        return tctl_fail(err, status > 0 ? TCTL_EPLUGIN : status,
                         "%s failed and does not say why (status %d)", who, status);
    /* Whatever worked in this process was to leave the mode alone; results made in another one can't be trusted. */
    return status ? status : tctl_fp_mode_check(tctl_fp_mode_default(), "a stage", err);
}

static tctl_status work(worker *w, tctl_error *err)
{
    tctl_status status = tctl_worker_request_read(w->arena, w->run, &w->request, err);
    if (!status)
        status = tctl_fp_mode_check(tctl_fp_mode_default(), "a preloaded library", err);
    if (!status)
        status = open_plugins(w, err);
    if (!status)
        status = read_spec(w, err);
    if (!status)
        status = make_services(w, err);
    if (!status)
        status = make_stages(w, err);
    if (!status)
        status = run_trainer(w, err);
    return status;
}

/* The first failure counts; what fails while cleaning up afterwards is only told if nothing did before. */
static tctl_status finish(worker *w, tctl_status status, tctl_error *err)
{
    tctl_error later;
    tctl_error_clear(&later);
    const tctl_worker_report report = {
        .run = w->run, .plugins = w->plugins, .spec = w->spec, .services = w->services};
    tctl_stages_destroy(w->stages);
    tctl_status closed = w->services ? tctl_services_close(w->services, &later) : TCTL_OK;
    if (!closed)
        closed = tctl_worker_report_write(&report, &later);
    if (!status && closed) {
        status = closed;
        *err = later;
    }
    if (status)
        tctl_worker_report_error(&report, err, &w->diags);
    tctl_services_destroy(w->services);
    tctl_pool_destroy(w->pool);
    tctl_model_destroy(w->model);
    tctl_spec_destroy(w->spec);
    tctl_diags_release(&w->diags);
    tctl_plugins_destroy(w->plugins);
    tctl_arena_destroy(w->arena);
    return status;
}

static int exit_code(tctl_status status)
{
    switch (status) {
    case TCTL_OK:
        return TCTL_EXIT_OK;
    case TCTL_ESPEC:
        return TCTL_EXIT_SPEC;
    case TCTL_EPLUGIN:
        return TCTL_EXIT_PLUGIN;
    case TCTL_EDETERMINISM:
        return TCTL_EXIT_DETERMINISM;
    case TCTL_ECANCELED:
        return stop_signal ? TCTL_EXIT_SIGNAL + (int)stop_signal : TCTL_EXIT_FAILED;
    default:
        return TCTL_EXIT_FAILED;
    }
}

/* ---- the process ------------------------------------------------------------------------------------- */

static void set_up_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN; /* a launcher that no longer listens shows as EPIPE */
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Descriptor 3 if the launcher listens there, else -1. */
static int events_descriptor(void)
{
    struct stat st;
    if (fstat(TCTL_WORKER_EVENTS_FD, &st) != 0 || !(S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
        return -1;
    (void)fcntl(TCTL_WORKER_EVENTS_FD, F_SETFD, FD_CLOEXEC);
    return TCTL_WORKER_EVENTS_FD;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: trainctl-worker RUN-DIR\nstarted by 'trainctl run'; see host/worker.h\n", stderr);
        return TCTL_EXIT_USAGE;
    }
    set_up_signals();
    tctl_error err;
    tctl_error_clear(&err);
    worker w = {.arena = tctl_arena_create(), .run = argv[1], .events_fd = events_descriptor()};
    tctl_status status = w.arena ? work(&w, &err) : tctl_fail_memory(&err, 0);
    return exit_code(finish(&w, status, &err));
}
