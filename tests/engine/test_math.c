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

enum { BLOCK = 4096, MAX_ROW = 70, MAX_ROWS = 5 };

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

/* One row of what the functions do with all. Writes p and g; returns max and inv. */
static void expected_row(const tctl_scores *c, int64_t live, const float *scores, const float *dp, float *p,
                         float *g, float saved[2])
{
    float terms[MAX_ROW], max = -INFINITY;
    for (int64_t j = 0; j < live; j++)
        max = scores[j] * c->scale > max ? scores[j] * c->scale : max;
    for (int64_t j = 0; j < c->columns; j++)
        p[j] = j < live ? tctl_expf(scores[j] * c->scale - max) : 0;
    const float inv = 1 / row_sum(live, p);
    for (int64_t j = 0; j < live; j++) {
        p[j] *= inv;
        terms[j] = p[j] * dp[j];
    }
    const float mean = row_sum(live, terms);
    for (int64_t j = 0; j < c->columns; j++)
        g[j] = j < live ? (p[j] * (dp[j] - mean)) * c->scale : 0;
    saved[0] = max;
    saved[1] = inv;
}

static void check_softmax(const tctl_simd *simd, const tctl_scores *c, const float *scores)
{
    const tctl_math *math = tctl_math_of(simd);
    float p[MAX_ROWS * MAX_ROW], again[MAX_ROWS * MAX_ROW], g[MAX_ROWS * MAX_ROW], saved[MAX_ROWS][2],
        expected_p[MAX_ROW], expected_g[MAX_ROW], dp[MAX_ROW], expected_saved[2];
    const size_t bytes = (size_t)(c->rows * c->columns) * sizeof *p;
    for (int64_t i = 0; i < c->rows * c->columns; i++)
        g[i] = (float)(i % c->columns % 5) - 1.7f;
    memcpy(dp, g, (size_t)c->columns * sizeof *dp);
    memcpy(p, scores, bytes);
    memcpy(again, scores, bytes);
    math->softmax(c, p, saved[0]);
    math->softmax_again(c, saved[0], again);
    math->softmax_gradient(c, p, g);
    for (int64_t r = 0; r < c->rows; r++) {
        const int64_t at = r * c->columns;
        expected_row(c, c->live + r * c->live_step, scores + at, dp, expected_p, expected_g, expected_saved);
        same_row(simd->name, "largest score and factor", 2, saved[r], expected_saved);
        same_row(simd->name, "softmax", c->columns, p + at, expected_p);
        same_row(simd->name, "softmax again", c->columns, again + at, expected_p);
        same_row(simd->name, "softmax gradient", c->columns, g + at, expected_g);
    }
}

static void softmax_of_rows_of_every_length(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    float scores[MAX_ROWS * MAX_ROW];
    for (int64_t n = 1; n <= MAX_ROW; n++) {
        const tctl_scores one = {1, n, n, 0, 0.37f}, all = {MAX_ROWS, n, n, 0, 0.37f},
                          some = {2, n, n / 2 + 1, 0, 1},
                          causal = {n < MAX_ROWS ? n : MAX_ROWS, n, n < MAX_ROWS ? 1 : n - MAX_ROWS + 1, 1,
                                    0.37f};
        fill_floats(scores, MAX_ROWS * MAX_ROW, (uint64_t)n);
        for (uint32_t v = 0; v < n_variants; v++) {
            check_softmax(simd[v], &one, scores);
            check_softmax(simd[v], &all, scores);
            check_softmax(simd[v], &some, scores);
            check_softmax(simd[v], &causal, scores);
        }
    }
}

/* What stands behind the live columns does not matter, and goes. */
static void softmax_ignores_what_is_not_live(void **state)
{
    (void)state;
    uint32_t n_variants;
    const tctl_simd *const *simd = tctl_simd_available(&n_variants);
    for (uint32_t v = 0; v < n_variants; v++) {
        const tctl_math *math = tctl_math_of(simd[v]);
        const tctl_scores c = {2, 3, 1, 1, 1};
        float s[6] = {5, NAN, INFINITY, 2, 2, NAN}, g[6] = {1, NAN, NAN, 3, 1, INFINITY}, saved[4];
        const float p[6] = {1, 0, 0, 0.5f, 0.5f, 0}, expected[6] = {0, 0, 0, 0.5f, -0.5f, 0};
        math->softmax(&c, s, saved);
        same_row(simd[v]->name, "softmax", 6, s, p);
        math->softmax_gradient(&c, s, g);
        same_row(simd[v]->name, "softmax gradient", 6, g, expected);
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
        const tctl_scores three = {1, 3, 3, 0, 1}, twenty = {1, 20, 20, 0, 1};
        float saved[2], large[3] = {1e30f, -1e30f, 1e30f}, missing[3] = {0, -INFINITY, 0}, bad[20] = {0};
        math->softmax(&three, large, saved);
        assert_true(large[0] == 0.5f && large[1] == 0 && large[2] == 0.5f);
        math->softmax(&three, missing, saved);
        assert_true(missing[0] == 0.5f && missing[1] == 0 && missing[2] == 0.5f);
        bad[17] = NAN;
        math->softmax(&twenty, bad, saved);
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
        cmocka_unit_test(softmax_ignores_what_is_not_live),
        cmocka_unit_test(softmax_of_extremes),
        cmocka_unit_test(normalization_of_rows_of_every_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
