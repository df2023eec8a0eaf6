/* SPDX-License-Identifier: Apache-2.0 */
/*
 * erf, sigmoid, and the activation functions of networks with their slopes: bodies for loops that are to be vectorised.
 * fmath.h has them as functions.
 *
 * Like fmath_inline.h: computed in double, rounded to float once, no table, no branch that depends on the data. Unlike
 * it, products and sums are fused where the text says fma: one rounding by IEEE 754, so the bits are the same with and
 * without such an instruction (without one it is a slow function of the C library).
 *
 * The polynomials interpolate at Chebyshev nodes (computed with 40 decimal digits, rounded to double). Their errors are
 * below 3e-10 relative, a hundredth of what a float can see.
 *
 * NaNs that come out are the canonical 0x7fc00000.
 */
#ifndef TCTL_BASE_FMATH_ACTIVATION_H
#define TCTL_BASE_FMATH_ACTIVATION_H

#include <math.h>

#include "base/fmath_inline.h"

static inline double tctl_clamp(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* e^x for -700 <= x <= 700, relative error < 2.3e-10. */
static inline double tctl_exp_fused(double x)
{
    double shifted = fma(x, 0x1.71547652b82fep+0, TCTL_ROUNDER);
    double r = fma(shifted - TCTL_ROUNDER, -TCTL_LN2, x); /* |r| <= ln2/2 */
    /* (e^r - 1 - r) / r^2 */
    double p = fma(0x1.a124e3f154d32p-13, r, 0x1.6d431504c53d3p-10);
    p = fma(p, r, 0x1.1110e0f726534p-7);
    p = fma(p, r, 0x1.5554e9114ecf9p-5);
    p = fma(p, r, 0x1.5555555a78232p-3);
    p = fma(p, r, 0x1.0000000b8f62bp-1);
    double scale = tctl_double_of_bits((tctl_bits_of_double(shifted) << 52) + 0x3ff0000000000000u);
    return fma(fma(r, p, 1.0), r, 1.0) * scale;
}

/* erfc(a) e^(a^2) for 0 <= a <= 10.43, relative error < 7e-11: (1 + 2a) erfcx(a) is a polynomial in (a - 3) / (a + 3)
 * (the substitution of Shepherd and Laframboise, Math. Comp. 36, 1981). */
static inline double tctl_erfcx_core(double a)
{
    double over = 1.0 / ((a + 3.0) * fma(2.0, a, 1.0));
    double t = (a - 3.0) * fma(2.0, a, 1.0) * over;
    double p = fma(0x1.20507ef10d53ap-15, t, 0x1.10c70e9387f19p-13);
    p = fma(p, t, -0x1.0601f87916267p-13);
    p = fma(p, t, -0x1.9f42b41a6f6c3p-11);
    p = fma(p, t, 0x1.f00f13f25c93ap-10);
    p = fma(p, t, 0x1.4c1e1c7a71975p-9);
    p = fma(p, t, -0x1.85746f6468adfp-6);
    p = fma(p, t, 0x1.17c97a7041548p-4);
    p = fma(p, t, -0x1.e88b929c512d4p-4);
    p = fma(p, t, 0x1.09836bc36d80cp-3);
    p = fma(p, t, -0x1.85a15a2887b0cp-5);
    p = fma(p, t, -0x1.15c084d1ef6a4p-3);
    p = fma(p, t, 0x1.40c522d7c28f4p+0);
    return p * ((a + 3.0) * over);
}

static inline float tctl_erff_inline(float x)
{
    uint32_t bits = tctl_bits_of_float(x);
    double a = (double)tctl_float_of_bits(bits & 0x7fffffffu);
    a = a > 6.0 ? 6.0 : a; /* erf(4) rounds to 1 */
    double z = a * a;
    double far = fma(-tctl_exp_fused(-z), tctl_erfcx_core(a), 1.0);
    /* erf(a) / a, relative error < 4e-11 up to 1 */
    double p = fma(-0x1.445f47d33d87bp-17, z, 0x1.d887505de3ba6p-14);
    p = fma(p, z, -0x1.bccf664d7f763p-11);
    p = fma(p, z, 0x1.562a60ddba6e6p-8);
    p = fma(p, z, -0x1.b829c897922e5p-6);
    p = fma(p, z, 0x1.ce2f08fec14fdp-4);
    p = fma(p, z, -0x1.81274665754c3p-2);
    p = fma(p, z, 0x1.20dd7504045d6p+0);
    uint32_t magnitude = tctl_bits_of_float((float)(a > 1.0 ? far : p * a));
    return tctl_canonical_nan(tctl_float_of_bits(magnitude | (bits & 0x80000000u)), x != x);
}

static inline double tctl_sigmoid_core(double x, double *ret_exp)
{
    *ret_exp = tctl_exp_fused(-x);
    return 1.0 / (1.0 + *ret_exp);
}

static inline float tctl_sigmoidf_inline(float x)
{
    double e, s = tctl_sigmoid_core(tctl_clamp((double)x, -200.0, 200.0), &e);
    return tctl_canonical_nan((float)s, x != x);
}

/* x sigmoid(x); below -200 it rounds to -0. */
static inline float tctl_siluf_inline(float x)
{
    double d = (double)x, e, s = tctl_sigmoid_core(tctl_clamp(d, -200.0, 200.0), &e);
    d = d < -200.0 ? -200.0 : d;
    return tctl_canonical_nan((float)(d * s), x != x);
}

/* s (1 + x (1 - s)), s = sigmoid(x) */
static inline float tctl_silu_slopef_inline(float x)
{
    double d = tctl_clamp((double)x, -200.0, 200.0), e, s = tctl_sigmoid_core(d, &e);
    return tctl_canonical_nan((float)(s * fma(d, e * s, 1.0)), x != x);
}

/* The normal distribution's function at x, |x| <= 14.75, and e^(-x^2/2). */
static inline double tctl_normal_core(double x, double *ret_exp)
{
    double a = x < 0.0 ? -x : x;
    *ret_exp = tctl_exp_fused(-0.5 * (x * x)); /* exact: x was a float, or is 14.75 */
    double half = 0.5 * (*ret_exp * tctl_erfcx_core(a * 0x1.6a09e667f3bcdp-1));
    return x < 0.0 ? half : 1.0 - half;
}

/* x Phi(x) (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016); below -14.75 it rounds to -0. */
static inline float tctl_geluf_inline(float x)
{
    double d = (double)x, e, phi = tctl_normal_core(tctl_clamp(d, -14.75, 14.75), &e);
    d = d < -14.75 ? -14.75 : d;
    return tctl_canonical_nan((float)(d * phi), x != x);
}

/* Phi(x) + x e^(-x^2/2) / sqrt(2 pi) */
static inline float tctl_gelu_slopef_inline(float x)
{
    double d = tctl_clamp((double)x, -14.75, 14.75), e, phi = tctl_normal_core(d, &e);
    return tctl_canonical_nan((float)fma(d * 0x1.9884533d43651p-2, e, phi), x != x);
}

/* 2u for u = sqrt(2/pi) (x + 0.044715 x^3), within 200 */
static inline double tctl_gelu_tanh_argument(double x)
{
    return tctl_clamp(0x1.9884533d43651p+0 * x * fma(0.044715, x * x, 1.0), -200.0, 200.0);
}

/* x (1 + tanh u) / 2 = x sigmoid(2u): the same paper's approximation */
static inline float tctl_gelu_tanhf_inline(float x)
{
    double d = (double)x, e;
    double s = tctl_sigmoid_core(tctl_gelu_tanh_argument(tctl_clamp(d, -20.0, 20.0)), &e);
    d = d < -20.0 ? -20.0 : d;
    return tctl_canonical_nan((float)(d * s), x != x);
}

/* s + x s (1 - s) 2u', s = sigmoid(2u) */
static inline float tctl_gelu_tanh_slopef_inline(float x)
{
    double d = tctl_clamp((double)x, -20.0, 20.0), e;
    double s = tctl_sigmoid_core(tctl_gelu_tanh_argument(d), &e);
    double slope = 0x1.9884533d43651p+0 * fma(0.134145, d * d, 1.0);
    return tctl_canonical_nan((float)(s * fma(d * slope, e * s, 1.0)), x != x);
}

#endif
