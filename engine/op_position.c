/* SPDX-License-Identifier: Apache-2.0 */
/*
 * position: y[t] = x[t] + weight[t], a learned row for each position of a sequence. dx = dy; dweight is the sum over the
 * samples, by leaves and the tree of 1 x 1 images.
 */
#include "engine/conv.h"
#include "engine/reduce.h"

typedef struct plan {
    int64_t size; /* elements of a sample */
    tctl_leaves leaves;
    double deviation;
} plan;

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    const tctl_shape *in = &self->in[0];
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    if (in->rank != 2)
        return tctl_op_fail(self, err, "needs a sequence [positions, features]; its input is %s",
                            tctl_shape_text(in, text));
    tctl_status st = tctl_op_real(self, "deviation", &p->deviation, err);
    self->out = *in;
    self->plan = p;
    p->size = tctl_shape_count(in);
    p->leaves = tctl_leaves_of(1, 1);
    self->shared_floats = tctl_column_sums_floats(&p->leaves, site->max_batch, p->size, 1);
    if (!st)
        st = tctl_op_add_parameter(site, self, "weight", 2, (const int64_t[]){in->height, in->channels},
                                   TCTL_PARAMETER_NO_DECAY | TCTL_PARAMETER_LOOKUP, err);
    return st;
}

static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    tctl_op_init_normal(site, self, 0, ((const plan *)self->plan)->deviation);
}

/* Samples. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const int64_t size = ((const plan *)self->plan)->size;
    const float *weight = self->param[0];
    for (int64_t n = first; n < last; n++) {
        const float *x = self->x[0] + n * size;
        float *y = self->y + n * size; /* may be x */
        for (int64_t i = 0; i < size; i++)
            y[i] = x[i] + weight[i];
    }
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n, 1, forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const float *dy = self->dy;
    float *dx = self->dx[0];
    if (self->add_dx[0]) {
        for (int64_t i = first; i < last; i++)
            dx[i] += dy[i];
    } else {
        memcpy(dx + first, dy + first, (size_t)(last - first) * sizeof *dx);
    }
}

static void backward(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const tctl_column_sums job = {.call = call,
                                  .leaves = p->leaves,
                                  .channels = p->size,
                                  .n_sums = 1,
                                  .leaf = tctl_leaf_sum,
                                  .x = self->dy};
    tctl_column_sums_run(&job, call->shared);
    tctl_op_store_gradient(call, self->grad[0], call->shared, p->size);
    if (self->dx[0] && self->dx[0] != self->dy)
        tctl_op_ranges(call, call->n * p->size, TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_position = {
    .schema = &tctl_network_op_table[TCTL_OP_POSITION],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .initialize = initialize,
    .forward = forward,
    .backward = backward,
};
