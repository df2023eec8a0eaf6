/* SPDX-License-Identifier: Apache-2.0 */
/* concat: at every position the channels of all inputs, in their order. Gradients are the parts of dy. */
#include "engine/op.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    (void)site;
    char text_a[TCTL_OP_TEXT], text_b[TCTL_OP_TEXT];
    const tctl_shape *a = &self->in[0];
    self->out = *a;
    for (uint32_t j = 1; j < self->n_inputs; j++) {
        const tctl_shape *b = &self->in[j];
        if (a->rank != b->rank || a->height != b->height || a->width != b->width)
            return tctl_op_fail(self, err, "its inputs differ in more than channels: %s and %s",
                                tctl_shape_text(a, text_a), tctl_shape_text(b, text_b));
        self->out.channels += b->channels;
    }
    return TCTL_OK;
}

static int64_t positions(const tctl_op_call *call)
{
    return call->n * call->self->out.height * call->self->out.width;
}

static int64_t grain(const tctl_op_call *call)
{
    return TCTL_OP_GRAIN / call->self->out.channels + 1;
}

/* Positions. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    float *y = self->y + first * self->out.channels;
    for (int64_t r = first; r < last; r++) {
        for (uint32_t j = 0; j < self->n_inputs; j++) {
            const int64_t c = self->in[j].channels;
            memcpy(y, self->x[j] + r * c, (size_t)c * sizeof *y);
            y += c;
        }
    }
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, positions(call), grain(call), forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    int64_t at = 0;
    for (uint32_t j = 0; j < self->n_inputs; at += self->in[j++].channels) {
        const int64_t c = self->in[j].channels;
        for (int64_t r = first; self->dx[j] && r < last; r++) {
            const float *dy = self->dy + r * self->out.channels + at;
            float *dx = self->dx[j] + r * c;
            if (self->add_dx[j]) {
                for (int64_t k = 0; k < c; k++)
                    dx[k] += dy[k];
            } else {
                memcpy(dx, dy, (size_t)c * sizeof *dx);
            }
        }
    }
}

static void backward(const tctl_op_call *call)
{
    tctl_op_ranges(call, positions(call), grain(call), backward_range);
}

const tctl_op tctl_op_concat = {
    .schema = &tctl_network_op_table[TCTL_OP_CONCAT],
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
