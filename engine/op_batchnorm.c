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
 */
#include <math.h>

#include "engine/conv.h"
#include "engine/math/norm.h"
#include "engine/reduce.h"

typedef struct plan {
    int64_t channels, positions; /* positions per sample */
    float eps, momentum, keep;
    bool affine;
    tctl_leaves leaves;
    size_t coefficients; /* where they begin in the shared memory: [4][channels] */
} plan;

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
    p->positions = self->out.height * self->out.width;
    p->eps = (float)eps;
    p->momentum = (float)momentum;
    p->keep = (float)(1 - momentum);
    p->leaves = tctl_leaves_of(self->out.height, self->out.width);
    p->coefficients = tctl_column_sums_floats(&p->leaves, site->max_batch, p->channels, 2);
    self->plan = p;
    self->saved_bytes = 2 * (size_t)p->channels * sizeof(float); /* mean, inv */
    self->shared_floats = p->coefficients + 4 * (size_t)p->channels;
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

/* ---- forward ------------------------------------------------------------------------------------------- */

static void leaf_squares(const tctl_column_sums *s, int64_t first, int64_t last, float *sums, uint32_t thread)
{
    (void)thread;
    tctl_norm_of(s->call->simd)
        ->add_squares(last - first, s->channels, s->x + first * s->channels, s->center, sums);
}

/* Coefficients of y = (x - mean) * factor + shift: [0] mean, [1] factor, [2] shift. */
static void set_coefficients(const tctl_op_call *call, const float *mean, const float *inv)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const size_t n = (size_t)p->channels;
    float *k = call->shared + p->coefficients;
    for (size_t c = 0; c < n; c++) {
        k[c] = mean[c];
        k[n + c] = p->affine ? self->param[0][c] * inv[c] : inv[c];
        k[2 * n + c] = p->affine ? self->param[1][c] : 0;
    }
}

static void apply_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const plan *p = call->self->plan;
    const int64_t n = p->channels;
    const float *restrict mean = call->shared + p->coefficients, *restrict factor = mean + n;
    const float *restrict shift = factor + n, *x = call->self->x[0] + first * n;
    float *y = call->self->y + first * n;
    for (int64_t r = first; r < last; r++, x += n, y += n) {
        for (int64_t c = 0; c < n; c++)
            y[c] = (x[c] - mean[c]) * factor[c] + shift[c];
    }
}

static int64_t row_grain(const plan *p)
{
    return p->channels < TCTL_OP_GRAIN ? TCTL_OP_GRAIN / p->channels : 1;
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

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    const int64_t rows = call->n * p->positions;
    const float count = (float)rows, unbiased = rows > 1 ? (float)(rows - 1) : 1;
    float *mean = call->self->saved, *inv = mean + p->channels, *sums = call->shared;
    tctl_column_sums job = {.call = call,
                            .leaves = p->leaves,
                            .channels = p->channels,
                            .n_sums = 1,
                            .leaf = tctl_leaf_sum,
                            .x = call->self->x[0]};
    tctl_column_sums_run(&job, sums);
    for (int64_t c = 0; c < p->channels; c++)
        mean[c] = sums[c] / count;
    job.leaf = leaf_squares;
    job.center = mean;
    tctl_column_sums_run(&job, sums);
    for (int64_t c = 0; c < p->channels; c++)
        inv[c] = 1 / sqrtf(sums[c] / count + p->eps);
    update_running(call, mean, sums, unbiased);
    set_coefficients(call, mean, inv);
    tctl_op_ranges(call, rows, row_grain(p), apply_range);
}

static void evaluate(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    float *inv = call->shared;
    for (int64_t c = 0; c < p->channels; c++)
        inv[c] = 1 / sqrtf(call->self->buffer[1][c] + p->eps);
    set_coefficients(call, call->self->buffer[0], inv);
    tctl_op_ranges(call, call->n * p->positions, row_grain(p), apply_range);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

/* Two sums: dy, and dy * (x - mean). */
static void leaf_gradients(const tctl_column_sums *s, int64_t first, int64_t last, float *sums,
                           uint32_t thread)
{
    (void)thread;
    const int64_t at = first * s->channels;
    tctl_norm_of(s->call->simd)
        ->add_gradients(last - first, s->channels, s->x + at, s->center, s->y + at, sums);
}

/* Coefficients of dx = factor * ((dy - b) - (x - mean) * d): [0] mean, [1] factor, [2] b, [3] d. */
static void gradient_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const int64_t n = p->channels;
    const float *restrict mean = call->shared + p->coefficients, *restrict factor = mean + n;
    const float *restrict b = factor + n, *restrict d = b + n;
    const float *x = self->x[0] + first * n, *dy = self->dy + first * n;
    float *dx = self->dx[0] + first * n; /* may be dy */
    for (int64_t r = first; r < last; r++, x += n, dy += n, dx += n) {
        if (self->add_dx[0]) {
            for (int64_t c = 0; c < n; c++)
                dx[c] += factor[c] * ((dy[c] - b[c]) - (x[c] - mean[c]) * d[c]);
        } else {
            for (int64_t c = 0; c < n; c++)
                dx[c] = factor[c] * ((dy[c] - b[c]) - (x[c] - mean[c]) * d[c]);
        }
    }
}

static void backward(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const int64_t n = p->channels, rows = call->n * p->positions;
    const float count = (float)rows, *mean = self->saved, *inv = mean + n;
    float *dshift = call->shared, *dscale = dshift + n, *k = call->shared + p->coefficients;
    const tctl_column_sums job = {.call = call,
                                  .leaves = p->leaves,
                                  .channels = n,
                                  .n_sums = 2,
                                  .leaf = leaf_gradients,
                                  .x = self->x[0],
                                  .y = self->dy,
                                  .center = mean};
    tctl_column_sums_run(&job, call->shared);
    set_coefficients(call, mean, inv);
    for (int64_t c = 0; c < n; c++) {
        dscale[c] *= inv[c];
        k[2 * n + c] = dshift[c] / count;
        k[3 * n + c] = inv[c] * (dscale[c] / count);
    }
    if (p->affine) {
        tctl_op_store_gradient(call, self->grad[0], dscale, n);
        tctl_op_store_gradient(call, self->grad[1], dshift, n);
    }
    if (self->dx[0])
        tctl_op_ranges(call, rows, row_grain(p), gradient_range);
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
