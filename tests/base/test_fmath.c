/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementary functions: error against libm in double (long double for cospi), special values, and the bits.
 *
 * The golden digests are what every compiler, optimisation level and machine must give; they may only change together
 * with fmath_inline.h. TRAINCTL_EXHAUSTIVE=1 looks at every float instead of every 397th.
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

/* FNV-1a over the 32 bits of each result. */
static uint64_t mix(uint64_t digest, uint32_t word)
{
    return (digest ^ word) * 0x100000001b3u;
}

/* |got - want| in units of the last place of `want` as a float. */
static double ulps(float got, double want)
{
    if (isinf(got) || fabs(want) > 0x1.fffffep127)
        return (double)got == (double)(float)want ? 0.0 : 1e9;
    int exponent = 0;
    frexp(want, &exponent);
    exponent = exponent < -125 ? -125 : exponent; /* subnormal floats have a fixed spacing */
    return fabs((double)got - want) / ldexp(1.0, exponent - 24);
}

typedef struct function {
    const char *name;
    float (*ours)(float);
    double (*reference)(double);
    uint64_t golden;
    double bound, absolute; /* one of the two is kept */
} function;

static void check_all_floats(const function *f)
{
    uint32_t stride = getenv("TRAINCTL_EXHAUSTIVE") ? 1 : 397;
    uint64_t digest = 0xcbf29ce484222325u;
    double worst = 0.0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) {
        float x = tctl_float_of_bits((uint32_t)bits), y = f->ours(x);
        if (bits % 397 == 0)
            digest = mix(digest, tctl_bits_of_float(y));
        double want = f->reference((double)x);
        if (isnan(want)) {
            assert_int_equal(tctl_bits_of_float(y), 0x7fc00000);
            continue;
        }
        double error = fabs((double)y - want) <= f->absolute ? 0 : ulps(y, want);
        if (error > worst)
            worst = error;
    }
    print_message("%-6s largest error %.6f ULP, digest 0x%016llx\n", f->name, worst,
                  (unsigned long long)digest);
    if (worst > f->bound || digest != f->golden)
        fail_msg("%s: error %.6f, allowed %.6f; digest 0x%016llx, kept 0x%016llx", f->name, worst, f->bound,
                 (unsigned long long)digest, (unsigned long long)f->golden);
}

static void exp_log_log1p_tanh_are_within_their_bounds_and_have_golden_bits(void **state)
{
    (void)state;
    static const function functions[] = {
        {"exp", tctl_expf, exp, 0xd4a8834fd1a0a9eeu, 0.500004, 0},
        {"log", tctl_logf, log, 0x49403e0efb27de80u, 0.500004, 0},
        {"log1p", tctl_log1pf, log1p, 0xbe84cf3107e47eafu, 0.500004, 0},
        {"tanh", tctl_tanhf, tanh, 0x5a18823496f17464u, 0.500004, 0},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        check_all_floats(&functions[i]);
}

/* ---- what networks need besides, against formulas in double with libm's functions ------------------------- */

static double sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x < -800 ? -0.0 : x * sigmoid(x);
}

static double silu_slope(double x)
{
    return fabs(x) > 800 ? x > 0 : sigmoid(x) * (1 + x * sigmoid(-x));
}

static double gelu(double x)
{
    return x < -40 ? -0.0 : x * 0.5 * erfc(-x / sqrt(2));
}

static double gelu_slope(double x)
{
    return fabs(x) > 40 ? x > 0 : 0.5 * erfc(-x / sqrt(2)) + x * exp(-x * x / 2) / sqrt(2 * acos(-1));
}

static double gelu_tanh(double x)
{
    return x < -30 ? -0.0 : x > 1e6 ? x : x * sigmoid(2 * sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x));
}

static double gelu_tanh_slope(double x)
{
    if (fabs(x) > 30)
        return x > 0;
    const double k = 2 * sqrt(2 / acos(-1)), u = k * (x + 0.044715 * x * x * x);
    return sigmoid(u) + x * sigmoid(u) * sigmoid(-u) * k * (1 + 3 * 0.044715 * x * x);
}

static void sin_cos_erf_and_activations_are_within_their_bounds_and_have_golden_bits(void **state)
{
    (void)state;
    static const function functions[] = {
        {"sin", tctl_sinf, sin, 0x34b442cc450a179cu, 0.500004, 0},
        {"cos", tctl_cosf, cos, 0xc01ed9453557fb56u, 0.500004, 0},
        {"erf", tctl_erff, erf, 0x49843e9409521f24u, 0.5006, 0},
        {"sigmoid", tctl_sigmoidf, sigmoid, 0x6c6cf4bcb045749du, 0.5027, 0},
        {"silu", tctl_siluf, silu, 0xc57b254583e01997u, 0.5034, 0},
        {"silu'", tctl_silu_slopef, silu_slope, 0x5c5932b1b1df6b6au, 0.51, 1e-9},
        {"gelu", tctl_geluf, gelu, 0xc5eceef1ac4d5eb5u, 0.5026, 0},
        {"gelu'", tctl_gelu_slopef, gelu_slope, 0x1070a6f66606f697u, 0.51, 1e-9},
        {"gelu tanh", tctl_gelu_tanhf, gelu_tanh, 0xe557a1860b2898b6u, 0.5020, 0},
        {"gelu tanh'", tctl_gelu_tanh_slopef, gelu_tanh_slope, 0x92fd4e35fff3cc4fu, 0.51, 1e-9},
    };
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        check_all_floats(&functions[i]);
}

static void special_values_are_exact(void **state)
{
    (void)state;
    static const struct {
        float (*f)(float);
        uint32_t x, y;
    } cases[] = {
        {tctl_expf, 0x00000000, 0x3f800000},        {tctl_expf, 0x80000000, 0x3f800000},
        {tctl_expf, 0x7f800000, 0x7f800000},        {tctl_expf, 0xff800000, 0x00000000},
        {tctl_expf, 0x42b17217, 0x7f7fff84},        {tctl_expf, 0x42b17218, 0x7f800000},
        {tctl_expf, 0xff812345, 0x7fc00000},        {tctl_expf, 0x3f800000, 0x402df854},
        {tctl_logf, 0x00000000, 0xff800000},        {tctl_logf, 0x80000000, 0xff800000},
        {tctl_logf, 0x3f800000, 0x00000000},        {tctl_logf, 0x7f800000, 0x7f800000},
        {tctl_logf, 0xbf800000, 0x7fc00000},        {tctl_logf, 0x41200000, 0x40135d8e},
        {tctl_log1pf, 0x00000000, 0x00000000},      {tctl_log1pf, 0x80000000, 0x80000000},
        {tctl_log1pf, 0xbf800000, 0xff800000},      {tctl_log1pf, 0x80000001, 0x80000001},
        {tctl_tanhf, 0x80000000, 0x80000000},       {tctl_tanhf, 0x00000001, 0x00000001},
        {tctl_tanhf, 0x7f800000, 0x3f800000},       {tctl_tanhf, 0xff800000, 0xbf800000},
        {tctl_tanhf, 0x3f000000, 0x3eec9a9f},       {tctl_tanhf, 0x7fc00001, 0x7fc00000},
        {tctl_sinf, 0x80000000, 0x80000000},        {tctl_sinf, 0x7f800000, 0x7fc00000},
        {tctl_cosf, 0x80000000, 0x3f800000},        {tctl_cosf, 0xffc12345, 0x7fc00000},
        {tctl_erff, 0x80000000, 0x80000000},        {tctl_erff, 0xff800000, 0xbf800000},
        {tctl_erff, 0x00000001, 0x00000001},        {tctl_erff, 0x7f812345, 0x7fc00000},
        {tctl_sigmoidf, 0x80000000, 0x3f000000},    {tctl_sigmoidf, 0xff800000, 0x00000000},
        {tctl_sigmoidf, 0x7f800000, 0x3f800000},    {tctl_sigmoidf, 0xffc00000, 0x7fc00000},
        {tctl_siluf, 0xff800000, 0x80000000},       {tctl_siluf, 0x7f800000, 0x7f800000},
        {tctl_geluf, 0xff800000, 0x80000000},       {tctl_geluf, 0x7f800000, 0x7f800000},
        {tctl_geluf, 0x80000000, 0x80000000},       {tctl_geluf, 0x7fc00001, 0x7fc00000},
        {tctl_gelu_slopef, 0x7f800000, 0x3f800000}, {tctl_gelu_slopef, 0xff800000, 0x80000000},
        {tctl_gelu_tanhf, 0xff800000, 0x80000000},  {tctl_gelu_tanhf, 0x7f800000, 0x7f800000},
        {tctl_gelu_tanhf, 0x7fc00001, 0x7fc00000},  {tctl_silu_slopef, 0x7f800000, 0x3f800000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tctl_bits_of_float(cases[i].f(tctl_float_of_bits(cases[i].x))), cases[i].y);
}

static void sincos_of_turns(void **state)
{
    (void)state;
    static const double two_pi = 6.28318530717958647692;
    uint64_t digest = 0xcbf29ce484222325u;
    for (uint32_t bits = 0; bits <= 0x3f800000u; bits += 1021) {
        float x = tctl_float_of_bits(bits), s = 0, c = 0;
        tctl_sincos_turns(x, &s, &c);
        assert_true(fabs((double)s - sin(two_pi * (double)x)) <= 0x1p-24);
        assert_true(fabs((double)c - cos(two_pi * (double)x)) <= 0x1p-24);
        digest = mix(mix(digest, tctl_bits_of_float(s)), tctl_bits_of_float(c));
    }
    print_message("sincos digest 0x%016llx\n", (unsigned long long)digest);
    assert_true(digest == 0x5f87f3f034395844u);
    static const float exact[][3] = {{0, 0, 1}, {.25f, 1, 0}, {.5f, 0, -1}, {.75f, -1, 0}, {1, 0, 1}};
    for (size_t i = 0; i < 5; i++) {
        float s = 0, c = 0;
        tctl_sincos_turns(exact[i][0], &s, &c);
        assert_true(tctl_bits_of_float(s) == tctl_bits_of_float(exact[i][1]));
        assert_true(tctl_bits_of_float(c) == tctl_bits_of_float(exact[i][2]));
    }
}

static void cospi_in_double(void **state)
{
    (void)state;
    uint64_t digest = 0xcbf29ce484222325u;
    for (uint32_t i = 0; i <= 100003; i++) {
        double x = (double)i / 100003.0, y = tctl_cospi(x);
        /* The argument in two parts: pi in long double times an exact x. */
        long double want = cosl(3.14159265358979323846264338327950288L * (long double)x);
        assert_true(fabsl((long double)y - want) <= 1e-15L);
        uint64_t bits = tctl_bits_of_double(y);
        digest = mix(mix(digest, (uint32_t)bits), (uint32_t)(bits >> 32));
    }
    print_message("cospi digest 0x%016llx\n", (unsigned long long)digest);
    assert_true(digest == 0xf21eed540225d281u);
    assert_true(tctl_cospi(0) == 1 && tctl_cospi(0.5) == 0 && tctl_cospi(1) == -1);
    assert_false(signbit(tctl_cospi(0.5)));
}

static void arrays_have_the_bits_of_single_calls(void **state)
{
    (void)state;
    enum { N = 1003 };
    float x[N], y[N], z[N];
    for (uint32_t i = 0; i < N; i++)
        x[i] = tctl_float_of_bits(i * 4280000u);
    tctl_expf_array(N, x, y);
    memcpy(z, x, sizeof z);
    tctl_tanhf_array(N, z, z);
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(tctl_bits_of_float(y[i]), tctl_bits_of_float(tctl_expf(x[i])));
        assert_int_equal(tctl_bits_of_float(z[i]), tctl_bits_of_float(tctl_tanhf(x[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_log_log1p_tanh_are_within_their_bounds_and_have_golden_bits),
        cmocka_unit_test(sin_cos_erf_and_activations_are_within_their_bounds_and_have_golden_bits),
        cmocka_unit_test(special_values_are_exact),
        cmocka_unit_test(sincos_of_turns),
        cmocka_unit_test(cospi_in_double),
        cmocka_unit_test(arrays_have_the_bits_of_single_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
