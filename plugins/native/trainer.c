/* SPDX-License-Identifier: Apache-2.0 */
/* A run from begin to end. See trainer.h for where the parts are. */
#include "plugins/native/trainer.h"

#include <math.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- data sets --------------------------------------------------------------------------------------- */

static const tctl_dataset *find_dataset(const tctl_job *job, const char *name)
{
    for (uint32_t i = 0; i < job->n_datasets; i++) {
        if (strcmp(job->datasets[i].name, name) == 0)
            return &job->datasets[i];
    }
    return NULL;
}

static bool is_integer(int32_t dtype)
{
    return dtype == TCTL_U8 || dtype == TCTL_I32 || dtype == TCTL_I64;
}

/* The field that the network reads: `image`, floats, or `tokens`, a row of integers. */
static tctl_status find_input(feed *data, const char *dataset, tctl_error *err)
{
    uint32_t n;
    const tctl_field *fields = tctl_loader_fields(data->loader, &n);
    data->input = tctl_field_find(fields, n, "image");
    if (data->input < n) {
        if (fields[data->input].dtype == TCTL_F32)
            return TCTL_OK;
        return tctl_fail(err, TCTL_ESPEC,
                         "field 'image' of data set '%s' must be f32: add a transform such as 'normalize'",
                         dataset);
    }
    data->input = tctl_field_find(fields, n, "tokens");
    if (data->input == n)
        return tctl_fail(err, TCTL_ESPEC, "data set '%s' has no field 'image' and none 'tokens'", dataset);
    data->tokens = true;
    if (!is_integer(fields[data->input].dtype) || fields[data->input].rank != 1)
        return tctl_fail(err, TCTL_ESPEC, "field 'tokens' of data set '%s' must be integers [positions]",
                         dataset);
    return TCTL_OK;
}

/* The field `label`: one class of a sample, or a row of them. */
static tctl_status find_label(feed *data, const char *dataset, tctl_error *err)
{
    uint32_t n;
    const tctl_field *fields = tctl_loader_fields(data->loader, &n);
    data->label = tctl_field_find(fields, n, "label");
    if (data->label == n)
        return tctl_fail(err, TCTL_ESPEC, "data set '%s' has no field 'label'", dataset);
    const tctl_field *label = &fields[data->label];
    if (label->dtype != TCTL_I64 || label->rank > 1)
        return tctl_fail(err, TCTL_ESPEC, "field 'label' of data set '%s' must be i64, one or a row",
                         dataset);
    data->labels = label->rank == 1 ? (uint32_t)label->dims[0] : 0;
    return TCTL_OK;
}

static tctl_status open_feed(trainer *t, const char *name, bool train, feed *ret, tctl_error *err)
{
    const tctl_stage *o = t->options;
    const tctl_dataset *dataset = find_dataset(t->job, name);
    if (!dataset && train)
        return tctl_fail(err, TCTL_ESPEC, "the native trainer needs a data set 'train' under 'data'");
    if (!dataset)
        return TCTL_OK;
    const tctl_loader_request request = {.dataset = dataset,
                                         .seed = t->job->seed,
                                         .shuffle = train && o->shuffle,
                                         .drop_last = train && o->drop_last,
                                         .batch = train ? o->batch : o->eval_batch,
                                         .resources = t->job->resources};
    tctl_status st = tctl_loader_create(&request, &ret->loader, err);
    if (!st)
        st = find_input(ret, name, err);
    if (!st)
        st = find_label(ret, name, err);
    if (!st && tctl_loader_batches(ret->loader) == 0)
        st = tctl_fail(err, TCTL_ESPEC, "data set '%s' has %llu samples, fewer than one batch of %u", name,
                       (unsigned long long)tctl_loader_samples(ret->loader), request.batch);
    return st;
}

static void warn_of_unused(const trainer *t)
{
    const tctl_stage *o = t->options;
    for (uint32_t i = 0; o->log && i < t->job->n_datasets; i++) {
        const char *name = t->job->datasets[i].name;
        if (strcmp(name, "train") != 0 && strcmp(name, "test") != 0)
            o->log->message(o->host, TCTL_LOG_WARNING,
                            "data set '%s' is not used: there are 'train' and 'test'", name);
    }
}

static const tctl_field *input_of(const feed *data)
{
    uint32_t n;
    return &tctl_loader_fields(data->loader, &n)[data->input];
}

static tctl_status check_same_shapes(const trainer *t, tctl_error *err)
{
    const tctl_field *a = input_of(&t->train), *b = t->test.loader ? input_of(&t->test) : a;
    if (a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return tctl_fail(err, TCTL_ESPEC, "%s of data set 'test' do not have the shape of those of 'train'",
                         t->train.tokens ? "tokens" : "images");
    if (t->test.loader && t->test.labels != t->train.labels)
        return tctl_fail(err, TCTL_ESPEC,
                         "labels of data set 'test' do not have the shape of those of 'train'");
    return TCTL_OK;
}

/* ---- begin and end ----------------------------------------------------------------------------------- */

/* Once: what the plan takes, and what a number for each parameter takes, with gradients and the optimizer's slots. */
static void tell_memory(const trainer *t)
{
    const tctl_stage *o = t->options;
    if (o->log)
        o->log->message(o->host, TCTL_LOG_INFO,
                        "planned memory: activations %.1f MiB, parameters %.1f MiB (with gradients and "
                        "optimizer)",
                        (double)t->activation_bytes / 0x1p20, (double)t->parameter_bytes / 0x1p20);
}

static tctl_status find_parts(trainer *t, tctl_error *err)
{
    const tctl_part *optimizer = t->options->optimizer, *schedule = t->options->schedule;
    t->optimizer = tctl_plugin_extension(optimizer->plugin, TCTL_OPTIMIZER_ID);
    t->schedule = tctl_plugin_extension(schedule->plugin, TCTL_SCHEDULE_ID);
    if (!t->optimizer || !t->schedule)
        return tctl_fail(err, TCTL_EPLUGIN, "plugin '%s' does not provide '%s'",
                         t->optimizer ? schedule->name : optimizer->name,
                         t->optimizer ? TCTL_SCHEDULE_ID : TCTL_OPTIMIZER_ID);
    if (t->optimizer->n_slots > TCTL_OPTIMIZER_MAX_SLOTS)
        return tctl_fail(err, TCTL_EPLUGIN, "optimizer '%s' has %u slots; at most %d are possible",
                         optimizer->name, t->optimizer->n_slots, TCTL_OPTIMIZER_MAX_SLOTS);
    return TCTL_OK;
}

static tctl_status build_network(trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    tctl_status st = tctl_native_rewrite(t->job, err);
    if (st)
        return st;
    const tctl_network_request request = {
        .model = t->job->model,
        .models = t->job->models,
        .input = input_of(&t->train),
        .n_labels = t->train.labels,
        .max_batch = o->batch > o->eval_batch || !t->test.loader ? o->batch : o->eval_batch,
        .label_smoothing = o->label_smoothing,
        .seed = t->job->seed,
        .pool = t->pool};
    st = tctl_network_create(&request, &t->network, err);
    if (st)
        return st;
    t->memory = tctl_network_memory_of(t->network);
    t->activation_bytes = t->memory->activation_bytes;
    t->parameter_bytes =
        t->memory->parameter_bytes + t->memory->n_elements * sizeof(float) * t->optimizer->n_slots;
    return TCTL_OK;
}

static void prepare_view(trainer *t)
{
    const tctl_network_memory *m = t->memory;
    tctl_training *v = &t->view;
    v->struct_size = sizeof *v;
    v->n_parameters = m->n_parameters;
    v->parameters = m->parameters;
    v->n_slots = t->optimizer->n_slots;
    v->n_buffers = m->n_buffers;
    v->buffers = m->buffers;
    v->n_elements = m->n_elements;
    v->n_buffer_elements = m->n_buffer_elements;
    v->param = m->param;
    v->grad = m->grad;
    v->buffer = m->buffer;
    v->divisor = t->options->batch;
    v->loss_scale = 1;
    v->accumulate = 1;
    v->position.struct_size = sizeof v->position;
}

/* Updates per epoch and per run, for as many micro-batches per update as the stages want. */
static tctl_status count_steps(trainer *t, tctl_error *err)
{
    tctl_training *v = &t->view;
    uint64_t batches = tctl_loader_batches(t->train.loader);
    if (v->accumulate == 0)
        return tctl_fail(err, TCTL_EPLUGIN, "a stage set 'accumulate' to 0; 1 means none");
    v->position.steps_per_epoch = batches / v->accumulate + (batches % v->accumulate != 0);
    if (v->position.steps_per_epoch > UINT32_MAX / t->options->epochs)
        return tctl_fail(err, TCTL_ESPEC, "a run of more than %u steps is not possible", UINT32_MAX);
    v->position.n_steps = v->position.steps_per_epoch * t->options->epochs;
    if (t->options->max_steps && t->options->max_steps < v->position.n_steps)
        v->position.n_steps = t->options->max_steps;
    return TCTL_OK;
}

static tctl_status set_up(trainer *t, tctl_error *err)
{
    tctl_status st = find_parts(t, err);
    if (!st)
        st = tctl_pool_create(t->job->resources->threads, &t->pool, err);
    if (!st)
        st = open_feed(t, "train", true, &t->train, err);
    if (!st)
        st = open_feed(t, "test", false, &t->test, err);
    if (!st)
        st = check_same_shapes(t, err);
    if (!st)
        st = build_network(t, err);
    if (st)
        return st;
    prepare_view(t);
    tell_memory(t);
    warn_of_unused(t);
    st = tctl_native_find_hooks(t, err);
    if (!st)
        st = tctl_native_plan_update(t, err);
    if (!st)
        st = tctl_native_moment(t, RUN_BEGIN, err);
    if (!st)
        st = count_steps(t, err);
    return st ? st : tctl_native_trace_begin(t, err);
}

static void tear_down(trainer *t)
{
    const tctl_stage *o = t->options;
    tctl_native_trace_end(t);
    tctl_loader_destroy(t->train.loader);
    tctl_loader_destroy(t->test.loader);
    tctl_network_destroy(t->network);
    tctl_pool_destroy(t->pool);
    for (uint32_t k = 0; k < TCTL_OPTIMIZER_MAX_SLOTS; k++)
        o->memory->release(o->host, t->view.slot[k]);
    o->memory->release(o->host, t->ranges);
    o->memory->release(o->host, t->measured);
    o->memory->release(o->host, t->hooked);
}

/* ---- epochs ------------------------------------------------------------------------------------------ */

static bool is_done(const trainer *t)
{
    return t->ends || t->view.position.step >= t->view.position.n_steps;
}

static tctl_status train_epoch(trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    tctl_status st = tctl_native_moment(t, EPOCH_BEGIN, err);
    if (!st)
        st = tctl_loader_start(t->train.loader, (uint32_t)t->view.epoch, 0, err);
    t->epoch = (score){0};
    while (!st && !is_done(t)) {
        const tctl_loaded_batch *batch = NULL;
        st = tctl_native_check_cancel(t, err);
        if (!st)
            st = tctl_loader_next(t->train.loader, &batch, err);
        if (st || !batch)
            break;
        st = tctl_native_step(t, batch, err);
        if (!st && o->log)
            o->log->progress(o->host, "train", t->view.position.step, t->view.position.n_steps, "steps");
    }
    return st || t->ends ? st : tctl_native_moment(t, EPOCH_END, err);
}

/* The metrics that stand for a score, under names that begin with `prefix`. */
static uint32_t put_score(tctl_metric *to, const char *loss, const char *accuracy, const score *s)
{
    double n = s->labels ? (double)s->labels : 1;
    to[0] = (tctl_metric){accuracy, (double)s->correct / n};
    to[1] = (tctl_metric){loss, s->loss / n};
    return 2;
}

enum { MAX_METRICS = 8 };

/* What the run's memory was planned to be: no result, for scratch memory follows the number of threads. */
static uint32_t put_memory(tctl_metric *to, const trainer *t)
{
    to[0] = (tctl_metric){"activation_bytes", (double)t->activation_bytes};
    to[1] = (tctl_metric){"parameter_bytes", (double)t->parameter_bytes};
    return 2;
}

static tctl_status report(trainer *t, uint64_t train_ns, const score *test, tctl_error *err)
{
    const tctl_stage *o = t->options;
    if (!o->metrics)
        return TCTL_OK;
    tctl_metric values[MAX_METRICS], timings[MAX_METRICS];
    uint32_t n = put_score(values, "train_loss", "train_accuracy", &t->epoch);
    if (t->test.loader)
        n += put_score(values + n, "test_loss", "test_accuracy", test);
    values[n++] = (tctl_metric){"lr_factor", t->lr_factor};
    double seconds = (double)train_ns * 1e-9;
    uint32_t m = put_memory(timings, t);
    timings[m++] = (tctl_metric){"images_per_s", seconds > 0 ? (double)t->epoch.samples / seconds : 0};
    timings[m++] = (tctl_metric){"seconds", seconds};
    timings[m++] = (tctl_metric){"trace_share", train_ns ? (double)t->trace_ns / (double)train_ns : 0};
    return o->metrics->emit(o->host, t->view.epoch + 1, t->view.position.step, values, n, timings, m, err);
}

static tctl_status run_epochs(trainer *t, score *test, tctl_error *err)
{
    tctl_status st = TCTL_OK;
    for (uint64_t epoch = 0; !st && epoch < t->options->epochs && !is_done(t); epoch++) {
        uint64_t began = now_ns();
        t->view.epoch = epoch;
        t->trace_ns = 0;
        st = train_epoch(t, err);
        uint64_t train_ns = now_ns() - began;
        if (st || t->ends)
            break;
        if (t->test.loader)
            st = tctl_native_evaluate(t, &t->test, test, err);
        if (!st)
            st = report(t, train_ns, test, err);
    }
    return st;
}

/* Stages may replace the parameters; then the saved model is another than the one that was tested, and the last epoch
 * gets a second line of metrics. */
static tctl_status finish(trainer *t, score *test, tctl_error *err)
{
    const tctl_stage *o = t->options;
    tctl_status st = tctl_native_moment(t, RUN_END, err);
    tctl_metric metrics[MAX_METRICS];
    uint32_t n = 0;
    metrics[n++] = (tctl_metric){"steps", (double)t->view.position.step};
    if (!st && t->test.loader && tctl_native_has_run_end(t)) {
        st = tctl_native_evaluate(t, &t->test, test, err);
        tctl_metric values[2], memory[2];
        uint32_t m = put_score(values, "test_loss", "test_accuracy", test), k = put_memory(memory, t);
        if (!st && o->metrics)
            st = o->metrics->emit(o->host, t->view.epoch + 1, t->view.position.step, values, m, memory, k,
                                  err);
    }
    if (t->test.loader)
        n += put_score(metrics + n, "test_loss", "test_accuracy", test);
    n += put_score(metrics + n, "train_loss", "train_accuracy", &t->epoch);
    if (!st)
        st = tctl_native_save_model(t, err);
    return st ? st : tctl_native_save_metrics(t, metrics, n, err);
}

tctl_status tctl_native_run(tctl_stage *options, const tctl_job *job, tctl_error *err)
{
    trainer t = {.options = options, .job = job};
    score test = {0};
    tctl_status st = set_up(&t, err);
    if (!st)
        st = run_epochs(&t, &test, err);
    if (!st && !t.ends)
        st = finish(&t, &test, err);
    tear_down(&t);
    return st;
}
