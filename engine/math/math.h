/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over elementary functions and over rows, compiled once for each instruction set from one source (math_body.h).
 * All variants give the same bits: elements are computed by themselves, and sums over a row have a fixed order that
 * 4, 8 and 16 lanes can keep (docs/numerics.md, "Row sums"). Calls are single-threaded. [any]
 */
#ifndef TCTL_ENGINE_MATH_H
#define TCTL_ENGINE_MATH_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/gemm/gemm.h"

enum { TCTL_ROW_LANES = 16 };

/* Functions of one number. */
typedef enum tctl_map {
    TCTL_MAP_GELU,
    TCTL_MAP_GELU_TANH,
    TCTL_MAP_SILU,
    TCTL_MAP_SIGMOID,
    TCTL_MAP_TANH,
    TCTL_MAP_EXP,
    TCTL_MAPS
} tctl_map;

/* y[i] = f(x[i]); y may be x. */
typedef void tctl_map_fn(int64_t n, const float *x, float *y);
/* The same, and slope[i] = f'(x[i]): what the two have in common is computed once. */
typedef void tctl_both_fn(int64_t n, const float *x, float *y, float *slope);
/* dx[i] = dy[i] * slope, or dx[i] += that, with the slope from y = f(x). dx may be dy. */
typedef void tctl_slope_fn(int64_t n, const float *y, const float *dy, float *dx, bool add);

/* What is multiplied and added behind the normalization; NULL: nothing. [channels] */
typedef struct tctl_affine {
    const float *weight, *bias;
} tctl_affine;

/* Rows of attention scores, [rows, columns]. Row r has a meaning in its first live + r * live_step columns, at least one;
 * results behind them are +0. Scores are multiplied by `scale` first. */
typedef struct tctl_scores {
    int64_t rows, columns, live, live_step;
    float scale;
} tctl_scores;

typedef struct tctl_math {
    tctl_map_fn *map[TCTL_MAPS];
    tctl_both_fn *both[TCTL_MAPS];          /* gelu, its tanh form, silu; else NULL */
    tctl_slope_fn *slope_from_y[TCTL_MAPS]; /* sigmoid, tanh; else NULL */

    /* One row of layer normalization. */
    void (*normalize)(int64_t n, const float *x, const tctl_affine *, float eps, float *y, float *ret_mean,
                      float *ret_inv);
    void (*normalize_gradient)(int64_t n, const float *x, const float *dy, const float *weight, float mean,
                               float inv, float *dx, bool add);

    /* Every row becomes its softmax. saved[rows][2] gets what the second needs to give the same bits again: the
     * largest scaled score of the row, and 1 / (the sum). */
    void (*softmax)(const tctl_scores *, float *s, float *saved);
    void (*softmax_again)(const tctl_scores *, const float *saved, float *s);
    /* g = scale * (p * (g - (row sum of p * g))) in live columns, +0 behind them. */
    void (*softmax_gradient)(const tctl_scores *, const float *p, float *g);
} tctl_math;

/* The functions that go with a variant of the matrix product. */
const tctl_math *tctl_math_of(const tctl_simd *);

extern const tctl_math tctl_math_portable;
#if defined(__x86_64__)
extern const tctl_math tctl_math_avx2, tctl_math_avx512;
#endif

#endif
