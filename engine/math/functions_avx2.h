/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp and gelu of arrays for AVX2 with FMA, sixteen numbers at a time. The operations and their order are those of
 * base/fmath_inline.h and base/fmath_activation.h, which have the constants' errors; tests/engine/test_math.c compares
 * the bits.
 *
 * These functions are chains of some thirty operations that wait for each other. Compilers vectorise a loop over
 * the scalar functions four or eight numbers wide, and the processor then mostly waits; here four vectors go through every
 * operation side by side. y may be x.
 */
#ifndef TCTL_ENGINE_FUNCTIONS_AVX2_H
#define TCTL_ENGINE_FUNCTIONS_AVX2_H

#include <immintrin.h>

#include "base/fmath_activation.h"

enum { VECTORS = 4, GROUP = 4 * VECTORS };

/* Sixteen doubles. */
typedef struct group {
    __m256d v[VECTORS];
} group;

#if defined(__clang__)
#define EACH_VECTOR _Pragma("clang loop unroll(full)") for (int i = 0; i < VECTORS; i++)
#else
#define EACH_VECTOR _Pragma("GCC unroll 4") for (int i = 0; i < VECTORS; i++)
#endif
#define OPERATION(declaration, value)                                                                        \
    static inline __attribute__((always_inline)) group declaration                                           \
    {                                                                                                        \
        group y = {{{0}}};                                                                                   \
        EACH_VECTOR y.v[i] = (value);                                                                        \
        return y;                                                                                            \
    }

OPERATION(all(double c), _mm256_set1_pd(c))
OPERATION(load_floats(const float *x), _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * i)))
OPERATION(add(group a, group b), _mm256_add_pd(a.v[i], b.v[i]))
OPERATION(subtract(group a, group b), _mm256_sub_pd(a.v[i], b.v[i]))
OPERATION(multiply(group a, group b), _mm256_mul_pd(a.v[i], b.v[i]))
OPERATION(divide(group a, group b), _mm256_div_pd(a.v[i], b.v[i]))
OPERATION(fused(group a, group b, group c), _mm256_fmadd_pd(a.v[i], b.v[i], c.v[i]))
/* x, or the bound beyond it; not-a-number stays. */
OPERATION(at_least(group x, double low), _mm256_max_pd(_mm256_set1_pd(low), x.v[i]))
OPERATION(at_most(group x, double high), _mm256_min_pd(_mm256_set1_pd(high), x.v[i]))
OPERATION(magnitude(group x), _mm256_andnot_pd(_mm256_set1_pd(-0.0), x.v[i]))
OPERATION(if_negative(group x, group then, group otherwise),
          _mm256_blendv_pd(otherwise.v[i], then.v[i], _mm256_cmp_pd(x.v[i], _mm256_setzero_pd(), _CMP_LT_OQ)))
/* 2^n, n the low bits of TCTL_ROUNDER + n */
OPERATION(power_of_two(group shifted),
          _mm256_castsi256_pd(_mm256_add_epi64(_mm256_slli_epi64(_mm256_castpd_si256(shifted.v[i]), 52),
                                               _mm256_set1_epi64x(0x3ff0000000000000))))

#undef OPERATION

/* Rounded to float; the canonical not-a-number where x is one. */
static inline __attribute__((always_inline)) void store_floats(group a, const float *x, float *y)
{
    const __m128 not_a_number = _mm_castsi128_ps(_mm_set1_epi32(0x7fc00000));
    EACH_VECTOR
    {
        const __m128 from = _mm_loadu_ps(x + 4 * i);
        _mm_storeu_ps(y + 4 * i,
                      _mm_blendv_ps(_mm256_cvtpd_ps(a.v[i]), not_a_number, _mm_cmpunord_ps(from, from)));
    }
}

/* p x + c, rounded twice; and once */
#define STEP(p, x, c)       add(multiply(p, x), all(c))
#define FUSED_STEP(p, x, c) fused(p, x, all(c))

/* tctl_exp_core */
static inline __attribute__((always_inline)) group exp_core(group x)
{
    const group shifted = STEP(x, all(0x1.71547652b82fep+0), TCTL_ROUNDER);
    const group n = subtract(shifted, all(TCTL_ROUNDER)), r = subtract(x, multiply(n, all(TCTL_LN2)));
    group p = all(0x1.72ad458027fbcp-19);
    p = STEP(p, r, 0x1.a136bf03ec612p-16);
    p = STEP(p, r, 0x1.a019c36bc053cp-13);
    p = STEP(p, r, 0x1.6c166bde96885p-10);
    p = STEP(p, r, 0x1.111111170bc08p-7);
    p = STEP(p, r, 0x1.55555565c7e0ep-5);
    p = STEP(p, r, 0x1.5555555554f96p-3);
    p = STEP(p, r, 0x1.fffffffffe062p-2);
    const group q = add(r, multiply(multiply(r, r), p));
    return multiply(add(all(1.0), q), power_of_two(shifted));
}

/* tctl_exp_fused */
static inline __attribute__((always_inline)) group exp_fused(group x)
{
    const group shifted = FUSED_STEP(x, all(0x1.71547652b82fep+0), TCTL_ROUNDER);
    const group r = fused(subtract(shifted, all(TCTL_ROUNDER)), all(-TCTL_LN2), x);
    group p = FUSED_STEP(all(0x1.a124e3f154d32p-13), r, 0x1.6d431504c53d3p-10);
    p = FUSED_STEP(p, r, 0x1.1110e0f726534p-7);
    p = FUSED_STEP(p, r, 0x1.5554e9114ecf9p-5);
    p = FUSED_STEP(p, r, 0x1.5555555a78232p-3);
    p = FUSED_STEP(p, r, 0x1.0000000b8f62bp-1);
    return multiply(FUSED_STEP(FUSED_STEP(r, p, 1.0), r, 1.0), power_of_two(shifted));
}

/* tctl_erfcx_core */
static inline __attribute__((always_inline)) group erfcx_core(group a)
{
    const group below = FUSED_STEP(all(2.0), a, 1.0), more = add(a, all(3.0));
    const group over = divide(all(1.0), multiply(more, below));
    const group t = multiply(multiply(subtract(a, all(3.0)), below), over);
    group p = FUSED_STEP(all(0x1.20507ef10d53ap-15), t, 0x1.10c70e9387f19p-13);
    p = FUSED_STEP(p, t, -0x1.0601f87916267p-13);
    p = FUSED_STEP(p, t, -0x1.9f42b41a6f6c3p-11);
    p = FUSED_STEP(p, t, 0x1.f00f13f25c93ap-10);
    p = FUSED_STEP(p, t, 0x1.4c1e1c7a71975p-9);
    p = FUSED_STEP(p, t, -0x1.85746f6468adfp-6);
    p = FUSED_STEP(p, t, 0x1.17c97a7041548p-4);
    p = FUSED_STEP(p, t, -0x1.e88b929c512d4p-4);
    p = FUSED_STEP(p, t, 0x1.09836bc36d80cp-3);
    p = FUSED_STEP(p, t, -0x1.85a15a2887b0cp-5);
    p = FUSED_STEP(p, t, -0x1.15c084d1ef6a4p-3);
    p = FUSED_STEP(p, t, 0x1.40c522d7c28f4p+0);
    return multiply(p, multiply(more, over));
}

static void map_exp(int64_t n, const float *x, float *y)
{
    int64_t at = 0;
    for (; at + GROUP <= n; at += GROUP)
        store_floats(exp_core(at_most(at_least(load_floats(x + at), -200.0), 200.0)), x + at, y + at);
    for (; at < n; at++)
        y[at] = tctl_expf_inline(x[at]);
}

/* tctl_geluf and tctl_gelu_slopef of sixteen numbers. */
static inline __attribute__((always_inline)) void gelu_group(const float *x, float *y, float *slope)
{
    const group low = at_least(load_floats(x), -14.75), d = at_most(low, 14.75);
    const group e = exp_fused(multiply(all(-0.5), multiply(d, d)));
    const group tail = erfcx_core(multiply(magnitude(d), all(0x1.6a09e667f3bcdp-1)));
    const group half = multiply(all(0.5), multiply(e, tail));
    const group phi = if_negative(d, half, subtract(all(1.0), half));
    if (slope)
        store_floats(fused(multiply(d, all(0x1.9884533d43651p-2)), e, phi), x, slope);
    store_floats(multiply(low, phi), x, y);
}

static void map_gelu(int64_t n, const float *x, float *y)
{
    int64_t at = 0;
    for (; at + GROUP <= n; at += GROUP)
        gelu_group(x + at, y + at, NULL);
    for (; at < n; at++)
        y[at] = tctl_geluf_inline(x[at]);
}

static void both_gelu(int64_t n, const float *x, float *y, float *slope)
{
    int64_t at = 0;
    for (; at + GROUP <= n; at += GROUP)
        gelu_group(x + at, y + at, slope + at);
    for (; at < n; at++) {
        const float v = x[at];
        y[at] = tctl_geluf_inline(v);
        slope[at] = tctl_gelu_slopef_inline(v);
    }
}

#endif
