/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of optimizers, schedules and hooks: a small training with made-up gradients. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/conform_probe.h"
#include "manifest/digest.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"

#define N_ELEMENTS 1072
#define N_BUFFERS  32
#define N_STEPS    8
#define N_TENSORS  3
#define N_POSITION 200

static const tctl_parameter parameters[N_TENSORS] = {
    {.name = "conv1.weight", .offset = 0, .count = 1000, .rank = 2, .dims = {25, 40}},
    {.name = "conv1.bias",
     .offset = 1008,
     .count = 40,
     .flags = TCTL_PARAMETER_NO_DECAY,
     .rank = 1,
     .dims = {40}},
    {.name = "norm.scale",
     .offset = 1056,
     .count = 10,
     .flags = TCTL_PARAMETER_FROZEN,
     .rank = 1,
     .dims = {10}},
};

/* The flat arrays of a trainer. */
typedef struct arrays {
    float param[N_ELEMENTS], grad[N_ELEMENTS], slot[TCTL_OPTIMIZER_MAX_SLOTS][N_ELEMENTS], buffer[N_BUFFERS];
} arrays;

/* Values for the tensors; the padding between them stays 0. */
static void fill(float *flat, const char *stream, uint32_t step)
{
    for (uint32_t i = 0; i < N_TENSORS; i++)
        tctl_trial_floats(stream, step * N_TENSORS + i, flat + parameters[i].offset, parameters[i].count);
}

static arrays *make_arrays(tctl_error *err)
{
    arrays *a = aligned_alloc(64, (sizeof *a + 63) / 64 * 64);
    if (!a) {
        tctl_fail_memory(err, sizeof *a);
        return NULL;
    }
    memset(a, 0, sizeof *a);
    fill(a->param, "param", 0);
    tctl_trial_floats("buffer", 0, a->buffer, N_BUFFERS);
    return a;
}

/* ---- optimizer --------------------------------------------------------------------------------------- */

/* Ranges of a step: how they are cut depends on the trial, so that it shows if the stage is not elementwise. */
typedef struct optimizer_job {
    arrays *a;
    const tctl_optimizer *optimizer;
    uint32_t step, piece;
    double measured[N_TENSORS];
} optimizer_job;

static tctl_update range_of(const optimizer_job *job, uint32_t tensor, uint64_t from, uint64_t n)
{
    uint64_t at = parameters[tensor].offset + from;
    tctl_update u = {.struct_size = sizeof u,
                     .parameter = &parameters[tensor],
                     .n = n,
                     .param = job->a->param + at,
                     .grad = job->a->grad + at,
                     .lr_factor = 1.0 / (1 + job->step),
                     .step = job->step + 1,
                     .measured = job->measured[tensor]};
    for (uint32_t s = 0; s < job->optimizer->n_slots; s++)
        u.slot[s] = job->a->slot[s] + at;
    return u;
}

static uint32_t n_pieces(uint32_t tensor, uint32_t piece)
{
    return ((uint32_t)parameters[tensor].count + piece - 1) / piece;
}

static void update_piece(void *arg, uint64_t chunk, uint32_t thread)
{
    tctl_trial *t = ((void **)arg)[0];
    const optimizer_job *job = ((void **)arg)[1];
    uint32_t total = n_pieces(0, job->piece) + n_pieces(1, job->piece), tensor = 0;
    uint32_t i = t->reversed ? total - 1 - (uint32_t)chunk : (uint32_t)chunk;
    (void)thread;
    if (i >= n_pieces(0, job->piece)) {
        i -= n_pieces(0, job->piece);
        tensor = 1; /* the third is frozen: never updated */
    }
    uint64_t from = (uint64_t)i * job->piece, left = parameters[tensor].count - from;
    const tctl_update u = range_of(job, tensor, from, left < job->piece ? left : job->piece);
    job->optimizer->update(t->single.use->part.stage, &u);
}

static tctl_status run_optimizer(tctl_trial *t, tctl_error *err)
{
    tctl_pool *pool = NULL;
    optimizer_job job = {
        .a = make_arrays(err), .optimizer = t->vtable, .piece = t->threads > 1 ? 16 * t->threads + 5 : 64};
    tctl_status status = job.a ? tctl_pool_create(t->threads ? t->threads : 1, &pool, err) : TCTL_ENOMEM;
    void *arg[2] = {t, &job};
    t->unit = "step";
    t->n = N_STEPS;
    for (job.step = 0; job.step < N_STEPS && !status; job.step++) {
        fill(job.a->grad, "gradient", job.step);
        for (uint32_t i = 0; i < 2 && job.optimizer->measure; i++) {
            const tctl_update whole = range_of(&job, i, 0, parameters[i].count);
            job.measured[i] = job.optimizer->measure(t->single.use->part.stage, &whole);
        }
        tctl_pool_run(pool, n_pieces(0, job.piece) + n_pieces(1, job.piece), update_piece, arg);
        t->digests[job.step] = tctl_xxh128(job.a, sizeof *job.a);
        if (job.step == N_STEPS / 2)
            status = tctl_trial_resume(t, err);
    }
    tctl_pool_destroy(pool);
    free(job.a);
    return status;
}

const tctl_probe tctl_probe_optimizer = {TCTL_OPTIMIZER_ID, run_optimizer};

/* ---- schedule ---------------------------------------------------------------------------------------- */

static tctl_status factor_item(tctl_trial *t, uint32_t item, void *arg, tctl_error *err)
{
    const tctl_schedule *schedule = t->vtable;
    (void)arg;
    const tctl_position position = {.struct_size = sizeof position,
                                    .step = item == N_POSITION - 1 ? 999 : item * 5u,
                                    .n_steps = 1000,
                                    .steps_per_epoch = 100};
    double factor = schedule->factor(t->single.use->part.stage, &position);
    if (!isfinite(factor) || factor < 0)
        return tctl_fail(err, TCTL_EPLUGIN, "the factor of step %llu of 1000 is %g",
                         (unsigned long long)position.step, factor);
    t->digests[item] = tctl_xxh128(&factor, sizeof factor);
    return TCTL_OK;
}

static tctl_status run_schedule(tctl_trial *t, tctl_error *err)
{
    t->unit = "position";
    t->n = N_POSITION;
    return tctl_trial_items(t, t->n, factor_item, NULL, err);
}

const tctl_probe tctl_probe_schedule = {TCTL_SCHEDULE_ID, run_schedule};

/* ---- hooks ------------------------------------------------------------------------------------------- */

typedef tctl_status moment(tctl_stage *, tctl_training *, tctl_error *);

static tctl_status call(moment *fn, const tctl_trial *t, tctl_training *training, tctl_error *err)
{
    return fn ? fn(t->single.use->part.stage, training, err) : TCTL_OK;
}

/* What the trainer would do with the gradients: plain descent, so that the stage sees weights that move. */
static void update(arrays *a, tctl_training *training)
{
    if (training->action == TCTL_STEP_TAKE) {
        for (uint32_t i = 0; i < parameters[2].offset; i++)
            a->param[i] -= 0.125f * (a->grad[i] / (float)training->loss_scale);
        training->updates++;
    }
    training->position.step += training->action != TCTL_STEP_HOLD;
    training->micro_batch = training->action == TCTL_STEP_HOLD ? training->micro_batch + 1 : 0;
}

static tctl_status hooks_step(tctl_trial *t, const tctl_hooks *hooks, arrays *a, tctl_training *training,
                              uint32_t step, tctl_error *err)
{
    int32_t action = TCTL_STEP_TAKE;
    float grad[N_ELEMENTS] = {0};
    training->batches_left = N_STEPS / 2 - 1 - step % (N_STEPS / 2);
    training->divisor = (double)training->batch_samples;
    training->action = TCTL_STEP_TAKE;
    tctl_status status = call(hooks->batch_ready, t, training, err);
    training->loss = 1.0f / (float)(step + 1);
    if (!status)
        status = call(hooks->loss_ready, t, training, err);
    fill(grad, "gradient", step);
    for (uint32_t i = 0; i < N_ELEMENTS; i++)
        a->grad[i] = (training->micro_batch ? a->grad[i] : 0) + grad[i] * (float)training->loss_scale;
    if (!status && hooks->gradients_ready)
        status = hooks->gradients_ready(t->single.use->part.stage, training, &action, err);
    if (!status && (action < TCTL_STEP_TAKE || action > TCTL_STEP_SKIP))
        status = tctl_fail(err, TCTL_EPLUGIN, "gradients_ready decided the unknown action %d", action);
    training->action = action == TCTL_STEP_HOLD && training->batches_left == 0 ? TCTL_STEP_TAKE : action;
    if (!status) {
        update(a, training);
        status = call(hooks->step_done, t, training, err);
    }
    return status;
}

static void digest_step(tctl_trial *t, uint32_t step, const arrays *a, const tctl_training *training)
{
    const double numbers[4] = {training->divisor, training->loss_scale, (double)training->action,
                               (double)training->accumulate};
    const tctl_trace_value parts[2] = {tctl_xxh128(a, sizeof *a), tctl_xxh128(numbers, sizeof numbers)};
    t->digests[step] = tctl_xxh128(parts, sizeof parts);
}

/* Two epochs of four steps; one more item for the end of the run. */
static tctl_status train(tctl_trial *t, const tctl_hooks *hooks, arrays *a, tctl_error *err)
{
    uint64_t indices[16];
    tctl_training training = {.struct_size = sizeof training,
                              .n_parameters = N_TENSORS,
                              .parameters = parameters,
                              .n_elements = N_ELEMENTS,
                              .param = a->param,
                              .grad = a->grad,
                              .buffer = a->buffer,
                              .position = {.struct_size = sizeof training.position,
                                           .n_steps = N_STEPS,
                                           .steps_per_epoch = N_STEPS / 2},
                              .batch_samples = 16,
                              .sample_indices = indices,
                              .divisor = 16,
                              .loss_scale = 1,
                              .accumulate = 1};
    training.n_buffer_elements = N_BUFFERS;
    for (uint32_t i = 0; i < 16; i++)
        indices[i] = i * 7u;
    tctl_status status = call(hooks->run_begin, t, &training, err);
    for (uint32_t step = 0; step < N_STEPS && !status; step++) {
        training.epoch = step / (N_STEPS / 2);
        if (step % (N_STEPS / 2) == 0)
            status = call(hooks->epoch_begin, t, &training, err);
        if (!status)
            status = hooks_step(t, hooks, a, &training, step, err);
        digest_step(t, step, a, &training);
        if (!status && step % (N_STEPS / 2) == N_STEPS / 2 - 1)
            status = call(hooks->epoch_end, t, &training, err);
        if (!status && t->resume && step == N_STEPS / 2) {
            status = tctl_trial_resume(t, err);
            if (!status)
                status = call(hooks->run_begin, t, &training, err);
        }
    }
    if (!status)
        status = call(hooks->run_end, t, &training, err);
    digest_step(t, N_STEPS, a, &training);
    return status;
}

static tctl_status run_hooks(tctl_trial *t, tctl_error *err)
{
    arrays *a = make_arrays(err);
    t->unit = "step";
    t->n = N_STEPS + 1;
    tctl_status status = a ? train(t, t->vtable, a, err) : TCTL_ENOMEM;
    free(a);
    return status;
}

const tctl_probe tctl_probe_hooks = {TCTL_HOOKS_ID, run_hooks};
