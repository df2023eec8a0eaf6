/* SPDX-License-Identifier: Apache-2.0 */
/* Draws at addresses: their definition, their distribution, and that arrays equal single draws. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "seed/philox.h"
#include "seed/stream.h"

static const tctl_random_address AT = {.key = {0x243f6a88, 0x85a308d3}, .when = 3, .index = 0x500000007u};

static void a_draw_is_the_documented_word_of_philox(void **state)
{
    (void)state;
    for (uint32_t d = 0; d < 64; d++) {
        uint32_t counter[4] = {d / 4, 3, 7, 5}, words[4];
        tctl_philox(counter, AT.key, words);
        assert_int_equal(tctl_draw_bits(&AT, d), words[d % 4]);
        assert_true(tctl_draw_uniform(&AT, d) == (float)(words[d % 4] >> 8) / 16777216.0f);
    }
}

static void every_part_of_the_address_matters(void **state)
{
    (void)state;
    uint32_t here = tctl_draw_bits(&AT, 0);
    tctl_random_address other = AT;
    other.index++;
    assert_int_not_equal(tctl_draw_bits(&other, 0), here);
    other = AT;
    other.index += (uint64_t)1 << 32;
    assert_int_not_equal(tctl_draw_bits(&other, 0), here);
    other = AT;
    other.when++;
    assert_int_not_equal(tctl_draw_bits(&other, 0), here);
    other = AT;
    other.key[1] ^= 1;
    assert_int_not_equal(tctl_draw_bits(&other, 0), here);
}

static void bounded_draws_are_the_high_part_of_the_product(void **state)
{
    (void)state;
    static const uint32_t bounds[] = {1, 2, 3, 10, 60000, 0x80000001u, UINT32_MAX};
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        for (uint64_t d = 0; d < 1000; d++) {
            uint32_t n = bounds[k], got = tctl_draw_bounded(&AT, d, n);
            long double x = (long double)tctl_draw_bits(&AT, d + 1) * 0x1p-32L;
            x += (long double)tctl_draw_bits(&AT, d) * 0x1p-64L;
            assert_true(got < n);
            assert_true(got == (uint32_t)floorl(x * (long double)n)); /* 64-bit significand: may not round */
        }
    }
}

static void bounded_draws_are_uniform(void **state)
{
    (void)state;
    enum { N = 10, DRAWS = 100000 };
    uint32_t count[N] = {0};
    for (uint64_t d = 0; d < DRAWS; d++)
        count[tctl_draw_bounded(&AT, 2 * d, N)]++;
    double chi2 = 0;
    for (int i = 0; i < N; i++)
        chi2 += pow(count[i] - (double)DRAWS / N, 2) / ((double)DRAWS / N);
    assert_true(chi2 < 27.9); /* 9 degrees of freedom: exceeded with probability 0.001 */
    assert_true(chi2 > 0.7);
}

static void normals_have_the_moments_and_tails_of_a_normal(void **state)
{
    (void)state;
    enum { N = 200000 };
    double sum = 0, squares = 0, fourth = 0, neighbours = 0, before = 0;
    uint32_t beyond_two = 0, beyond_four = 0;
    for (uint64_t d = 0; d < N; d++) {
        double x = (double)tctl_draw_normal(&AT, d);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
        neighbours += x * before;
        before = x;
        beyond_two += fabs(x) > 2;
        beyond_four += fabs(x) > 4;
    }
    /* four standard errors each */
    assert_true(fabs(sum / N) < 4 / sqrt(N));
    assert_true(fabs(squares / N - 1) < 4 * sqrt(2.0 / N));
    assert_true(fabs(fourth / N - 3) < 4 * sqrt(96.0 / N));
    assert_true(fabs(neighbours / N) < 4 / sqrt(N));
    assert_true(fabs(beyond_two / (double)N - 0.0455003) < 4 * sqrt(0.0455 / N));
    assert_in_range(beyond_four, 1, 40); /* 12.7 expected */
}

static void a_normal_is_box_muller_of_its_two_words(void **state)
{
    (void)state;
    for (uint64_t d = 0; d < 1000; d++) {
        double u = (tctl_draw_bits(&AT, 2 * d) + 1.0) * 0x1p-32, v = tctl_draw_bits(&AT, 2 * d + 1) * 0x1p-32;
        double want = sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
        assert_true(fabs((double)tctl_draw_normal(&AT, d) - want) <= fabs(want) * 0x1p-23 + 1e-12);
    }
}

static void arrays_equal_single_draws_wherever_they_begin(void **state)
{
    (void)state;
    enum { ROOM = 150 };
    uint32_t bits[ROOM];
    float uniforms[ROOM], normals[ROOM];
    for (uint64_t first = 0; first < 9; first++) {
        for (size_t n = 0; n < ROOM; n += 7) {
            tctl_fill_bits(&AT, first, n, bits);
            tctl_fill_uniform(&AT, first, n, uniforms);
            tctl_fill_normal(&AT, first, n, normals);
            for (size_t i = 0; i < n; i++) {
                float u = tctl_draw_uniform(&AT, first + i), z = tctl_draw_normal(&AT, first + i);
                assert_int_equal(bits[i], tctl_draw_bits(&AT, first + i));
                assert_memory_equal(&uniforms[i], &u, sizeof u);
                assert_memory_equal(&normals[i], &z, sizeof z);
            }
        }
    }
}

/* What every compiler, optimisation level and machine must give. */
static void normals_have_golden_bits(void **state)
{
    (void)state;
    uint64_t digest = 0xcbf29ce484222325u; /* FNV-1a over words */
    for (uint64_t d = 0; d < 100000; d++) {
        float z = tctl_draw_normal(&AT, d);
        uint32_t word;
        memcpy(&word, &z, sizeof word);
        digest = (digest ^ word) * 0x100000001b3u;
    }
    print_message("digest of normals 0x%016llx\n", (unsigned long long)digest);
    assert_true(digest == 0x4d5da6e6393a978eu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_draw_is_the_documented_word_of_philox),
        cmocka_unit_test(every_part_of_the_address_matters),
        cmocka_unit_test(bounded_draws_are_the_high_part_of_the_product),
        cmocka_unit_test(bounded_draws_are_uniform),
        cmocka_unit_test(normals_have_the_moments_and_tails_of_a_normal),
        cmocka_unit_test(a_normal_is_box_muller_of_its_two_words),
        cmocka_unit_test(arrays_equal_single_draws_wherever_they_begin),
        cmocka_unit_test(normals_have_golden_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
