/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loops of norm.h, in plain C that compilers vectorise: included by each math_*.c after it has defined NORM_TABLE,
 * the name of its table, and NORM_LANES, the floats of a register, and compiled with the flags of its instruction set.
 */
#include <string.h>

#include "engine/math/loops.h"
#include "engine/math/norm.h"

/* ---- sums of channels ---------------------------------------------------------------------------------- */

/* As many floats as a register holds. Sums of a block of channels stay in registers; compilers do not see that in plain
 * arrays. */
typedef float vec __attribute__((vector_size(NORM_LANES * sizeof(float))));
enum { BLOCK = 2 * NORM_LANES };

static inline vec load(const float *p)
{
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline void store(float *p, vec v)
{
    memcpy(p, &v, sizeof v);
}

static void add_sums(int64_t n, int64_t channels, const float *x, float *sums)
{
    int64_t c = 0;
    for (; c + BLOCK <= channels; c += BLOCK) {
        vec low = load(sums + c), high = load(sums + c + NORM_LANES);
        const float *from = x + c;
        for (int64_t r = 0; r < n; r++, from += channels) {
            low += load(from);
            high += load(from + NORM_LANES);
        }
        store(sums + c, low);
        store(sums + c + NORM_LANES, high);
    }
    for (; c < channels; c++) {
        for (int64_t r = 0; r < n; r++)
            sums[c] += x[r * channels + c];
    }
}

static inline vec square(vec v)
{
    return v * v;
}

static void add_squares(int64_t n, int64_t channels, const float *x, const float *mean, float *sums)
{
    int64_t c = 0;
    for (; c + BLOCK <= channels; c += BLOCK) {
        const vec low_mean = load(mean + c), high_mean = load(mean + c + NORM_LANES);
        vec low = load(sums + c), high = load(sums + c + NORM_LANES);
        const float *from = x + c;
        for (int64_t r = 0; r < n; r++, from += channels) {
            low += square(load(from) - low_mean);
            high += square(load(from + NORM_LANES) - high_mean);
        }
        store(sums + c, low);
        store(sums + c + NORM_LANES, high);
    }
    for (; c < channels; c++) {
        for (int64_t r = 0; r < n; r++) {
            const float v = x[r * channels + c] - mean[c];
            sums[c] += v * v;
        }
    }
}

static void add_gradients(int64_t n, int64_t channels, const float *x, const float *mean, const float *dy,
                          float *sums)
{
    float *products = sums + channels;
    int64_t c = 0;
    for (; c + BLOCK <= channels; c += BLOCK) {
        const vec low_mean = load(mean + c), high_mean = load(mean + c + NORM_LANES);
        vec low = load(sums + c), high = load(sums + c + NORM_LANES);
        vec low_product = load(products + c), high_product = load(products + c + NORM_LANES);
        const float *from = x + c, *by = dy + c;
        for (int64_t r = 0; r < n; r++, from += channels, by += channels) {
            const vec low_dy = load(by), high_dy = load(by + NORM_LANES);
            low += low_dy;
            high += high_dy;
            low_product += low_dy * (load(from) - low_mean);
            high_product += high_dy * (load(from + NORM_LANES) - high_mean);
        }
        store(sums + c, low);
        store(sums + c + NORM_LANES, high);
        store(products + c, low_product);
        store(products + c + NORM_LANES, high_product);
    }
    for (; c < channels; c++) {
        for (int64_t r = 0; r < n; r++) {
            sums[c] += dy[r * channels + c];
            products[c] += dy[r * channels + c] * (x[r * channels + c] - mean[c]);
        }
    }
}

/* ---- elements ------------------------------------------------------------------------------------------ */

static void apply(const tctl_normalization *a, int64_t n, const float *x, float *y)
{
    const float *restrict mean = a->mean, *restrict factor = a->factor, *restrict shift = a->shift;
    const int64_t channels = a->channels;
    for (int64_t r = 0; r < n; r++, x += channels, y += channels) {
        if (a->relu) {
            ELEMENTWISE
            for (int64_t c = 0; c < channels; c++) {
                const float v = (x[c] - mean[c]) * factor[c] + shift[c];
                y[c] = v <= 0 ? 0.0f : v;
            }
        } else {
            ELEMENTWISE
            for (int64_t c = 0; c < channels; c++)
                y[c] = (x[c] - mean[c]) * factor[c] + shift[c];
        }
    }
}

static void mask(const tctl_normalization *a, int64_t n, const float *x, const float *dy, float *out)
{
    const float *restrict mean = a->mean, *restrict factor = a->factor, *restrict shift = a->shift;
    const int64_t channels = a->channels;
    for (int64_t r = 0; r < n; r++, x += channels, dy += channels, out += channels) {
        ELEMENTWISE
        for (int64_t c = 0; c < channels; c++) {
            const float v = (x[c] - mean[c]) * factor[c] + shift[c], g = dy[c];
            out[c] = v <= 0 ? 0.0f : g;
        }
    }
}

static void gradient(const tctl_normalization *a, int64_t n, const float *x, const float *dy, const float *b,
                     const float *d, float *dx, bool add)
{
    const float *restrict mean = a->mean, *restrict factor = a->factor;
    const int64_t channels = a->channels;
    for (int64_t r = 0; r < n; r++, x += channels, dy += channels, dx += channels) {
        if (add) {
            ELEMENTWISE
            for (int64_t c = 0; c < channels; c++)
                dx[c] += factor[c] * ((dy[c] - b[c]) - (x[c] - mean[c]) * d[c]);
        } else {
            ELEMENTWISE
            for (int64_t c = 0; c < channels; c++)
                dx[c] = factor[c] * ((dy[c] - b[c]) - (x[c] - mean[c]) * d[c]);
        }
    }
}

/* ---- max-pool ------------------------------------------------------------------------------------------ */

typedef int32_t mask_vec __attribute__((vector_size(NORM_LANES * sizeof(int32_t))));
typedef uint8_t byte_vec __attribute__((vector_size(NORM_LANES)));

static inline vec choose(mask_vec which, vec yes, vec no)
{
    return (vec)((which & (mask_vec)yes) | (~which & (mask_vec)no));
}

typedef struct vectors {
    vec mean, factor, shift;
    bool relu;
} vectors;

static inline vec normalized(const vectors *a, const float *x)
{
    const vec zero = {0}, v = (load(x) - a->mean) * a->factor + a->shift;
    return a->relu ? choose(v <= zero, zero, v) : v;
}

static inline void compete(vec v, int32_t tap, vec *best, mask_vec *winner)
{
    const mask_vec wins = (v > *best) | ((v != v) & (*best == *best));
    *best = choose(wins, v, *best);
    *winner = (wins & tap) | (~wins & *winner);
}

/* NORM_LANES channels of one window. */
static inline void pool_vector(const vectors *a, int64_t kernel, const float *x, int64_t row,
                               int64_t channels, float *y, uint8_t *winners)
{
    vec best = normalized(a, x);
    mask_vec winner = {0};
    int32_t tap = 1;
    for (int64_t tx = 1; tx < kernel; tx++)
        compete(normalized(a, x + tx * channels), tap++, &best, &winner);
    for (int64_t ty = 1; ty < kernel; ty++) {
        for (int64_t tx = 0; tx < kernel; tx++)
            compete(normalized(a, x + ty * row + tx * channels), tap++, &best, &winner);
    }
    const byte_vec bytes = __builtin_convertvector(winner, byte_vec);
    store(y, best);
    memcpy(winners, &bytes, sizeof bytes);
}

static void pool_channel(const tctl_normalization *a, int64_t c, int64_t kernel, const float *x, int64_t row,
                         float *y, uint8_t *winners)
{
    for (int64_t ty = 0; ty < kernel; ty++) {
        for (int64_t tx = 0; tx < kernel; tx++) {
            float v = (x[ty * row + tx * a->channels + c] - a->mean[c]) * a->factor[c] + a->shift[c];
            if (a->relu)
                v = v <= 0 ? 0.0f : v;
            const int64_t tap = ty * kernel + tx;
            if (tap == 0 || v > y[c] || (v != v && y[c] == y[c])) {
                y[c] = v;
                winners[c] = (uint8_t)tap;
            }
        }
    }
}

static void apply_pool(const tctl_normalization *a, int64_t kernel, int64_t width, const float *x,
                       int64_t row, float *y, uint8_t *winners)
{
    const int64_t channels = a->channels;
    int64_t c = 0;
    for (; c + NORM_LANES <= channels; c += NORM_LANES) {
        const vectors block = {load(a->mean + c), load(a->factor + c), load(a->shift + c), a->relu};
        const float *from = x + c;
        for (int64_t at = c; at < width * channels; at += channels, from += kernel * channels) {
            if (kernel == 2) /* a constant, so that the taps unroll */
                pool_vector(&block, 2, from, row, channels, y + at, winners + at);
            else
                pool_vector(&block, kernel, from, row, channels, y + at, winners + at);
        }
    }
    for (; c < channels; c++) {
        for (int64_t i = 0; i < width; i++)
            pool_channel(a, c, kernel, x + i * kernel * channels, row, y + i * channels,
                         winners + i * channels);
    }
}

/* NORM_LANES channels of one window: dy, rounded as a sum that begins with +0, goes to the tap that has won. */
static inline void spread_vector(int64_t channels, int64_t kernel, int32_t tap, const float *dy,
                                 const float *y, const uint8_t *winners, float *out)
{
    const vec zero = {0}, sum = load(dy) + zero;
    const mask_vec g = (mask_vec)(y ? choose(load(y) <= zero, zero, sum) : sum);
    byte_vec bytes;
    memcpy(&bytes, winners, sizeof bytes);
    const mask_vec winner = __builtin_convertvector(bytes, mask_vec);
    for (int64_t tx = 0; tx < kernel; tx++)
        store(out + tx * channels, (vec)((winner == tap + (int32_t)tx) & g));
}

static void spread(int64_t channels, int64_t kernel, int64_t width, int64_t tap_y, const float *dy,
                   const float *y, const uint8_t *winners, float *out)
{
    const int32_t tap = (int32_t)(tap_y * kernel);
    for (int64_t at = 0; at < width * channels; at += channels, out += kernel * channels) {
        const float *from = y ? y + at : NULL;
        int64_t c = 0;
        for (; c + NORM_LANES <= channels; c += NORM_LANES)
            spread_vector(channels, kernel, tap, dy + at + c, from ? from + c : NULL, winners + at + c,
                          out + c);
        for (; c < channels; c++) {
            const float g = from && from[c] <= 0 ? 0.0f : 0.0f + dy[at + c];
            for (int64_t tx = 0; tx < kernel; tx++)
                out[tx * channels + c] = winners[at + c] == tap + tx ? g : 0.0f;
        }
    }
}

const tctl_norm NORM_TABLE = {.add_sums = add_sums,
                              .add_squares = add_squares,
                              .add_gradients = add_gradients,
                              .apply = apply,
                              .mask = mask,
                              .apply_pool = apply_pool,
                              .spread = spread,
                              .gradient = gradient};
