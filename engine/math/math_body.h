/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of math.h, in plain C that compilers vectorise: included by each math_*.c after it has defined MATH_TABLE,
 * the name of its table, MATH_FUNCTIONS, the file with its map_exp, map_gelu and both_gelu, and NORM_LANES, the floats of
 * its vectors; compiled with the flags of its instruction set.
 *
 * A row sum has TCTL_ROW_LANES chains from +0, chain l over the elements l, l + 16, l + 32, ...; then neighbours are
 * added, as in tree.h: ((0 + 1) + (2 + 3)) + ...
 */
#include <math.h>
#include <string.h>

#include "base/fmath_activation.h"
#include "engine/math/loops.h"
#include "engine/math/math.h"
#include MATH_FUNCTIONS

enum { LANES = TCTL_ROW_LANES };

static float join_lanes(float lanes[LANES])
{
    for (int step = 1; step < LANES; step *= 2) {
        for (int l = 0; l < LANES; l += 2 * step)
            lanes[l] += lanes[l + step];
    }
    return lanes[0];
}

/* TERM is an expression of j. */
#define ROW_SUM(name, TERM, ...)                                                                             \
    static float name(int64_t n, __VA_ARGS__)                                                                \
    {                                                                                                        \
        float lanes[LANES] = {0};                                                                            \
        int64_t at = 0;                                                                                      \
        for (; at + LANES <= n; at += LANES) {                                                               \
            for (int l = 0; l < LANES; l++) {                                                                \
                const int64_t j = at + l;                                                                    \
                lanes[l] += (TERM);                                                                          \
            }                                                                                                \
        }                                                                                                    \
        for (int64_t j = at; j < n; j++)                                                                     \
            lanes[j - at] += (TERM);                                                                         \
        return join_lanes(lanes);                                                                            \
    }

ROW_SUM(sum_of, x[j], const float *x)
ROW_SUM(sum_of_squares, (x[j] - mean) * (x[j] - mean), const float *x, float mean)
ROW_SUM(sum_of_products, a[j] * b[j], const float *a, const float *b)
ROW_SUM(sum_of_weighted, dy[j] * weight[j], const float *dy, const float *weight)
ROW_SUM(sum_of_weighted_normal, (dy[j] * weight[j]) * ((x[j] - mean) * inv), const float *dy,
        const float *weight, const float *x, float mean, float inv)
ROW_SUM(sum_of_normal, dy[j] * ((x[j] - mean) * inv), const float *dy, const float *x, float mean, float inv)

/* ---- functions of one number --------------------------------------------------------------------------- */

#define MAP(name, f)                                                                                         \
    static void name(int64_t n, const float *x, float *y)                                                    \
    {                                                                                                        \
        ELEMENTWISE                                                                                          \
        for (int64_t i = 0; i < n; i++)                                                                      \
            y[i] = f(x[i]);                                                                                  \
    }

#define SLOPE(name, f)                                                                                       \
    static void name(int64_t n, const float *at, const float *dy, float *dx, bool add)                       \
    {                                                                                                        \
        if (add) {                                                                                           \
            ELEMENTWISE                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                  \
                dx[i] += dy[i] * f(at[i]);                                                                   \
        } else {                                                                                             \
            ELEMENTWISE                                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                  \
                dx[i] = dy[i] * f(at[i]);                                                                    \
        }                                                                                                    \
    }

#define BOTH(name, f, df)                                                                                    \
    static void name(int64_t n, const float *x, float *y, float *slope)                                      \
    {                                                                                                        \
        ELEMENTWISE                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            const float v = x[i];                                                                            \
            y[i] = f(v);                                                                                     \
            slope[i] = df(v);                                                                                \
        }                                                                                                    \
    }

static inline float sigmoid_slope(float y)
{
    return y * (1 - y);
}

static inline float tanh_slope(float y)
{
    return 1 - y * y;
}

MAP(map_gelu_tanh, tctl_gelu_tanhf_inline)
MAP(map_silu, tctl_siluf_inline)
MAP(map_sigmoid, tctl_sigmoidf_inline)
MAP(map_tanh, tctl_tanhf_inline)
BOTH(both_gelu_tanh, tctl_gelu_tanhf_inline, tctl_gelu_tanh_slopef_inline)
BOTH(both_silu, tctl_siluf_inline, tctl_silu_slopef_inline)
SLOPE(slope_sigmoid, sigmoid_slope)
SLOPE(slope_tanh, tanh_slope)

/* ---- layer normalization ------------------------------------------------------------------------------- */

static void normalize(int64_t n, const float *x, const tctl_affine *affine, float eps, float *y,
                      float *ret_mean, float *ret_inv)
{
    const float count = (float)n, mean = sum_of(n, x) / count;
    const float inv = 1 / sqrtf(sum_of_squares(n, x, mean) / count + eps);
    const float *weight = affine->weight, *bias = affine->bias;
    *ret_mean = mean;
    *ret_inv = inv;
    if (weight) {
        for (int64_t j = 0; j < n; j++)
            y[j] = ((x[j] - mean) * inv) * weight[j] + bias[j];
    } else {
        for (int64_t j = 0; j < n; j++)
            y[j] = (x[j] - mean) * inv;
    }
}

static void normalize_gradient(int64_t n, const float *x, const float *dy, const float *weight, float mean,
                               float inv, float *dx, bool add)
{
    const float count = (float)n;
    const float a = (weight ? sum_of_weighted(n, dy, weight) : sum_of(n, dy)) / count;
    const float b =
        (weight ? sum_of_weighted_normal(n, dy, weight, x, mean, inv) : sum_of_normal(n, dy, x, mean, inv)) /
        count;
    for (int64_t j = 0; j < n; j++) {
        float g = weight ? dy[j] * weight[j] : dy[j];
        float d = inv * ((g - a) - ((x[j] - mean) * inv) * b);
        dx[j] = add ? dx[j] + d : d;
    }
}

/* ---- softmax ------------------------------------------------------------------------------------------- */

typedef float row_vec __attribute__((vector_size(NORM_LANES * sizeof(float))));
typedef int32_t row_mask __attribute__((vector_size(NORM_LANES * sizeof(float))));

/* Of each lane. Written as a choice of bits: compilers make branches of a comparison with not-a-numbers. */
static inline row_vec larger(row_vec a, row_vec b)
{
    const row_mask second = b > a;
    return (row_vec)(((row_mask)b & second) | ((row_mask)a & ~second));
}

/* A not-a-number is never the largest; it makes the sum one. */
static float scale_and_find_largest(int64_t n, float scale, float *s)
{
    float lanes[NORM_LANES];
    row_vec best = (row_vec){0} - INFINITY, next;
    int64_t at = 0;
    for (; at + NORM_LANES <= n; at += NORM_LANES) {
        memcpy(&next, s + at, sizeof next);
        next *= scale;
        memcpy(s + at, &next, sizeof next);
        best = larger(best, next);
    }
    for (int l = 0; l < NORM_LANES; l++)
        lanes[l] = best[l];
    for (int64_t j = at; j < n; j++) {
        s[j] *= scale;
        lanes[j - at] = s[j] > lanes[j - at] ? s[j] : lanes[j - at];
    }
    for (int l = 1; l < NORM_LANES; l++)
        lanes[0] = lanes[l] > lanes[0] ? lanes[l] : lanes[0];
    return lanes[0];
}

static int64_t live_columns(const tctl_scores *c, int64_t row)
{
    return c->live + row * c->live_step;
}

static void clear(int64_t from, int64_t to, float *s)
{
    for (int64_t j = from; j < to; j++)
        s[j] = 0;
}

/* All rows at once, so that no row has an end to be cut off; what is behind the live columns comes out as anything. */
static void exponentials(const tctl_scores *c, float *s)
{
    map_exp(c->rows * c->columns, s, s);
}

static void softmax(const tctl_scores *c, float *s, float *saved)
{
    float *row = s;
    for (int64_t r = 0; r < c->rows; r++, row += c->columns) {
        const float max = saved[2 * r] = scale_and_find_largest(live_columns(c, r), c->scale, row);
        for (int64_t j = 0; j < c->columns; j++)
            row[j] -= max;
    }
    exponentials(c, s);
    row = s;
    for (int64_t r = 0; r < c->rows; r++, row += c->columns) {
        const int64_t live = live_columns(c, r);
        const float inv = saved[2 * r + 1] = 1 / sum_of(live, row);
        for (int64_t j = 0; j < live; j++)
            row[j] *= inv;
        clear(live, c->columns, row);
    }
}

static void softmax_again(const tctl_scores *c, const float *saved, float *s)
{
    float *row = s;
    for (int64_t r = 0; r < c->rows; r++, row += c->columns) {
        const float max = saved[2 * r];
        for (int64_t j = 0; j < c->columns; j++)
            row[j] = row[j] * c->scale - max;
    }
    exponentials(c, s);
    row = s;
    for (int64_t r = 0; r < c->rows; r++, row += c->columns) {
        const int64_t live = live_columns(c, r);
        const float inv = saved[2 * r + 1];
        for (int64_t j = 0; j < live; j++)
            row[j] *= inv;
        clear(live, c->columns, row);
    }
}

static void softmax_gradient(const tctl_scores *c, const float *p, float *g)
{
    for (int64_t r = 0; r < c->rows; r++, p += c->columns, g += c->columns) {
        const int64_t live = live_columns(c, r);
        const float mean = sum_of_products(live, p, g);
        for (int64_t j = 0; j < live; j++)
            g[j] = (p[j] * (g[j] - mean)) * c->scale;
        clear(live, c->columns, g);
    }
}

const tctl_math MATH_TABLE = {
    .map = {map_gelu, map_gelu_tanh, map_silu, map_sigmoid, map_tanh, map_exp},
    .both = {[TCTL_MAP_GELU] = both_gelu, [TCTL_MAP_GELU_TANH] = both_gelu_tanh, [TCTL_MAP_SILU] = both_silu},
    .slope_from_y = {[TCTL_MAP_SIGMOID] = slope_sigmoid, [TCTL_MAP_TANH] = slope_tanh},
    .normalize = normalize,
    .normalize_gradient = normalize_gradient,
    .softmax = softmax,
    .softmax_again = softmax_again,
    .softmax_gradient = softmax_gradient,
};
