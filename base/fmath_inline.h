/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of fmath.h, for kernels that want them inlined and vectorised.
 *
 * Everything is computed in double with +, -, *, / and integer operations on the bits, and rounded to float once.
 * No fused multiply-add, no libm, no table, no branch that depends on the data: the same bits from every compiler
 * that keeps IEEE 754 (round to nearest even, no contraction, no flush to zero), vectorised or not.
 *
 * The polynomials interpolate the function at Chebyshev nodes of the reduced interval (computed with 60 decimal
 * digits, then rounded to double), which is within a small factor of minimax; beside each stands the largest error
 * of the rounded coefficients over the interval. All are far below the 2^-25 that a float can see: no result is farther
 * from the true value than 0.500004 ULP (of all floats; fmath.h), so nearly all are the float nearest to it.
 *
 * NaNs that come out are the canonical 0x7fc00000, whatever came in.
 */
#ifndef TCTL_BASE_FMATH_INLINE_H
#define TCTL_BASE_FMATH_INLINE_H

#include <stdint.h>
#include <string.h>

/* Adding it rounds |x| < 2^51 to an integer, which is then in the low bits. */
#define TCTL_ROUNDER 0x1.8p52
#define TCTL_LN2     0x1.62e42fefa39efp-1

static inline uint64_t tctl_bits_of_double(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double tctl_double_of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline float tctl_float_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint32_t tctl_bits_of_float(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float tctl_canonical_nan(float result, int is_nan)
{
    return is_nan ? tctl_float_of_bits(0x7fc00000u) : result;
}

/* e^x - 1 = 2^n (1 + q) - 1 for |x| <= 1000: returns q with relative error < 1e-12, and 2^n. */
static inline double tctl_expm1_reduced(double x, double *ret_scale)
{
    double shifted = x * 0x1.71547652b82fep+0 + TCTL_ROUNDER;
    double n = shifted - TCTL_ROUNDER, r = x - n * TCTL_LN2; /* |r| <= ln2/2 */
    /* (e^r - 1 - r) / r^2, |error| <= 4.7e-13 */
    double p = 0x1.72ad458027fbcp-19;
    p = p * r + 0x1.a136bf03ec612p-16;
    p = p * r + 0x1.a019c36bc053cp-13;
    p = p * r + 0x1.6c166bde96885p-10;
    p = p * r + 0x1.111111170bc08p-7;
    p = p * r + 0x1.55555565c7e0ep-5;
    p = p * r + 0x1.5555555554f96p-3;
    p = p * r + 0x1.fffffffffe062p-2;
    *ret_scale = tctl_double_of_bits((tctl_bits_of_double(shifted) << 52) + 0x3ff0000000000000u);
    return r + r * r * p;
}

/* e^x for -700 <= x <= 700, relative error < 1e-12. */
static inline double tctl_exp_core(double x)
{
    double scale, q = tctl_expm1_reduced(x, &scale);
    return (1.0 + q) * scale;
}

/* log(x) for positive normal x, relative error < 1e-13 (absolute near 1: the argument is exact). */
static inline double tctl_log_core(double x)
{
    /* x = 2^e m with m in [sqrt(1/2), sqrt(2)) */
    uint64_t u = tctl_bits_of_double(x), shifted = u - 0x3fe6a09e667f3bcdu + 0x3ff0000000000000u;
    uint64_t exponent = shifted >> 52; /* e + 1023 */
    double e = tctl_double_of_bits(0x4330000000000000u | exponent) - (0x1p52 + 1023.0);
    double f = tctl_double_of_bits(u - ((exponent << 52) - 0x3ff0000000000000u)) - 1.0;
    double s = f / (2.0 + f), z = s * s; /* log(m) = 2 atanh(s), |s| < 0.1716 */
    /* 2 (atanh(s)/s - 1) / z, |error| <= 4.8e-14 */
    double p = 0x1.546adfbbda333p-3;
    p = p * z + 0x1.7382d06f0c1dep-3;
    p = p * z + 0x1.c71fcd1ced0aep-3;
    p = p * z + 0x1.2492462aa8c89p-2;
    p = p * z + 0x1.9999999b86b7cp-2;
    p = p * z + 0x1.55555555553b8p-1;
    return e * TCTL_LN2 + (2.0 * s + s * z * p);
}

/* sin and cos of 2 pi x for 0 <= x <= 1, absolute error < 1e-14. Never -0. */
static inline void tctl_sincos_turns_core(double x, double *ret_sin, double *ret_cos)
{
    double shifted = 4.0 * x + TCTL_ROUNDER;
    uint64_t quadrant = tctl_bits_of_double(shifted);
    double r = x - 0.25 * (shifted - TCTL_ROUNDER), z = r * r; /* exact; |r| <= 1/8 */
    /* sin(2 pi r)/r, |error| <= 2.7e-14, and cos(2 pi r), |error| <= 1.1e-16 */
    double s = -0x1.dd54805f3f706p+3;
    s = s * z + 0x1.5071ce4b47930p+5;
    s = s * z - 0x1.32d2c644adc0bp+6;
    s = s * z + 0x1.466bc67123fa1p+6;
    s = s * z - 0x1.4abbce6257a2ap+5;
    s = s * z + 0x1.921fb54442cfap+2;
    s = s * r;
    double c = 0x1.f3dbcea61b1a4p+2;
    c = c * z - 0x1.a6c9c1be9eb49p+4;
    c = c * z + 0x1.e1f4fb60281f6p+5;
    c = c * z - 0x1.55d3c7dbfd139p+6;
    c = c * z + 0x1.03c1f081b0780p+6;
    c = c * z - 0x1.3bd3cc9be458bp+4;
    c = c * z + 1.0;
    double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *ret_sin = quadrant & 2 ? 0.0 - a : 0.0 + a;
    *ret_cos = (quadrant + 1) & 2 ? 0.0 - b : 0.0 + b;
}

static inline float tctl_expf_inline(float x)
{
    double d = (double)x;
    d = d < -200.0 ? -200.0 : d; /* beyond these the float is 0 or inf anyway */
    d = d > 200.0 ? 200.0 : d;
    return tctl_canonical_nan((float)tctl_exp_core(d), x != x);
}

static inline float tctl_logf_inline(float x)
{
    const float infinity = tctl_float_of_bits(0x7f800000u);
    float y = (float)tctl_log_core((double)x);
    y = x == infinity ? infinity : y;
    y = x == 0.0f ? -infinity : y;
    return tctl_canonical_nan(y, !(x >= 0.0f));
}

static inline float tctl_log1pf_inline(float x)
{
    const float infinity = tctl_float_of_bits(0x7f800000u);
    double d = (double)x, t = 1.0 + d;
    /* t is rounded; what was lost is d - (t - 1), and log(t + lost) = log(t) + lost/t to second order. */
    float y = (float)(tctl_log_core(t) + (d - (t - 1.0)) / t);
    y = x == infinity ? infinity : y;
    y = x == -1.0f ? -infinity : y;
    y = x == 0.0f ? x : y; /* keeps -0 */
    return tctl_canonical_nan(y, !(x >= -1.0f));
}

static inline float tctl_tanhf_inline(float x)
{
    uint32_t bits = tctl_bits_of_float(x);
    double a = (double)tctl_float_of_bits(bits & 0x7fffffffu);
    a = a > 10.0 ? 10.0 : a; /* tanh(10) rounds to 1 */
    double scale, q = tctl_expm1_reduced(2.0 * a, &scale);
    double m = (scale - 1.0) + scale * q; /* e^2a - 1 without cancellation: scale is 1 or at least 2 */
    uint32_t magnitude = tctl_bits_of_float((float)(m / (m + 2.0)));
    return tctl_canonical_nan(tctl_float_of_bits(magnitude | (bits & 0x80000000u)), x != x);
}

#endif
