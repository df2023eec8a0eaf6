/* SPDX-License-Identifier: Apache-2.0 */
/* linear: y = x W + b over features, or over the features of each position of a sequence. A 1 x 1 convolution. */
#include <math.h>

#include "engine/linear.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    if (self->in[0].rank == 3)
        return tctl_op_fail(self, err, "needs features, and its input is an image %s; put flatten before it",
                            tctl_shape_text(&self->in[0], text));
    tctl_conv *c = tctl_arena_take(site->arena, sizeof *c);
    if (!c)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_int(self, "out", &c->out, err);
    if (!st)
        st = tctl_op_bool(self, "bias", &c->bias, err);
    if (st)
        return st;
    c->in = self->in[0].channels;
    c->groups = 1;
    const int64_t positions = self->in[0].height;
    c->window = (tctl_window){.height = positions,
                              .width = 1,
                              .out_height = positions,
                              .out_width = 1,
                              .kernel = 1,
                              .stride = 1,
                              .dilation = 1};
    self->out = self->in[0];
    self->out.channels = c->out;
    st = tctl_op_add_parameter(site, self, "weight", 2, (const int64_t[]){c->in, c->out}, 0, err);
    if (!st && c->bias)
        st = tctl_op_add_parameter(site, self, "bias", 1, &c->out, TCTL_PARAMETER_NO_DECAY, err);
    if (!st)
        st = tctl_conv_plan(site, self, c, err);
    if (!st)
        tctl_linear_plan(site, self);
    return st;
}

static void backward(const tctl_op_call *call)
{
    tctl_linear_weight_gradient(call);
    if (call->self->dx[0])
        tctl_conv_input_gradient(call);
}

/* Uniform within 1 / sqrt(inputs), both (LeCun et al., "Efficient BackProp", 1998; PyTorch's default). */
static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    const tctl_conv *c = self->plan;
    const double bound = 1 / sqrt((double)c->in);
    tctl_op_init_uniform(site, self, 0, bound);
    if (c->bias)
        tctl_op_init_uniform(site, self, 1, bound);
}

const tctl_op tctl_op_linear = {
    .schema = &tctl_network_op_table[TCTL_OP_LINEAR],
    .flags = TCTL_OP_KEEPS_INPUT,
    .infer = infer,
    .initialize = initialize,
    .forward = tctl_conv_forward,
    .backward = backward,
};
