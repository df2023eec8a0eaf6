/* SPDX-License-Identifier: Apache-2.0 */
/* scale: y = x * by, dx = dy * by; `by` is rounded to float once. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    float *by = tctl_arena_take(site->arena, sizeof *by);
    double value = 0;
    if (!by)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_real(self, "by", &value, err);
    *by = (float)value;
    self->plan = by;
    self->out = self->in[0];
    return st;
}

static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const float by = *(const float *)call->self->plan, *x = call->self->x[0];
    float *y = call->self->y; /* may be x */
    for (int64_t i = first; i < last; i++)
        y[i] = x[i] * by;
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const float by = *(const float *)self->plan, *dy = self->dy;
    float *dx = self->dx[0]; /* may be dy */
    if (self->add_dx[0]) {
        for (int64_t i = first; i < last; i++)
            dx[i] += dy[i] * by;
    } else {
        for (int64_t i = first; i < last; i++)
            dx[i] = dy[i] * by;
    }
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_scale = {
    .schema = &tctl_network_op_table[TCTL_OP_SCALE],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
