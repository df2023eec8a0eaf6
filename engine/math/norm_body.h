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

const tctl_norm NORM_TABLE = {.add_sums = add_sums,
                              .add_squares = add_squares,
                              .add_gradients = add_gradients,
                              .apply = apply,
                              .mask = mask,
                              .gradient = gradient};
