/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layernorm: Ba, Kiros and Hinton, "Layer Normalization", 2016, over the channels of each position. With C channels and
 * row sums (docs/numerics.md), every operation rounded on its own:
 *
 *     mean = rowsum x / C       d = x - mean       inv = 1 / sqrt(rowsum d*d / C + eps)       u = d * inv
 *     y = u * scale + shift
 *     g = dy * scale            dx = inv * ((g - rowsum g / C) - u * (rowsum g*u / C))
 *     dshift = sum dy           dscale = sum dy*u         over positions, by leaves and the tree
 *
 * `scale` is the parameter "weight", `shift` is "bias". Evaluation is the same: nothing is remembered.
 */
#include "engine/conv.h"
#include "engine/math/math.h"
#include "engine/reduce.h"

typedef struct plan {
    int64_t channels, positions; /* positions per sample */
    float eps;
    bool affine;
    tctl_leaves leaves;
} plan;

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    double eps = 0;
    if (!p)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_real(self, "eps", &eps, err);
    if (!st)
        st = tctl_op_bool(self, "affine", &p->affine, err);
    self->out = self->in[0];
    p->channels = self->out.channels;
    p->positions = self->out.height * self->out.width;
    p->eps = (float)eps;
    p->leaves = tctl_leaves_of(self->out.height, self->out.width);
    self->plan = p;
    self->saved_bytes = 2 * (size_t)p->positions * site->max_batch * sizeof(float); /* mean, inv */
    self->shared_floats = tctl_column_sums_floats(&p->leaves, site->max_batch, p->channels, 2);
    if (!st && p->affine)
        st = tctl_op_add_parameter(site, self, "weight", 1, &p->channels, TCTL_PARAMETER_NO_DECAY, err);
    if (!st && p->affine)
        st = tctl_op_add_parameter(site, self, "bias", 1, &p->channels, TCTL_PARAMETER_NO_DECAY, err);
    return st;
}

static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    (void)site;
    if (((const plan *)self->plan)->affine) {
        tctl_op_init_constant(self, 0, 1);
        tctl_op_init_constant(self, 1, 0);
    }
}

static int64_t grain(const plan *p)
{
    return TCTL_OP_GRAIN / p->channels + 1;
}

/* Positions. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const tctl_affine affine = {self->param[0], self->param[1]};
    const tctl_math *math = tctl_math_of(call->simd);
    float *saved = self->saved;
    for (int64_t r = first; r < last; r++)
        math->normalize(p->channels, self->x[0] + r * p->channels, &affine, p->eps, self->y + r * p->channels,
                        saved + 2 * r, saved + 2 * r + 1);
}

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    tctl_op_ranges(call, call->n * p->positions, grain(p), forward_range);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

/* Two sums: dy, and dy * u. */
static void leaf_gradients(const tctl_column_sums *s, int64_t first, int64_t last, float *sums,
                           uint32_t thread)
{
    (void)thread;
    const float *saved = s->call->self->saved;
    const float *restrict x = s->x + first * s->channels, *restrict dy = s->y + first * s->channels;
    float *restrict plain = sums, *restrict product = sums + s->channels;
    for (int64_t r = first; r < last; r++, x += s->channels, dy += s->channels) {
        const float mean = saved[2 * r], inv = saved[2 * r + 1];
        for (int64_t c = 0; c < s->channels; c++) {
            plain[c] += dy[c];
            product[c] += dy[c] * ((x[c] - mean) * inv);
        }
    }
}

/* Positions. */
static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const tctl_math *math = tctl_math_of(call->simd);
    const float *saved = self->saved;
    for (int64_t r = first; r < last; r++)
        math->normalize_gradient(p->channels, self->x[0] + r * p->channels, self->dy + r * p->channels,
                                 self->param[0], saved[2 * r], saved[2 * r + 1],
                                 self->dx[0] + r * p->channels, self->add_dx[0]);
}

static void backward(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    if (p->affine) {
        const tctl_column_sums job = {.call = call,
                                      .leaves = p->leaves,
                                      .channels = p->channels,
                                      .n_sums = 2,
                                      .leaf = leaf_gradients,
                                      .x = self->x[0],
                                      .y = self->dy};
        tctl_column_sums_run(&job, call->shared);
        tctl_op_store_gradient(call, self->grad[0], call->shared + p->channels, p->channels);
        tctl_op_store_gradient(call, self->grad[1], call->shared, p->channels);
    }
    if (self->dx[0])
        tctl_op_ranges(call, call->n * p->positions, grain(p), backward_range);
}

const tctl_op tctl_op_layernorm = {
    .schema = &tctl_network_op_table[TCTL_OP_LAYERNORM],
    .flags = TCTL_OP_KEEPS_INPUT | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .initialize = initialize,
    .forward = forward,
    .backward = backward,
};
