/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout: in training, element e of a sample becomes 0 if u < p, else x * (1 / (1 - p)), with u drawn uniformly at
 * the address (stream "dropout.NODE", when = step, index = global sample index, draw = e). Batch, thread and
 * resume point do not appear. In evaluation nothing happens.
 */
#include "engine/op.h"
#include "seed/stream.h"

typedef struct plan {
    float p, scale;
    tctl_random_address stream; /* when and index to be filled in */
} plan;

enum { BLOCK = 1024 }; /* draws at once */

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *plan_ = tctl_arena_take(site->arena, sizeof *plan_);
    const char *stream = tctl_op_stream_name(site, self, "dropout");
    double p = 0;
    if (!plan_ || !stream)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_real(self, "p", &p, err);
    plan_->p = (float)p;
    plan_->scale = (float)(1 / (1 - p));
    plan_->stream = tctl_stream(site->seed, stream, 0, 0);
    self->plan = plan_;
    self->out = self->in[0];
    self->saved_bytes = (size_t)tctl_shape_count(&self->out) * site->max_batch; /* 1: kept */
    self->scratch_floats = BLOCK;
    return st;
}

/* Samples. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const size_t size = (size_t)tctl_shape_count(&self->out);
    float *draws = tctl_op_scratch(call, thread);
    for (int64_t n = first; n < last; n++) {
        tctl_random_address at = p->stream;
        at.when = call->batch->step;
        at.index = call->batch->indices[n];
        const float *x = self->x[0] + (size_t)n * size;
        float *y = self->y + (size_t)n * size; /* may be x */
        uint8_t *kept = (uint8_t *)self->saved + (size_t)n * size;
        for (size_t e = 0; e < size; e += BLOCK) {
            size_t count = size - e < BLOCK ? size - e : BLOCK;
            tctl_fill_uniform(&at, e, count, draws);
            for (size_t i = 0; i < count; i++) {
                kept[e + i] = draws[i] >= p->p;
                y[e + i] = draws[i] >= p->p ? x[e + i] * p->scale : 0;
            }
        }
    }
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n, 1, forward_range);
}

static void copy_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    memcpy(call->self->y + first, call->self->x[0] + first, (size_t)(last - first) * sizeof(float));
}

static void evaluate(const tctl_op_call *call)
{
    if (call->self->y != call->self->x[0])
        tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, copy_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const float scale = ((const plan *)self->plan)->scale, *dy = self->dy;
    const uint8_t *kept = self->saved;
    float *dx = self->dx[0]; /* may be dy */
    for (int64_t i = first; i < last; i++) {
        float g = kept[i] ? dy[i] * scale : 0;
        dx[i] = self->add_dx[0] ? dx[i] + g : g;
    }
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_dropout = {
    .schema = &tctl_network_op_table[TCTL_OP_DROPOUT],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .evaluate = evaluate,
};
