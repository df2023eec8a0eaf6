/* SPDX-License-Identifier: Apache-2.0 */
/* relu: negative numbers become +0. Not-a-number stays, and so shows. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    (void)site;
    (void)err;
    self->out = self->in[0];
    return TCTL_OK;
}

static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const float *x = call->self->x[0];
    float *y = call->self->y; /* may be x */
    for (int64_t i = first; i < last; i++)
        y[i] = x[i] <= 0 ? 0.0f : x[i];
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const float *y = self->y, *dy = self->dy;
    float *dx = self->dx[0]; /* may be dy */
    /* The load stands outside the choice, or compilers branch for it. */
    if (self->add_dx[0]) {
        for (int64_t i = first; i < last; i++) {
            float g = dy[i];
            dx[i] += y[i] <= 0 ? 0.0f : g;
        }
    } else {
        for (int64_t i = first; i < last; i++) {
            float g = dy[i];
            dx[i] = y[i] <= 0 ? 0.0f : g;
        }
    }
}

static void backward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_relu = {
    .schema = &tctl_network_op_table[TCTL_OP_RELU],
    .flags = TCTL_OP_KEEPS_OUTPUT | TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
