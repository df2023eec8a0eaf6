/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution as matrices: its geometry, and the gathering of patches into rows.
 */
#ifndef TCTL_ENGINE_PATCHES_H
#define TCTL_ENGINE_PATCHES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tctl_window {
    int64_t height, width;         /* of the input image */
    int64_t out_height, out_width; /* (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1 */
    int64_t kernel, stride, pad, dilation;
} tctl_window;

/* Input pixels whose gradient takes the same taps: those with (y + pad) mod stride = phase_y, and so for x. */
typedef struct tctl_phase {
    int64_t first_y, first_x; /* smallest such coordinates */
    int64_t height, width;    /* how many: 0 if there is none */
    int64_t tap_y, n_tap_y;   /* first tap row that reaches them, and how many do, tap_step apart */
    int64_t tap_x, n_tap_x;
    int64_t tap_step;
} tctl_phase;

/* Phase `index` of stride * stride. */
tctl_phase tctl_phase_of(const tctl_window *, int64_t index);

/* Channels first..last-1 of an image of `all` channels. */
typedef struct tctl_channels {
    int64_t all, first, count;
} tctl_channels;

/*
 * dst[r - row0][k - k0] = x at output position r = (sample * out_height + oy) * out_width + ox, and
 * k = (tap_y * kernel + tap_x) * count + channel, for row0 <= r < row1 and k0 <= k < k1. Positions outside the image
 * are 0. Rows of dst are `stride` floats apart.
 */
void tctl_patches_gather(const tctl_window *, const float *x, const tctl_channels *, int64_t row0,
                         int64_t row1, int64_t k0, int64_t k1, float *dst, size_t stride);

/* Rows row0..row0+rows-1 of one image [height, width, channels->all], with `pad` columns of zeros on either side of each:
 * dst[rows][width + 2 pad][channels->count]. Rows outside the image are zeros. */
void tctl_patches_band(const float *image, int64_t height, int64_t width, const tctl_channels *channels,
                       int64_t pad, int64_t row0, int64_t rows, float *dst);

/*
 * As tctl_patches_gather, for the input gradient: dst[r - row0][k] = dy at what input pixel r = (sample * height + v) * width + u of
 * the phase reads through tap k = (tap_y, tap_x, channel), taps of the phase in ascending order.
 */
void tctl_patches_gather_phase(const tctl_window *, const tctl_phase *, const float *dy,
                               const tctl_channels *, int64_t row0, int64_t row1, float *dst, size_t stride);

/* A row stride for gathered rows of k floats: an odd number of cache lines, so that rows do not share sets. */
static inline size_t tctl_patches_stride(int64_t k)
{
    return (((size_t)k + 15) / 16 * 16) | 16;
}

#endif
