/* SPDX-License-Identifier: Apache-2.0 */
/* add: y = a + b. Both gradients are dy. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    (void)site;
    const tctl_shape *a = &self->in[0], *b = &self->in[1];
    char text_a[TCTL_OP_TEXT], text_b[TCTL_OP_TEXT];
    if (a->rank != b->rank || a->height != b->height || a->width != b->width || a->channels != b->channels)
        return tctl_op_fail(self, err, "its inputs have different shapes, %s and %s",
                            tctl_shape_text(a, text_a), tctl_shape_text(b, text_b));
    self->out = *a;
    return TCTL_OK;
}

static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const float *a = call->self->x[0], *b = call->self->x[1];
    float *y = call->self->y; /* may be a */
    for (int64_t i = first; i < last; i++)
        y[i] = a[i] + b[i];
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const float *dy = self->dy;
    for (uint32_t j = 0; j < 2; j++) {
        float *dx = self->dx[j];
        if (!dx || dx == dy)
            continue;
        if (self->add_dx[j]) {
            for (int64_t i = first; i < last; i++)
                dx[i] += dy[i];
        } else {
            memcpy(dx + first, dy + first, (size_t)(last - first) * sizeof *dx);
        }
    }
}

static void backward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n * tctl_shape_count(&call->self->out), TCTL_OP_GRAIN, backward_range);
}

const tctl_op tctl_op_add = {
    .schema = &tctl_network_op_table[TCTL_OP_ADD],
    .flags = TCTL_OP_IN_PLACE | TCTL_OP_GRADIENT_IN_PLACE,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
