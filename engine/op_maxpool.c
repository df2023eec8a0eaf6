/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maxpool: the largest number of each window, channel by channel; which tap won is saved.
 *
 * Taps are asked in ascending (tap_y, tap_x); a later one wins only if it is larger. The first not-a-number wins over
 * everything and stays, so that it shows. Positions outside the image never win. A pixel's gradient is the sum, from
 * +0 or what is there, over the windows that cover it, in ascending (oy, ox), of dy if it won and of +0 if not.
 */
#include "engine/maxpool.h"

typedef struct plan {
    tctl_window window;
    int64_t channels;
} plan;

const tctl_window *tctl_maxpool_window(const tctl_operation *self)
{
    const plan *p = self->plan;
    return &p->window;
}

static tctl_status check(const tctl_operation *self, const tctl_window *w, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    if (self->in[0].rank != 3)
        return tctl_op_fail(self, err, "needs an image [height, width, channels]; its input is %s",
                            tctl_shape_text(&self->in[0], text));
    if (w->pad >= w->kernel)
        return tctl_op_fail(self, err, "pad %lld is not less than the kernel, %lld", (long long)w->pad,
                            (long long)w->kernel);
    if (w->kernel > w->height + 2 * w->pad || w->kernel > w->width + 2 * w->pad)
        return tctl_op_fail(self, err, "kernel %lld does not fit the padded input %lldx%lld",
                            (long long)w->kernel, (long long)(w->height + 2 * w->pad),
                            (long long)(w->width + 2 * w->pad));
    return TCTL_OK;
}

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    tctl_window *w = &p->window;
    *w = (tctl_window){.height = self->in[0].height, .width = self->in[0].width, .dilation = 1};
    tctl_status st = tctl_op_int(self, "kernel", &w->kernel, err);
    if (!st && tctl_node_attr(self->node, "stride"))
        st = tctl_op_int(self, "stride", &w->stride, err);
    else
        w->stride = w->kernel;
    if (!st)
        st = tctl_op_int(self, "pad", &w->pad, err);
    if (!st)
        st = check(self, w, err);
    if (st)
        return st;
    w->out_height = (w->height + 2 * w->pad - w->kernel) / w->stride + 1;
    w->out_width = (w->width + 2 * w->pad - w->kernel) / w->stride + 1;
    p->channels = self->in[0].channels;
    self->plan = p;
    self->out = (tctl_shape){3, w->out_height, w->out_width, p->channels};
    self->saved_bytes = (size_t)tctl_shape_count(&self->out) * site->max_batch * sizeof(int32_t);
    return TCTL_OK;
}

/* The taps of a window that lie inside: first..last-1. The window's first coordinate is at - pad. */
static void clip(int64_t at, int64_t size, const tctl_window *w, int64_t *ret_first, int64_t *ret_last)
{
    int64_t start = at * w->stride - w->pad;
    *ret_first = start < 0 ? -start : 0;
    *ret_last = start + w->kernel > size ? size - start : w->kernel;
}

typedef struct taps {
    int64_t y0, y1, x0, x1;
} taps;

static taps taps_of(const tctl_window *w, int64_t oy, int64_t ox)
{
    taps t;
    clip(oy, w->height, w, &t.y0, &t.y1);
    clip(ox, w->width, w, &t.x0, &t.x1);
    return t;
}

static int64_t pixel_of(const tctl_window *w, int64_t oy, int64_t ox, int64_t ty, int64_t tx)
{
    return (oy * w->stride - w->pad + ty) * w->width + ox * w->stride - w->pad + tx;
}

static void compete(const float *restrict x, int32_t tap, int64_t channels, float *restrict best,
                    int32_t *restrict winner)
{
    for (int64_t c = 0; c < channels; c++) {
        int wins = (x[c] > best[c]) | ((x[c] != x[c]) & (best[c] == best[c]));
        best[c] = wins ? x[c] : best[c];
        winner[c] = wins ? tap : winner[c];
    }
}

static void pool_window(const plan *p, const float *image, int64_t oy, int64_t ox, float *best,
                        int32_t *winner)
{
    const tctl_window *w = &p->window;
    const taps t = taps_of(w, oy, ox);
    const int32_t first = (int32_t)(t.y0 * w->kernel + t.x0);
    memcpy(best, image + pixel_of(w, oy, ox, t.y0, t.x0) * p->channels, (size_t)p->channels * sizeof *best);
    for (int64_t c = 0; c < p->channels; c++)
        winner[c] = first;
    for (int64_t ty = t.y0; ty < t.y1; ty++) {
        for (int64_t tx = t.x0; tx < t.x1; tx++) {
            int32_t tap = (int32_t)(ty * w->kernel + tx);
            if (tap != first)
                compete(image + pixel_of(w, oy, ox, ty, tx) * p->channels, tap, p->channels, best, winner);
        }
    }
}

/* Rows of windows: (sample, oy). */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const plan *p = call->self->plan;
    const tctl_window *w = &p->window;
    int32_t *winners = call->self->saved;
    for (int64_t r = first; r < last; r++) {
        const float *image = call->self->x[0] + r / w->out_height * w->height * w->width * p->channels;
        for (int64_t ox = 0; ox < w->out_width; ox++) {
            int64_t at = (r * w->out_width + ox) * p->channels;
            pool_window(p, image, r % w->out_height, ox, call->self->y + at, winners + at);
        }
    }
}

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    tctl_op_ranges(call, call->n * p->window.out_height, 1, forward_range);
}

static void give_back(const float *restrict dy, const int32_t *restrict winner, int32_t tap, int64_t channels,
                      float *restrict dx)
{
    for (int64_t c = 0; c < channels; c++) {
        float g = dy[c]; /* not inside the choice, or compilers branch for it */
        dx[c] += winner[c] == tap ? g : 0.0f;
    }
}

static void give_back_window(const plan *p, const float *dy, const int32_t *winner, int64_t oy, int64_t ox,
                             float *image)
{
    const tctl_window *w = &p->window;
    const taps t = taps_of(w, oy, ox);
    for (int64_t ty = t.y0; ty < t.y1; ty++) {
        for (int64_t tx = t.x0; tx < t.x1; tx++)
            give_back(dy, winner, (int32_t)(ty * w->kernel + tx), p->channels,
                      image + pixel_of(w, oy, ox, ty, tx) * p->channels);
    }
}

/* Samples. */
static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    const tctl_window *w = &p->window;
    const int64_t image_size = w->height * w->width * p->channels;
    const int64_t out_size = w->out_height * w->out_width * p->channels;
    const int32_t *winners = self->saved;
    for (int64_t n = first; n < last; n++) {
        float *image = self->dx[0] + n * image_size;
        if (!self->add_dx[0])
            memset(image, 0, (size_t)image_size * sizeof *image);
        for (int64_t at = 0; at < out_size; at += p->channels) {
            int64_t window = at / p->channels;
            give_back_window(p, self->dy + n * out_size + at, winners + n * out_size + at,
                             window / w->out_width, window % w->out_width, image);
        }
    }
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n, 1, backward_range);
}

const tctl_op tctl_op_maxpool = {
    .schema = &tctl_network_op_table[TCTL_OP_MAXPOOL],
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
