/* SPDX-License-Identifier: Apache-2.0 */
/* conv: two-dimensional convolution (cross-correlation) of an image, square kernel. */
#include <math.h>

#include "engine/conv.h"

static tctl_status read_options(const tctl_operation *self, tctl_conv *c, tctl_error *err)
{
    tctl_window *w = &c->window;
    tctl_status st = tctl_op_int(self, "out", &c->out, err);
    if (!st)
        st = tctl_op_int(self, "kernel", &w->kernel, err);
    if (!st)
        st = tctl_op_int(self, "stride", &w->stride, err);
    if (!st)
        st = tctl_op_int(self, "pad", &w->pad, err);
    if (!st)
        st = tctl_op_int(self, "dilation", &w->dilation, err);
    if (!st)
        st = tctl_op_int(self, "groups", &c->groups, err);
    if (!st)
        st = tctl_op_bool(self, "bias", &c->bias, err);
    return st;
}

static tctl_status check(const tctl_operation *self, const tctl_conv *c, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    const tctl_window *w = &c->window;
    const int64_t reach = w->dilation * (w->kernel - 1) + 1;
    if (self->in[0].rank != 3)
        return tctl_op_fail(self, err, "needs an image [height, width, channels]; its input is %s",
                            tctl_shape_text(&self->in[0], text));
    if (reach > w->height + 2 * w->pad || reach > w->width + 2 * w->pad)
        return tctl_op_fail(self, err, "kernel %lld%s does not fit the padded input %lldx%lld",
                            (long long)reach, w->dilation > 1 ? " (dilated)" : "",
                            (long long)(w->height + 2 * w->pad), (long long)(w->width + 2 * w->pad));
    if (c->in % c->groups != 0)
        return tctl_op_fail(self, err, "groups %lld does not divide the %lld input channels",
                            (long long)c->groups, (long long)c->in);
    if (c->out % c->groups != 0)
        return tctl_op_fail(self, err, "groups %lld does not divide the %lld output channels",
                            (long long)c->groups, (long long)c->out);
    return TCTL_OK;
}

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    tctl_conv *c = tctl_arena_take(site->arena, sizeof *c);
    if (!c)
        return tctl_op_fail_memory(self, err);
    tctl_window *w = &c->window;
    w->height = self->in[0].height;
    w->width = self->in[0].width;
    c->in = self->in[0].channels;
    tctl_status st = read_options(self, c, err);
    if (!st)
        st = check(self, c, err);
    if (st)
        return st;
    const int64_t reach = w->dilation * (w->kernel - 1) + 1;
    w->out_height = (w->height + 2 * w->pad - reach) / w->stride + 1;
    w->out_width = (w->width + 2 * w->pad - reach) / w->stride + 1;
    self->out = (tctl_shape){3, w->out_height, w->out_width, c->out};
    st = tctl_op_add_parameter(site, self, "weight", 4,
                               (const int64_t[]){w->kernel, w->kernel, c->in / c->groups, c->out}, 0, err);
    if (!st && c->bias)
        st = tctl_op_add_parameter(site, self, "bias", 1, &c->out, TCTL_PARAMETER_NO_DECAY, err);
    if (!st)
        st = tctl_conv_plan(site, self, c, err);
    return st;
}

/* He et al., "Delving Deep into Rectifiers", ICCV 2015, equation 10; biases 0. */
static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    const tctl_conv *c = self->plan;
    tctl_op_init_normal(site, self, 0, sqrt(2.0 / (double)c->k));
    if (c->bias)
        tctl_op_init_constant(self, 1, 0);
}

const tctl_op tctl_op_conv = {
    .schema = &tctl_network_op_table[TCTL_OP_CONV],
    .flags = TCTL_OP_KEEPS_INPUT,
    .infer = infer,
    .initialize = initialize,
    .forward = tctl_conv_forward,
    .backward = tctl_conv_backward,
};
