/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small world for the native trainer, which runs in the test's process: a data set made up here, services that
 * write down all that must repeat, and one call that trains.
 */
#ifndef TCTL_TESTS_NATIVE_WORLD_H
#define TCTL_TESTS_NATIVE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/model.h"
#include "plugins/fake_host.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/trainer.h"

/* ---- data: 8 x 8 noise with a bright stripe, whose place is the class ------------------------------- */

enum { SIDE = 8, CLASSES = 3, SAMPLES = 270 };

static bool bad_label;

static uint64_t source_count(tctl_stage *s)
{
    (void)s;
    return SAMPLES;
}

static uint32_t source_describe(tctl_stage *s, tctl_field *fields, uint32_t cap)
{
    (void)s;
    if (cap > 0)
        fields[0] = (tctl_field){.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {SIDE, SIDE, 1}};
    if (cap > 1)
        fields[1] = (tctl_field){.name = "label", .dtype = TCTL_I64};
    return 2;
}

static tctl_status source_read(tctl_stage *s, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    (void)s;
    (void)err;
    float *x = out[0].data;
    int64_t label = (int64_t)(sample * 7 % CLASSES);
    uint64_t noise = sample * 6364136223846793005u + 1442695040888963407u;
    for (int i = 0; i < SIDE * SIDE; i++) {
        noise = noise * 6364136223846793005u + 1442695040888963407u;
        x[i] = (float)(int32_t)(noise >> 40) * 0x1p-23f - 1 + (i / SIDE / 2 == label ? 1 : 0);
    }
    if (bad_label && sample == 5)
        label = CLASSES;
    memcpy(out[1].data, &label, sizeof label);
    return TCTL_OK;
}

static const tctl_source source = {
    .struct_size = sizeof source, .count = source_count, .describe = source_describe, .read = source_read};
static const tctl_extension source_extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_plugin source_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "made-up",
                                          .extensions = source_extensions};

/* ---- what the trainer tells the host ----------------------------------------------------------------- */

enum { ROOM = 1 << 20 };

/* Everything that must repeat, in the order in which it came. */
static struct {
    unsigned char bytes[ROOM];
    size_t n;
    char names[4096]; /* of the trace's fields */
    unsigned char model[ROOM];
    size_t n_model;
    double test_accuracy, first_loss, last_loss;
    uint64_t records;
    int polls_left; /* cancel after so many questions; below 0: never */
} seen;

static void see(const void *data, size_t n)
{
    TCTL_BUG_IF(seen.n + n > sizeof seen.bytes);
    memcpy(seen.bytes + seen.n, data, n);
    seen.n += n;
}

static tctl_status trace_begin(const tctl_host *h, const tctl_trace_field *fields, uint32_t n,
                               tctl_error *err)
{
    (void)h;
    (void)err;
    for (uint32_t i = 0; i < n; i++)
        snprintf(seen.names + strlen(seen.names), sizeof seen.names - strlen(seen.names), "%s%s",
                 i ? " " : "", fields[i].name);
    see(&n, sizeof n);
    return TCTL_OK;
}

static tctl_status trace_record(const tctl_host *h, uint64_t step, const tctl_trace_value *values,
                                tctl_error *err)
{
    (void)h;
    (void)err;
    uint32_t n;
    memcpy(&n, seen.bytes, sizeof n);
    assert_int_equal(step, seen.records + 1);
    seen.records++;
    see(values, n * sizeof *values);
    return TCTL_OK;
}

/* FNV-1a: any digest will do here. */
static tctl_trace_value trace_digest(const void *data, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return (tctl_trace_value){h, n};
}

static tctl_status metrics_emit(const tctl_host *host, uint64_t epoch, uint64_t step,
                                const tctl_metric *values, uint32_t n, const tctl_metric *timings,
                                uint32_t n_timings, tctl_error *err)
{
    (void)host;
    (void)timings;
    (void)n_timings;
    (void)err;
    see(&epoch, sizeof epoch);
    see(&step, sizeof step);
    for (uint32_t i = 0; i < n; i++) {
        see(&values[i].value, sizeof(double));
        if (strcmp(values[i].name, "train_loss") == 0)
            seen.last_loss = values[i].value;
        if (strcmp(values[i].name, "train_loss") == 0 && epoch == 1)
            seen.first_loss = values[i].value;
        if (strcmp(values[i].name, "test_accuracy") == 0)
            seen.test_accuracy = values[i].value;
    }
    return TCTL_OK;
}

static tctl_status artifact_begin(const tctl_host *host, const char *name, tctl_artifact **ret,
                                  tctl_error *err)
{
    (void)host;
    (void)err;
    see(name, strlen(name));
    static char model, other;
    *ret = (tctl_artifact *)(void *)(strcmp(name, "model.safetensors") == 0 ? &model : &other);
    if (*(char **)(void *)ret == &model)
        seen.n_model = 0;
    model = 1;
    other = 0;
    return TCTL_OK;
}

static tctl_status artifact_write(tctl_artifact *file, const void *data, size_t n, tctl_error *err)
{
    (void)err;
    see(data, n);
    if (*(const char *)(const void *)file) {
        memcpy(seen.model + seen.n_model, data, n);
        seen.n_model += n;
    }
    return TCTL_OK;
}

static tctl_status artifact_commit(tctl_artifact *file, tctl_error *err)
{
    (void)file;
    (void)err;
    return TCTL_OK;
}

static void artifact_abandon(tctl_artifact *file)
{
    (void)file;
}

static int cancel_requested(const tctl_host *host)
{
    (void)host;
    return seen.polls_left >= 0 && seen.polls_left-- == 0;
}

static const tctl_trace trace = {
    .struct_size = sizeof trace, .begin = trace_begin, .record = trace_record, .digest = trace_digest};
static const tctl_metrics metrics = {.struct_size = sizeof metrics, .emit = metrics_emit};
static const tctl_artifacts artifacts = {.struct_size = sizeof artifacts,
                                         .begin = artifact_begin,
                                         .write = artifact_write,
                                         .commit = artifact_commit,
                                         .abandon = artifact_abandon};
static const tctl_cancel cancel = {.struct_size = sizeof cancel, .requested = cancel_requested};
static const struct fake_service services[] = {{TCTL_TRACE_ID, &trace},
                                               {TCTL_METRICS_ID, &metrics},
                                               {TCTL_ARTIFACT_ID, &artifacts},
                                               {TCTL_CANCEL_ID, &cancel},
                                               {NULL, NULL}};

/* ---- a run ------------------------------------------------------------------------------------------- */

typedef struct setting {
    uint32_t threads, workers, prefetch;
    uint64_t cache;
    const char *eval_batch, *batch, *epochs, *lr, *trace_every, *max_steps;
    const tctl_plugin *stage; /* NULL: none */
    bool norm;                /* with batch-norm */
    bool no_train;
    int polls;
} setting;

static const setting usual = {.threads = 2,
                              .workers = 1,
                              .prefetch = 2,
                              .eval_batch = "64",
                              .batch = "32",
                              .epochs = "3",
                              .lr = "0.05",
                              .trace_every = "1 steps",
                              .norm = true,
                              .polls = -1};

static void add(tctl_model *m, const char *name, const char *op, const tctl_attr *attrs, uint32_t n)
{
    const tctl_model_service *s = tctl_model_service_of();
    const uint32_t at = s->n_nodes(m);
    const tctl_node node = {
        .name = name, .op = op, .n_inputs = 1, .inputs = {(int32_t)at - 1}, .attrs = attrs, .n_attrs = n};
    assert_int_equal(s->insert(m, at, &node, NULL), TCTL_OK);
}

static tctl_model *make_model(bool norm)
{
    const tctl_attr conv[] = {{.name = "out", .type = TCTL_INT, .i = 5},
                              {.name = "kernel", .type = TCTL_INT, .i = 3},
                              {.name = "pad", .type = TCTL_INT, .i = 1}},
                    pool[] = {{.name = "kernel", .type = TCTL_INT, .i = 2}},
                    linear[] = {{.name = "out", .type = TCTL_INT, .i = CLASSES}};
    tctl_model *m = NULL;
    assert_int_equal(tctl_model_create(&m, NULL), TCTL_OK);
    add(m, "conv1", "conv", conv, 3);
    if (norm)
        add(m, "norm1", "batchnorm", NULL, 0);
    add(m, "relu1", "relu", NULL, 0);
    add(m, "pool1", "maxpool", pool, 1);
    add(m, "flatten1", "flatten", NULL, 0);
    add(m, "linear1", "linear", linear, 1);
    return m;
}

static tctl_status train(const setting *s, tctl_error *err)
{
    memset(&seen, 0, sizeof seen);
    seen.polls_left = s->polls;
    tctl_error_clear(err);
    const tctl_plugin *native = fake_plugin("native"), *sgd = fake_plugin("sgd"),
                      *constant = fake_plugin("constant");
    const tctl_part optimizer = {
        sgd, fake_stage(sgd, (fake_option[]){{"lr", s->lr}, {"momentum", "0.9"}, {NULL, NULL}}), "sgd"};
    const tctl_part schedule = {constant, fake_stage(constant, NULL), "constant"};
    const struct fake_part parts[] = {{"optimizer", &optimizer}, {"schedule", &schedule}, {NULL, NULL}};
    fake.parts = parts;
    fake.services = services;
    fake_option options[8] = {{"epochs", s->epochs},
                              {"batch", s->batch},
                              {"eval_batch", s->eval_batch},
                              {"trace_every", s->trace_every}};
    if (s->max_steps)
        options[4] = (fake_option){"max_steps", s->max_steps};
    tctl_stage *stage = fake_stage(native, options);
    const tctl_dataset datasets[] = {{.name = "test", .source = {&source_plugin, NULL, "made-up"}},
                                     {.name = "train", .source = {&source_plugin, NULL, "made-up"}}};
    const tctl_resources resources = {.struct_size = sizeof resources,
                                      .threads = s->threads,
                                      .workers = s->workers,
                                      .prefetch = s->prefetch,
                                      .cache_bytes = s->cache,
                                      .device = "cpu"};
    const tctl_part stages[] = {{s->stage, NULL, "probe"}};
    tctl_model *model = make_model(s->norm);
    const tctl_job job = {.struct_size = sizeof job,
                          .n_datasets = s->no_train ? 1 : 2,
                          .n_stages = s->stage ? 1 : 0,
                          .seed = 7,
                          .model = model,
                          .models = tctl_model_service_of(),
                          .datasets = datasets,
                          .stages = stages,
                          .resources = &resources};
    const tctl_trainer *trainer = fake_extension(native, TCTL_TRAINER_ID);
    tctl_status st = trainer->run(stage, &job, err);
    tctl_model_destroy(model);
    native->destroy(stage);
    sgd->destroy(optimizer.stage);
    constant->destroy(schedule.stage);
    assert_int_equal(fake.allocated, 0);
    return st;
}

static TCTL_UNUSED void must_train(const setting *s)
{
    tctl_error err;
    tctl_status st = train(s, &err);
    if (st)
        fail_msg("%s (%s)", err.message, err.n_notes ? err.notes[0] : "");
}

#endif
