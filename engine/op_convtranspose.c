/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convtranspose: the transpose of a convolution, which makes images larger. It is the convolution with the same kernel
 * that leads from y to x, run backwards: its input gradient is our forward, its forward is our input gradient, and its
 * weight gradient is ours, with x and dy in each other's place. So the weight is [kernel, kernel, out, in], and chains,
 * leaves and trees are the convolution's (conv.h). The bias begins the chains of y; dbias is summed over y's positions.
 */
#include <math.h>

#include "engine/conv.h"
#include "engine/reduce.h"

typedef struct plan {
    tctl_conv conv; /* from y to x, without bias; first, so that a plan is a tctl_conv */
    tctl_leaves leaves;
    bool bias;
    size_t row; /* where one sample of dx begins in the shared memory */
} plan;

static tctl_status read_options(const tctl_operation *self, plan *p, tctl_error *err)
{
    tctl_window *w = &p->conv.window;
    tctl_status st = tctl_op_int(self, "out", &p->conv.in, err);
    if (!st)
        st = tctl_op_int(self, "kernel", &w->kernel, err);
    if (!st)
        st = tctl_op_int(self, "stride", &w->stride, err);
    if (!st)
        st = tctl_op_int(self, "pad", &w->pad, err);
    if (!st)
        st = tctl_op_bool(self, "bias", &p->bias, err);
    return st;
}

static tctl_status check(const tctl_operation *self, tctl_window *w, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    if (self->in[0].rank != 3)
        return tctl_op_fail(self, err, "needs an image [height, width, channels]; its input is %s",
                            tctl_shape_text(&self->in[0], text));
    w->dilation = 1;
    w->out_height = self->in[0].height;
    w->out_width = self->in[0].width;
    w->height = (w->out_height - 1) * w->stride + w->kernel - 2 * w->pad;
    w->width = (w->out_width - 1) * w->stride + w->kernel - 2 * w->pad;
    if (w->height < 1 || w->width < 1)
        return tctl_op_fail(self, err, "pad %lld leaves nothing of its output", (long long)w->pad);
    return TCTL_OK;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    tctl_conv *c = &p->conv;
    tctl_window *w = &c->window;
    tctl_status st = read_options(self, p, err);
    if (!st)
        st = check(self, w, err);
    if (st)
        return st;
    c->out = self->in[0].channels;
    c->groups = 1;
    self->out = (tctl_shape){3, w->height, w->width, c->in};
    st = tctl_op_add_parameter(site, self, "weight", 4,
                               (const int64_t[]){w->kernel, w->kernel, c->in, c->out}, 0, err);
    if (!st && p->bias)
        st = tctl_op_add_parameter(site, self, "bias", 1, &c->in, TCTL_PARAMETER_NO_DECAY, err);
    if (!st)
        st = tctl_conv_plan(site, self, c, err);
    if (st)
        return st;
    p->leaves = tctl_leaves_of(w->height, w->width);
    p->row = self->shared_floats;
    self->shared_floats = max_size(p->row + (size_t)tctl_shape_count(&self->in[0]),
                                   tctl_column_sums_floats(&p->leaves, site->max_batch, c->in, 1));
    return TCTL_OK;
}

/* As the convolution is, with what one output pixel reads: kernel^2 / stride^2 taps of every input channel. */
static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    const plan *p = self->plan;
    const tctl_window *w = &p->conv.window;
    const double taps = (double)(w->kernel * w->kernel) / (double)(w->stride * w->stride);
    tctl_op_init_normal(site, self, 0, sqrt(2.0 / (taps * (double)p->conv.out)));
    if (p->bias)
        tctl_op_init_constant(self, 1, 0);
}

/* The convolution's view of the operation: its input is our output. */
static tctl_operation seen_as_conv(const tctl_operation *self)
{
    tctl_operation conv = *self;
    conv.in[0] = self->out;
    conv.out = self->in[0];
    conv.x[0] = self->dy;
    conv.dy = self->x[0];
    conv.dx[0] = self->y;
    conv.y = self->dx[0];
    conv.add_dx[0] = false;
    return conv;
}

/* Positions of y. */
static void begin_with_bias(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const int64_t channels = call->self->out.channels;
    for (int64_t r = first; r < last; r++)
        memcpy(call->self->y + r * channels, call->self->param[1], (size_t)channels * sizeof(float));
}

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    tctl_operation conv = seen_as_conv(call->self);
    tctl_op_call copy = *call;
    copy.self = &conv;
    if (p->bias) {
        tctl_op_ranges(call, call->n * p->conv.window.height * p->conv.window.width,
                       TCTL_OP_GRAIN / p->conv.in + 1, begin_with_bias);
        conv.add_dx[0] = true;
    }
    tctl_conv_input_gradient(&copy);
}

/* Another reader of x has written dx: sample by sample, since a forward convolution cannot add. */
static void add_input_gradient(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    const int64_t in_size = tctl_shape_count(&call->self->in[0]);
    const int64_t out_size = tctl_shape_count(&call->self->out);
    tctl_operation conv = seen_as_conv(call->self);
    tctl_op_call copy = *call;
    copy.self = &conv;
    copy.n = 1;
    conv.y = call->shared + p->row;
    for (int64_t n = 0; n < call->n; n++) {
        conv.x[0] = call->self->dy + n * out_size;
        tctl_conv_forward(&copy);
        float *dx = call->self->dx[0] + n * in_size;
        for (int64_t i = 0; i < in_size; i++)
            dx[i] += conv.y[i];
    }
}

static void backward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    tctl_operation conv = seen_as_conv(call->self);
    tctl_op_call copy = *call;
    copy.self = &conv;
    tctl_conv_weight_gradient(&copy);
    if (p->bias) {
        tctl_column_sums sums = {.call = call,
                                 .leaves = p->leaves,
                                 .channels = p->conv.in,
                                 .n_sums = 1,
                                 .leaf = tctl_leaf_sum,
                                 .x = call->self->dy};
        tctl_column_sums_run(&sums, call->shared);
        tctl_op_store_gradient(call, call->self->grad[1], call->shared, p->conv.in);
    }
    if (call->self->dx[0] && call->self->add_dx[0])
        add_input_gradient(call);
    else if (call->self->dx[0])
        tctl_conv_forward(&copy);
}

const tctl_op tctl_op_convtranspose = {
    .schema = &tctl_network_op_table[TCTL_OP_CONVTRANSPOSE],
    .flags = TCTL_OP_KEEPS_INPUT,
    .infer = infer,
    .initialize = initialize,
    .forward = forward,
    .backward = backward,
};
