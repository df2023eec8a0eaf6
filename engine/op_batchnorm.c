/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batchnorm: Ioffe and Szegedy, "Batch Normalization", ICML 2015, algorithm 1. With M positions per channel, sums by
 * leaves and the tree, every operation rounded on its own:
 *
 *     mean = sum x / M       var = sum (x - mean)^2 / M       inv = 1 / sqrt(var + eps)
 *     y = (x - mean) * (scale * inv) + shift
 *     dshift = sum dy        dscale = (sum dy * (x - mean)) * inv
 *     dx = (scale * inv) * ((dy - dshift / M) - (x - mean) * (inv * (dscale / M)))
 *     running = running * (1 - momentum) + new * momentum, the new variance being sum (x - mean)^2 / max(M - 1, 1)
 *
 * `scale` is the parameter "weight", `shift` is "bias". In evaluation mode mean and variance are the running ones.
 * With M = 1 the output is `shift`.
 *
 * A ReLU and a max-pool behind it are computed in the same pass (fuse.c). What would be their gradient is made again
 * for each of the two passes of the backward, in a strip of positions that stays in the first-level cache.
 */
#include <math.h>

#include "engine/batchnorm.h"
#include "engine/conv.h"
#include "engine/math/norm.h"
#include "engine/reduce.h"

enum { STRIP_FLOATS = 2048 };

typedef struct plan {
    int64_t channels, height, width; /* of the input */
    float eps, momentum, keep;
    bool affine;
    tctl_leaves leaves;
    int64_t units; /* of the largest batch */
} plan;

/* What is saved: [N_COEFFICIENTS][channels], the sums of each unit [units][channels], then the pool's winners.
 * y = (x - mean) * factor + shift; dx = factor * ((dy - b) - (x - mean) * d) */
enum { MEAN, INV, FACTOR, SHIFT, B, D, N_COEFFICIENTS };

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    double eps = 0, momentum = 0;
    tctl_status st = tctl_op_real(self, "eps", &eps, err);
    if (!st)
        st = tctl_op_real(self, "momentum", &momentum, err);
    if (!st)
        st = tctl_op_bool(self, "affine", &p->affine, err);
    self->out = self->in[0];
    p->channels = self->out.channels;
    p->height = self->out.height;
    p->width = self->out.width;
    p->eps = (float)eps;
    p->momentum = (float)momentum;
    p->keep = (float)(1 - momentum);
    p->leaves = tctl_leaves_of(self->out.height, self->out.width);
    self->plan = p;
    p->units = tctl_leaves_units(&p->leaves, site->max_batch);
    self->saved_bytes = (size_t)((N_COEFFICIENTS + p->units) * p->channels) * sizeof(float);
    self->shared_floats = tctl_column_sums_floats(&p->leaves, site->max_batch, p->channels, 2);
    self->scratch_floats = (size_t)(p->width * p->channels) + STRIP_FLOATS;
    const int64_t dims[] = {p->channels};
    if (!st && p->affine)
        st = tctl_op_add_parameter(site, self, "weight", 1, dims, TCTL_PARAMETER_NO_DECAY, err);
    if (!st && p->affine)
        st = tctl_op_add_parameter(site, self, "bias", 1, dims, TCTL_PARAMETER_NO_DECAY, err);
    if (!st)
        st = tctl_op_add_buffer(site, self, "running_mean", p->channels, err);
    if (!st)
        st = tctl_op_add_buffer(site, self, "running_var", p->channels, err);
    return st;
}

static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    (void)site;
    const plan *p = self->plan;
    if (p->affine) {
        tctl_op_init_constant(self, 0, 1);
        tctl_op_init_constant(self, 1, 0);
    }
    for (int64_t c = 0; c < p->channels; c++)
        self->buffer[1][c] = 1;
}

static float *coefficient(const tctl_operation *self, int which)
{
    const plan *p = self->plan;
    return (float *)self->saved + which * p->channels;
}

tctl_normalization tctl_batchnorm_normalization(const tctl_operation *self)
{
    const plan *p = self->plan;
    return (tctl_normalization){.channels = p->channels,
                                .mean = coefficient(self, MEAN),
                                .factor = coefficient(self, FACTOR),
                                .shift = coefficient(self, SHIFT),
                                .relu = self->tail.relu};
}

static uint8_t *winners_of(const tctl_operation *self)
{
    const plan *p = self->plan;
    return (uint8_t *)(coefficient(self, N_COEFFICIENTS) + p->units * p->channels);
}

/* ---- forward ------------------------------------------------------------------------------------------- */

static void leaf_squares(const tctl_column_sums *s, int64_t first, int64_t last, float *sums, uint32_t thread)
{
    (void)thread;
    tctl_norm_of(s->call->simd)
        ->add_squares(last - first, s->channels, s->x + first * s->channels, s->center, sums);
}

/* Mean and inv are there. */
static void set_coefficients(const tctl_operation *self)
{
    const plan *p = self->plan;
    const float *inv = coefficient(self, INV);
    float *factor = coefficient(self, FACTOR), *shift = coefficient(self, SHIFT);
    for (int64_t c = 0; c < p->channels; c++) {
        factor[c] = p->affine ? self->param[0][c] * inv[c] : inv[c];
        shift[c] = p->affine ? self->param[1][c] : 0;
    }
}

/* Positions. */
static void apply_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_normalization a = tctl_batchnorm_normalization(call->self);
    const int64_t at = first * a.channels;
    tctl_norm_of(call->simd)->apply(&a, last - first, call->self->x[0] + at, call->self->y + at);
}

/* Rows of windows: (sample, oy). */
static void apply_pool_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const tctl_normalization a = tctl_batchnorm_normalization(self);
    const tctl_window *w = self->tail.pool;
    const int64_t row = w->width * a.channels, out_row = w->out_width * a.channels;
    for (int64_t r = first; r < last; r++) {
        const int64_t image_row = r / w->out_height * w->height + r % w->out_height * w->kernel;
        tctl_norm_of(call->simd)
            ->apply_pool(&a, w->kernel, w->out_width, self->x[0] + image_row * row, row,
                         self->y + r * out_row, winners_of(self) + r * out_row);
    }
}

static void apply(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    const tctl_window *w = call->self->tail.pool;
    if (call->self->flags & TCTL_OP_DEFERRED)
        return;
    if (w)
        tctl_op_ranges(call, call->n * w->out_height, 1, apply_pool_range);
    else
        tctl_op_ranges(call, call->n * p->height * p->width,
                       p->channels < TCTL_OP_GRAIN ? TCTL_OP_GRAIN / p->channels : 1, apply_range);
}

static void update_running(const tctl_op_call *call, const float *mean, const float *squares, float unbiased)
{
    const plan *p = call->self->plan;
    float *running_mean = call->self->buffer[0], *running_var = call->self->buffer[1];
    for (int64_t c = 0; c < p->channels; c++) {
        running_mean[c] = running_mean[c] * p->keep + mean[c] * p->momentum;
        running_var[c] = running_var[c] * p->keep + squares[c] / unbiased * p->momentum;
    }
}

void tctl_batchnorm_add_sums(const tctl_op_call *call, int64_t sample, const float *x)
{
    const plan *p = call->self->plan;
    float *sums = coefficient(call->self, N_COEFFICIENTS) + sample / p->leaves.samples * p->channels;
    if (sample % p->leaves.samples == 0)
        memset(sums, 0, (size_t)p->channels * sizeof *sums);
    tctl_norm_of(call->simd)->add_sums(p->height * p->width, p->channels, x, sums);
}

/* The convolution before it may have summed the leaves. */
static void sum_inputs(const tctl_column_sums *job, float *sums)
{
    const tctl_operation *self = job->call->self;
    const plan *p = self->plan;
    if (!(self->flags & TCTL_OP_SUMMED)) {
        tctl_column_sums_run(job, sums);
        return;
    }
    const int64_t units = tctl_leaves_units(&p->leaves, job->call->n);
    memcpy(sums, coefficient(self, N_COEFFICIENTS), (size_t)(units * p->channels) * sizeof *sums);
    tctl_column_sums_join(job, sums);
}

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    const int64_t rows = call->n * p->height * p->width;
    const float count = (float)rows, unbiased = rows > 1 ? (float)(rows - 1) : 1;
    float *mean = coefficient(call->self, MEAN), *inv = coefficient(call->self, INV), *sums = call->shared;
    tctl_column_sums job = {.call = call,
                            .leaves = p->leaves,
                            .channels = p->channels,
                            .n_sums = 1,
                            .leaf = tctl_leaf_sum,
                            .x = call->self->x[0]};
    sum_inputs(&job, sums);
    for (int64_t c = 0; c < p->channels; c++)
        mean[c] = sums[c] / count;
    job.leaf = leaf_squares;
    job.center = mean;
    tctl_column_sums_run(&job, sums);
    for (int64_t c = 0; c < p->channels; c++)
        inv[c] = 1 / sqrtf(sums[c] / count + p->eps);
    update_running(call, mean, sums, unbiased);
    set_coefficients(call->self);
    apply(call);
}

static void evaluate(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    float *mean = coefficient(self, MEAN), *inv = coefficient(self, INV);
    memcpy(mean, self->buffer[0], (size_t)p->channels * sizeof *mean);
    for (int64_t c = 0; c < p->channels; c++)
        inv[c] = 1 / sqrtf(self->buffer[1][c] + p->eps);
    set_coefficients(self);
    apply(call);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

/* Positions whose gradient is made at once: of one image row if there is a pool. */
static int64_t strip_positions(const tctl_operation *self)
{
    const plan *p = self->plan;
    if (self->tail.pool)
        return p->width;
    return p->channels < STRIP_FLOATS ? STRIP_FLOATS / p->channels : 1;
}

/* What comes back through the pool to one image row, into `out`. */
static void spread_row(const tctl_op_call *call, int64_t image_row, float *out)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const tctl_window *w = self->tail.pool;
    const int64_t sample = image_row / w->height, y = image_row % w->height, oy = y / w->kernel;
    const int64_t at = (sample * w->out_height + oy) * w->out_width * p->channels;
    const int64_t covered = oy < w->out_height ? w->out_width * w->kernel : 0;
    if (covered)
        tctl_norm_of(call->simd)
            ->spread(p->channels, w->kernel, w->out_width, y % w->kernel, self->dy + at,
                     self->tail.relu ? self->y + at : NULL, winners_of(self) + at, out);
    memset(out + covered * p->channels, 0, (size_t)((w->width - covered) * p->channels) * sizeof *out);
}

/* The gradient of the normalization's own output at n positions, n <= strip_positions: made in `room`, or where it lies. */
static const float *gradient_at(const tctl_op_call *call, int64_t first, int64_t n, float *room)
{
    const tctl_operation *self = call->self;
    const tctl_normalization a = tctl_batchnorm_normalization(call->self);
    const int64_t at = first * a.channels;
    if (self->tail.pool)
        spread_row(call, first / self->tail.pool->width, room);
    else if (self->tail.relu)
        tctl_norm_of(call->simd)->mask(&a, n, self->x[0] + at, self->dy + at, room);
    else
        return self->dy + at;
    return room;
}

/* Two sums: of that, and of it times (x - mean). */
static void leaf_gradients(const tctl_column_sums *s, int64_t first, int64_t last, float *sums,
                           uint32_t thread)
{
    const tctl_op_call *call = s->call;
    const int64_t strip = strip_positions(call->self);
    for (int64_t r = first, n; r < last; r += n) {
        n = r + strip < last ? strip : last - r;
        const float *dy = gradient_at(call, r, n, tctl_op_scratch(call, thread));
        tctl_norm_of(call->simd)->add_gradients(n, s->channels, s->x + r * s->channels, s->center, dy, sums);
    }
}

void tctl_batchnorm_gradient(const tctl_op_call *call, int64_t first, int64_t n, float *room, float *dx,
                             bool add)
{
    const tctl_operation *self = call->self;
    const tctl_normalization a = tctl_batchnorm_normalization(self);
    tctl_norm_of(call->simd)
        ->gradient(&a, n, self->x[0] + first * a.channels, gradient_at(call, first, n, room),
                   coefficient(self, B), coefficient(self, D), dx, add);
}

/* Strips. */
static void gradient_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const int64_t strip = strip_positions(self), total = call->n * p->height * p->width;
    for (int64_t i = first; i < last; i++) {
        const int64_t r = i * strip, n = r + strip < total ? strip : total - r;
        tctl_batchnorm_gradient(call, r, n, tctl_op_scratch(call, thread), self->dx[0] + r * p->channels,
                                self->add_dx[0]);
    }
}

static void backward(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const int64_t n = p->channels, rows = call->n * p->height * p->width, strip = strip_positions(self);
    const float count = (float)rows, *inv = coefficient(self, INV);
    float *dshift = call->shared, *dscale = dshift + n, *b = coefficient(self, B), *d = coefficient(self, D);
    const tctl_column_sums job = {.call = call,
                                  .leaves = p->leaves,
                                  .channels = n,
                                  .n_sums = 2,
                                  .leaf = leaf_gradients,
                                  .x = self->x[0],
                                  .center = coefficient(self, MEAN)};
    tctl_column_sums_run(&job, call->shared);
    for (int64_t c = 0; c < n; c++) {
        dscale[c] *= inv[c];
        b[c] = dshift[c] / count;
        d[c] = inv[c] * (dscale[c] / count);
    }
    if (p->affine) {
        tctl_op_store_gradient(call, self->grad[0], dscale, n);
        tctl_op_store_gradient(call, self->grad[1], dshift, n);
    }
    if (self->dx[0])
        tctl_op_ranges(call, (rows + strip - 1) / strip, 2, gradient_range);
}

const tctl_op tctl_op_batchnorm = {
    .schema = &tctl_network_op_table[TCTL_OP_BATCHNORM],
    .flags = TCTL_OP_KEEPS_INPUT | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .initialize = initialize,
    .forward = forward,
    .backward = backward,
    .evaluate = evaluate,
};
