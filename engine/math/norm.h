/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over positions and channels: sums of channels, and what batch normalization and the operators behind it do with
 * each element. Compiled once for each instruction set from norm_body.h. All variants give the same bits: elements are
 * computed by themselves, and a sum takes its positions in order. Calls are single-threaded. [any]
 *
 * Arrays are [n, channels] of n positions. y, dx and out may be their input.
 */
#ifndef TCTL_ENGINE_NORM_H
#define TCTL_ENGINE_NORM_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/gemm/gemm.h"

/* y = (x - mean) * factor + shift, then, if `relu`, +0 where that is not positive. [channels] */
typedef struct tctl_normalization {
    int64_t channels;
    const float *mean, *factor, *shift;
    bool relu;
} tctl_normalization;

typedef struct tctl_norm {
    /* Chains go on: sums[c] += x[r][c] for r = 0, 1, ... */
    void (*add_sums)(int64_t n, int64_t channels, const float *x, float *sums);
    /* The same of (x - mean)^2. */
    void (*add_squares)(int64_t n, int64_t channels, const float *x, const float *mean, float *sums);
    /* The same of dy, and, in sums + channels, of dy * (x - mean). */
    void (*add_gradients)(int64_t n, int64_t channels, const float *x, const float *mean, const float *dy,
                          float *sums);

    void (*apply)(const tctl_normalization *, int64_t n, const float *x, float *y);
    /* out = dy where relu's output is positive (or not a number), else +0. */
    void (*mask)(const tctl_normalization *, int64_t n, const float *x, const float *dy, float *out);
    /* One row of `width` windows of kernel x kernel positions, which do not overlap, in image rows `row` floats apart: y is
     * the largest output of each window, winners the number of its tap, as op_maxpool.c has it. */
    void (*apply_pool)(const tctl_normalization *, int64_t kernel, int64_t width, const float *x, int64_t row,
                       float *y, uint8_t *winners);
    /* The gradient at the image row of taps tap_y: out[width * kernel][channels] = dy where the tap has won, else +0;
     * also +0 if `y` (not NULL) is not positive. */
    void (*spread)(int64_t channels, int64_t kernel, int64_t width, int64_t tap_y, const float *dy,
                   const float *y, const uint8_t *winners, float *out);
    /* dx = factor * ((dy - b) - (x - mean) * d), or dx += that. b and d: [channels] */
    void (*gradient)(const tctl_normalization *, int64_t n, const float *x, const float *dy, const float *b,
                     const float *d, float *dx, bool add);
} tctl_norm;

/* The loops that go with a variant of the matrix product. */
const tctl_norm *tctl_norm_of(const tctl_simd *);

extern const tctl_norm tctl_norm_portable;
#if defined(__x86_64__)
extern const tctl_norm tctl_norm_avx2, tctl_norm_avx512;
#endif

#endif
