/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over elementary functions and over rows: every variant that this processor can run gives the bits of the scalar
 * functions, and of sums written down naively. TRAINCTL_EXHAUSTIVE=1 looks at every float instead of every 1999th.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fmath.h"
#include "base/fmath_inline.h"
#include "engine/math/math.h"
#include "numbers.h"

enum { BLOCK = 4096, MAX_ROW = 70 };

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void same_row(const char *variant, const char *what, int64_t n, const float *got,
                     const float *expected)
{
    for (int64_t i = 0; i < n; i++) {
        if (!same(got[i], expected[i]))
            fail_msg("%s: %s of a row of %lld: [%lld] is %a; it should be %a", variant, what, (long long)n,
                     (long long)i, (double)got[i], (double)expected[i]);
    }
}

/* ---- functions of one number --------------------------------------------------------------------------- */

static const struct {
    tctl_map map;
    float (*f)(float), (*slope)(float); /* NULL: the slope is made from y */
} functions[] = {
    {TCTL_MAP_GELU, tctl_geluf, tctl_gelu_slopef},
    {TCTL_MAP_GELU_TANH, tctl_gelu_tanhf, tctl_gelu_tanh_slopef},
    {TCTL_MAP_SILU, tctl_siluf, tctl_silu_slopef},
    {TCTL_MAP_SIGMOID, tctl_sigmoidf, NULL},
    {TCTL_MAP_TANH, tctl_tanhf, NULL},
    {TCTL_MAP_EXP, tctl_expf, NULL},
};

/* `whole`: in place as well. */
static void check_block(const tctl_simd *simd, size_t k, int64_t n, const float *x, bool whole)
{
    const tctl_math *math = tctl_math_of(simd);
    static float y[BLOCK], expected[BLOCK], dx[BLOCK], slope[BLOCK], dy[BLOCK];
    for (int64_t i = 0; i < n; i++) {
        expected[i] = functions[k].f(x[i]);
        dy[i] = (float)(i % 7) - 3;
        slope[i] = functions[k].slope ? functions[k].slope(x[i]) : 0;
    }
    math->map[functions[k].map](n, x, y);
    same_row(simd->name, "function", n, y, expected);
    if (functions[k].slope) {
        math->both[functions[k].map](n, x, y, dx);
        same_row(simd->name, "function", n, y, expected);
        same_row(simd->name, "slope", n, dx, slope);
    }
    if (!whole)
        return;
    memcpy(y, x, (size_t)n * sizeof *y);
    math->map[functions[k].map](n, y, y);
    same_row(simd->name, "function in place", n, y, expected);
    if (functions[k].slope) {
        memcpy(y, x, (size_t)n * sizeof *y);
        math->both[functions[k].map](n, y, y, dx);
        same_row(simd->name, "function in place", n, y, expected);
        same_row(simd->name, "slope beside it", n, dx, slope);
        return;
    }
    for (int64_t i = 0; i < n && math->slope_from_y[functions[k].map]; i++)
        slope[i] = dy[i] * (functions[k].map == TCTL_MAP_TANH ? 1 - y[i] * y[i] : y[i] * (1 - y[i]));
    if (math->slope_from_y[functions[k].map]) {
        math->slope_from_y[functions[k].map](n, y, dy, dx, false);
        same_row(simd->name, "slope", n, dx, slope);
        math->slope_from_y[functions[k].map](n, y, dy, dy, false);
        same_row(simd->name, "slope in place", n, dy, slope);
    }
}

static void functions_have_the_bits_of_single_calls(void **state)
{
    (void)state;
    const uint64_t stride = getenv("TRAINCTL_EXHAUSTIVE") ? 1 : 1999;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    static float x[BLOCK];
    for (uint64_t bits = 0, block = 0; bits <= UINT32_MAX; block++) {
        int64_t n = 0;
        for (; n < BLOCK && bits <= UINT32_MAX; n++, bits += stride)
            x[n] = tctl_float_of_bits((uint32_t)bits);
        for (uint32_t v = 0; v < n_variants; v++) {
            for (size_t k = 0; k < sizeof functions / sizeof functions[0]; k++)
                check_block(simd[v], k, n, x, block % 16 == 0);
        }
    }
}

static void blocks_of_every_length_end_where_they_end(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    float x[MAX_ROW], y[MAX_ROW];
    fill_floats(x, MAX_ROW, 3);
    for (uint32_t v = 0; v < n_variants; v++) {
        for (int64_t n = 0; n < MAX_ROW; n++) {
            y[n] = 77;
            tctl_math_of(simd[v])->map[TCTL_MAP_GELU](n, x, y);
            for (int64_t i = 0; i < n; i++)
                assert_true(same(y[i], tctl_geluf(x[i])));
            assert_true(y[n] == 77);
        }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static float row_sum(int64_t n, const float *terms)
{
    float lanes[TCTL_ROW_LANES] = {0};
    for (int64_t j = 0; j < n; j++)
        lanes[j % TCTL_ROW_LANES] += terms[j];
    for (int count = TCTL_ROW_LANES; count > 1; count /= 2) {
        for (int l = 0; l < count / 2; l++)
            lanes[l] = lanes[2 * l] + lanes[2 * l + 1];
    }
    return lanes[0];
}

static void check_softmax(const tctl_simd *simd, int64_t n, int64_t live, const float *scores)
{
    const float scale = 0.37f;
    const tctl_math *math = tctl_math_of(simd);
    float p[MAX_ROW], again[MAX_ROW], g[MAX_ROW], expected[MAX_ROW] = {0}, terms[MAX_ROW], max = -INFINITY,
                                                  got_max, got_inv;
    for (int64_t j = 0; j < live; j++)
        max = scores[j] * scale > max ? scores[j] * scale : max;
    for (int64_t j = 0; j < live; j++)
        expected[j] = tctl_expf(scores[j] * scale - max);
    const float inv = 1 / row_sum(live, expected);
    for (int64_t j = 0; j < live; j++)
        expected[j] *= inv;
    memcpy(p, scores, (size_t)n * sizeof *p);
    memcpy(again, scores, (size_t)n * sizeof *p);
    math->softmax(n, live, scale, p, &got_max, &got_inv);
    assert_true(same(got_max, max) && same(got_inv, inv));
    same_row(simd->name, "softmax", n, p, expected);
    math->softmax_again(n, live, scale, max, inv, again);
    same_row(simd->name, "softmax again", n, again, expected);
    for (int64_t j = 0; j < n; j++) {
        g[j] = (float)(j % 5) - 1.7f;
        terms[j] = p[j] * g[j];
    }
    const float mean = row_sum(live, terms);
    for (int64_t j = 0; j < n; j++)
        expected[j] = j < live ? (p[j] * (g[j] - mean)) * scale : 0;
    math->softmax_gradient(n, live, scale, p, g);
    same_row(simd->name, "softmax gradient", n, g, expected);
}

static void softmax_of_rows_of_every_length(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    float scores[MAX_ROW];
    for (int64_t n = 1; n <= MAX_ROW; n++) {
        fill_floats(scores, MAX_ROW, (uint64_t)n);
        for (uint32_t v = 0; v < n_variants; v++) {
            check_softmax(simd[v], n, n, scores);
            check_softmax(simd[v], n, n / 2 + 1, scores);
        }
    }
}

/* Large scores, infinite ones and not-a-number: finite where the sum is, and not-a-number where it must be. */
static void softmax_of_extremes(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    for (uint32_t v = 0; v < n_variants; v++) {
        const tctl_math *math = tctl_math_of(simd[v]);
        float max, inv, large[3] = {1e30f, -1e30f, 1e30f}, missing[3] = {0, -INFINITY, 0}, bad[20] = {0};
        math->softmax(3, 3, 1, large, &max, &inv);
        assert_true(large[0] == 0.5f && large[1] == 0 && large[2] == 0.5f);
        math->softmax(3, 3, 1, missing, &max, &inv);
        assert_true(missing[0] == 0.5f && missing[1] == 0 && missing[2] == 0.5f);
        bad[17] = NAN;
        math->softmax(20, 20, 1, bad, &max, &inv);
        for (int j = 0; j < 20; j++)
            assert_true(isnan(bad[j]));
    }
}

static void check_normalize(const tctl_simd *simd, int64_t n, const float *x, const float *weight,
                            const float *bias)
{
    const tctl_math *math = tctl_math_of(simd);
    const tctl_affine affine = {weight, bias};
    float y[MAX_ROW], expected[MAX_ROW], terms[MAX_ROW], gu[MAX_ROW], dy[MAX_ROW], dx[MAX_ROW], got_mean,
        got_inv;
    const float mean = row_sum(n, x) / (float)n;
    for (int64_t j = 0; j < n; j++)
        terms[j] = (x[j] - mean) * (x[j] - mean);
    const float inv = 1 / sqrtf(row_sum(n, terms) / (float)n + 1e-5f);
    for (int64_t j = 0; j < n; j++) {
        expected[j] = (x[j] - mean) * inv;
        if (weight)
            expected[j] = expected[j] * weight[j] + bias[j];
    }
    math->normalize(n, x, &affine, 1e-5f, y, &got_mean, &got_inv);
    assert_true(same(got_mean, mean) && same(got_inv, inv));
    same_row(simd->name, "normalization", n, y, expected);
    for (int64_t j = 0; j < n; j++) {
        dy[j] = (float)(j % 5) - 1.7f;
        terms[j] = weight ? dy[j] * weight[j] : dy[j];
        gu[j] = terms[j] * ((x[j] - mean) * inv);
    }
    const float a = row_sum(n, terms) / (float)n, b = row_sum(n, gu) / (float)n;
    for (int64_t j = 0; j < n; j++) {
        expected[j] = inv * ((terms[j] - a) - ((x[j] - mean) * inv) * b);
        dx[j] = 0.25f;
        terms[j] = 0.25f + expected[j];
    }
    math->normalize_gradient(n, x, dy, weight, mean, inv, dx, true);
    same_row(simd->name, "added gradient", n, dx, terms);
    math->normalize_gradient(n, x, dy, weight, mean, inv, dy, false); /* in place */
    same_row(simd->name, "gradient", n, dy, expected);
}

static void normalization_of_rows_of_every_length(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    float x[MAX_ROW], weight[MAX_ROW], bias[MAX_ROW];
    fill_floats(weight, MAX_ROW, 1);
    fill_floats(bias, MAX_ROW, 2);
    for (int64_t n = 1; n <= MAX_ROW; n++) {
        fill_floats(x, MAX_ROW, (uint64_t)n + 100);
        for (uint32_t v = 0; v < n_variants; v++) {
            check_normalize(simd[v], n, x, weight, bias);
            check_normalize(simd[v], n, x, NULL, NULL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_have_the_bits_of_single_calls),
        cmocka_unit_test(blocks_of_every_length_end_where_they_end),
        cmocka_unit_test(softmax_of_rows_of_every_length),
        cmocka_unit_test(softmax_of_extremes),
        cmocka_unit_test(normalization_of_rows_of_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
