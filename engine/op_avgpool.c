/* SPDX-License-Identifier: Apache-2.0 */
/*
 * avgpool: the mean of each window, channel by channel. The sum is one chain from +0 over (tap_y, tap_x) ascending,
 * divided by kernel * kernel. A pixel's gradient is the sum, from +0 or what is there, over the windows that cover it, in
 * ascending (oy, ox), of dy / (kernel * kernel). Windows lie inside the image: there is no pad.
 */
#include "engine/op.h"
#include "engine/patches.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    const tctl_shape *in = &self->in[0];
    tctl_window *w = tctl_arena_take(site->arena, sizeof *w);
    if (!w)
        return tctl_op_fail_memory(self, err);
    *w = (tctl_window){.height = in->height, .width = in->width, .dilation = 1};
    tctl_status st = tctl_op_int(self, "kernel", &w->kernel, err);
    w->stride = w->kernel;
    if (!st && tctl_node_attr(self->node, "stride"))
        st = tctl_op_int(self, "stride", &w->stride, err);
    if (st)
        return st;
    if (in->rank != 3)
        return tctl_op_fail(self, err, "needs an image [height, width, channels]; its input is %s",
                            tctl_shape_text(in, text));
    if (w->kernel > w->height || w->kernel > w->width)
        return tctl_op_fail(self, err, "kernel %lld does not fit the input %lldx%lld", (long long)w->kernel,
                            (long long)w->height, (long long)w->width);
    w->out_height = (w->height - w->kernel) / w->stride + 1;
    w->out_width = (w->width - w->kernel) / w->stride + 1;
    self->plan = w;
    self->out = (tctl_shape){3, w->out_height, w->out_width, in->channels};
    self->scratch_floats = (size_t)in->channels;
    return TCTL_OK;
}

/* The pixel at tap (ty, tx) of window number `at` of an image. */
static int64_t pixel_of(const tctl_window *w, int64_t at, int64_t ty, int64_t tx)
{
    const int64_t oy = at / w->out_width, ox = at % w->out_width;
    return (oy * w->stride + ty) * w->width + ox * w->stride + tx;
}

static void add_to(float *restrict sums, const float *restrict x, int64_t channels)
{
    for (int64_t c = 0; c < channels; c++)
        sums[c] += x[c];
}

/* Output positions. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const tctl_window *w = self->plan;
    const int64_t channels = self->out.channels, windows = w->out_height * w->out_width;
    const float count = (float)(w->kernel * w->kernel);
    for (int64_t r = first; r < last; r++) {
        const float *image = self->x[0] + r / windows * w->height * w->width * channels;
        float *y = self->y + r * channels;
        memset(y, 0, (size_t)channels * sizeof *y);
        for (int64_t ty = 0; ty < w->kernel; ty++) {
            for (int64_t tx = 0; tx < w->kernel; tx++)
                add_to(y, image + pixel_of(w, r % windows, ty, tx) * channels, channels);
        }
        for (int64_t c = 0; c < channels; c++)
            y[c] /= count;
    }
}

static void forward(const tctl_op_call *call)
{
    const tctl_shape *out = &call->self->out;
    tctl_op_ranges(call, call->n * out->height * out->width, TCTL_OP_GRAIN / out->channels + 1,
                   forward_range);
}

/* Samples. */
static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_operation *self = call->self;
    const tctl_window *w = self->plan;
    const int64_t channels = self->out.channels, windows = w->out_height * w->out_width;
    const int64_t image_size = w->height * w->width * channels;
    const float count = (float)(w->kernel * w->kernel);
    float *share = tctl_op_scratch(call, thread);
    for (int64_t n = first; n < last; n++) {
        float *image = self->dx[0] + n * image_size;
        if (!self->add_dx[0])
            memset(image, 0, (size_t)image_size * sizeof *image);
        for (int64_t at = 0; at < windows; at++) {
            const float *dy = self->dy + (n * windows + at) * channels;
            for (int64_t c = 0; c < channels; c++)
                share[c] = dy[c] / count;
            for (int64_t ty = 0; ty < w->kernel; ty++) {
                for (int64_t tx = 0; tx < w->kernel; tx++)
                    add_to(image + pixel_of(w, at, ty, tx) * channels, share, channels);
            }
        }
    }
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n, 1, backward_range);
}

const tctl_op tctl_op_avgpool = {
    .schema = &tctl_network_op_table[TCTL_OP_AVGPOOL],
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
