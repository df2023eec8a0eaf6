/* SPDX-License-Identifier: Apache-2.0 */
/* See patches.h. Rows are written in ascending order, each from runs of consecutive floats. */
#include "engine/patches.h"

#include <string.h>

/* Short runs are common (3 x 3 x 1 channel), and there a call of memcpy costs more than the copy. */
static inline void copy_run(float *dst, const float *src, int64_t n)
{
    if (n >= 32) {
        memcpy(dst, src, (size_t)n * sizeof *dst);
        return;
    }
    for (; n >= 4; n -= 4, dst += 4, src += 4)
        memcpy(dst, src, 4 * sizeof *dst);
    if (n & 2) {
        memcpy(dst, src, 2 * sizeof *dst);
        dst += 2;
        src += 2;
    }
    if (n & 1)
        *dst = *src;
}

static inline void zero_run(float *dst, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        dst[i] = 0;
}

static inline int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* The floats from..to-1 of an image row of `size` floats, of which some may lie outside. */
static inline void copy_clipped(float *dst, const float *row, int64_t size, int64_t from, int64_t to)
{
    int64_t left = clamp(from, 0, size), right = clamp(to, 0, size);
    if (right <= left) {
        zero_run(dst, to - from);
        return;
    }
    zero_run(dst, left - from);
    copy_run(dst + (left - from), row + left, right - left);
    zero_run(dst + (right - from), to - right);
}

/* Neighbouring taps of one tap row are neighbours in memory: one run per tap row. */
static void gather_dense_row(const tctl_window *w, const float *image, const tctl_channels *c, int64_t y,
                             int64_t x, int64_t k0, int64_t k1, float *dst)
{
    const int64_t run = w->kernel * c->all, size = w->width * c->all;
    for (int64_t ty = k0 / run; ty * run < k1; ty++) {
        int64_t from = clamp(k0 - ty * run, 0, run), to = clamp(k1 - ty * run, 0, run);
        float *out = dst + ty * run + from - k0;
        if (y + ty < 0 || y + ty >= w->height)
            zero_run(out, to - from);
        else
            copy_clipped(out, image + (y + ty) * size, size, x * c->all + from, x * c->all + to);
    }
}

/* Dilated taps, or some of the channels: one run per tap. */
static void gather_tap_row(const tctl_window *w, const float *image, const tctl_channels *c, int64_t y,
                           int64_t x, int64_t k0, int64_t k1, float *dst)
{
    for (int64_t tap = k0 / c->count; tap * c->count < k1; tap++) {
        int64_t from = clamp(k0 - tap * c->count, 0, c->count), to = clamp(k1 - tap * c->count, 0, c->count);
        int64_t ty = y + tap / w->kernel * w->dilation, tx = x + tap % w->kernel * w->dilation;
        float *out = dst + tap * c->count + from - k0;
        if (ty < 0 || ty >= w->height || tx < 0 || tx >= w->width)
            zero_run(out, to - from);
        else
            copy_run(out, image + (ty * w->width + tx) * c->all + c->first + from, to - from);
    }
}

void tctl_patches_gather(const tctl_window *w, const float *x, const tctl_channels *c, int64_t row0,
                         int64_t row1, int64_t k0, int64_t k1, float *dst, size_t stride)
{
    const bool dense = w->dilation == 1 && c->count == c->all;
    const int64_t image_size = w->height * w->width * c->all;
    int64_t ox = row0 % w->out_width, oy = row0 / w->out_width % w->out_height;
    const float *image = x + row0 / (w->out_width * w->out_height) * image_size;
    for (int64_t r = row0; r < row1; r++, dst += stride) {
        int64_t top = oy * w->stride - w->pad, left = ox * w->stride - w->pad;
        if (dense)
            gather_dense_row(w, image, c, top, left, k0, k1, dst);
        else
            gather_tap_row(w, image, c, top, left, k0, k1, dst);
        if (++ox == w->out_width) {
            ox = 0;
            if (++oy == w->out_height) {
                oy = 0;
                image += image_size;
            }
        }
    }
}

static void copy_pixels(const float *row, int64_t width, const tctl_channels *c, float *dst)
{
    if (c->count == c->all) {
        memcpy(dst, row, (size_t)(width * c->all) * sizeof *dst);
        return;
    }
    row += c->first;
    for (int64_t x = 0; x < width; x++, row += c->all, dst += c->count)
        copy_run(dst, row, c->count);
}

void tctl_patches_band(const float *image, int64_t height, int64_t width, const tctl_channels *channels,
                       int64_t pad, int64_t row0, int64_t rows, float *dst)
{
    const int64_t size = width * channels->count, border = pad * channels->count;
    for (int64_t y = row0; y < row0 + rows; y++, dst += size + 2 * border) {
        if (y < 0 || y >= height) {
            zero_run(dst, size + 2 * border);
            continue;
        }
        zero_run(dst, border);
        copy_pixels(image + y * width * channels->all, width, channels, dst + border);
        zero_run(dst + border + size, border);
    }
}

/* ---- the other way -------------------------------------------------------------------------------------- */

/* Coordinates 0..size-1 with (coordinate + pad) mod stride = phase. */
static void phase_pixels(int64_t size, const tctl_window *w, int64_t phase, int64_t *ret_first,
                         int64_t *ret_n)
{
    int64_t first = ((phase - w->pad) % w->stride + w->stride) % w->stride;
    *ret_first = first;
    *ret_n = first < size ? (size - 1 - first) / w->stride + 1 : 0;
}

/* Taps with (tap * dilation) mod stride = phase. They are tap_step apart. */
static void phase_taps(const tctl_window *w, int64_t phase, int64_t *ret_first, int64_t *ret_n,
                       int64_t *ret_step)
{
    int64_t step = 1;
    while (step * w->dilation % w->stride != 0)
        step++;
    int64_t first = 0;
    while (first < w->kernel && first * w->dilation % w->stride != phase)
        first++;
    *ret_first = first;
    *ret_n = first < w->kernel ? (w->kernel - 1 - first) / step + 1 : 0;
    *ret_step = step;
}

tctl_phase tctl_phase_of(const tctl_window *w, int64_t index)
{
    tctl_phase p;
    phase_pixels(w->height, w, index / w->stride, &p.first_y, &p.height);
    phase_pixels(w->width, w, index % w->stride, &p.first_x, &p.width);
    phase_taps(w, index / w->stride, &p.tap_y, &p.n_tap_y, &p.tap_step);
    phase_taps(w, index % w->stride, &p.tap_x, &p.n_tap_x, &p.tap_step);
    return p;
}

/* One row: what input pixel (y, x) reads of the gradient `image`. Divisions are exact by the choice of taps. */
static void gather_phase_row(const tctl_window *w, const tctl_phase *p, const float *image,
                             const tctl_channels *c, int64_t y, int64_t x, float *dst)
{
    for (int64_t i = 0; i < p->n_tap_y; i++) {
        int64_t oy = y + w->pad - (p->tap_y + i * p->tap_step) * w->dilation;
        bool inside = oy >= 0 && oy / w->stride < w->out_height;
        const float *row = image + c->first + (inside ? oy / w->stride * w->out_width * c->all : 0);
        for (int64_t j = 0; j < p->n_tap_x; j++, dst += c->count) {
            int64_t ox = x + w->pad - (p->tap_x + j * p->tap_step) * w->dilation;
            if (inside && ox >= 0 && ox / w->stride < w->out_width)
                copy_run(dst, row + ox / w->stride * c->all, c->count);
            else
                zero_run(dst, c->count);
        }
    }
}

void tctl_patches_gather_phase(const tctl_window *w, const tctl_phase *p, const float *dy,
                               const tctl_channels *c, int64_t row0, int64_t row1, float *dst, size_t stride)
{
    const int64_t image_size = w->out_height * w->out_width * c->all;
    for (int64_t r = row0; r < row1; r++, dst += stride) {
        int64_t u = r % p->width, v = r / p->width % p->height;
        const float *image = dy + r / (p->width * p->height) * image_size;
        gather_phase_row(w, p, image, c, p->first_y + v * w->stride, p->first_x + u * w->stride, dst);
    }
}
