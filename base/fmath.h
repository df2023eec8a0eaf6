/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own elementary functions for float: fixed sequences of IEEE operations, so that the bits are the same on
 * every machine, compiler and optimisation level. libm's are not: they change with the CPU's features.
 *
 * All [any]; same bits for: run, threads, SIMD, compiler, CPU. The errors below are the largest that were measured, in
 * units of the last place of the result, over every float where nothing else is said; tests/base/test_fmath.c demands
 * them again of every 397th (of all floats with TRAINCTL_EXHAUSTIVE=1). A NaN that comes out is 0x7fc00000.
 * fmath_inline.h and fmath_activation.h have the bodies, for loops that are to be vectorised.
 *
 * Examples (bits): tctl_expf(1) = 402df854, tctl_logf(10) = 40135d8e, tctl_tanhf(0.5) = 3eec9a9f.
 */
#ifndef TCTL_BASE_FMATH_H
#define TCTL_BASE_FMATH_H

#include <stddef.h>

/* exp to cos: < 0.500004 ULP */
float tctl_expf(float x);   /* e^x; 0 and inf outside the range; NaN for NaN */
float tctl_logf(float x);   /* natural logarithm; -inf at 0, NaN below */
float tctl_log1pf(float x); /* log(1 + x); keeps -0; -inf at -1, NaN below */
float tctl_tanhf(float x);  /* odd, keeps -0 */
float tctl_sinf(float x);   /* of any finite x, however large; odd, keeps -0; NaN at infinity */
float tctl_cosf(float x);   /* of any finite x; NaN at infinity */
float tctl_erff(float x);   /* the error function, <= 0.5006 ULP; odd, keeps -0 */

/* Activation functions and their slopes (derivatives). gelu and all slopes were measured on every 397th float only; the
 * slopes of gelu and silu have a zero near -0.75 and -1.28, and are within 0.51 ULP or 1e-9, whichever is more. */
float tctl_sigmoidf(float x); /* 1 / (1 + e^-x), <= 0.5027 ULP */
float tctl_siluf(float x);    /* x sigmoid(x), <= 0.5034 ULP; -0 at -inf */
float tctl_silu_slopef(float x);
float tctl_geluf(float x); /* x Phi(x), Phi the normal distribution, <= 0.5026 ULP; -0 at -inf */
float tctl_gelu_slopef(float x);
float tctl_gelu_tanhf(float x); /* x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, <= 0.5020 ULP */
float tctl_gelu_tanh_slopef(float x);
/* sin and cos of 2 pi x for x in [0, 1]: what Box-Muller and cosine schedules need; absolute error <= 2^-24. */
void tctl_sincos_turns(float x, float *ret_sin, float *ret_cos);
/* cos(pi x) in double for x in [0, 1], absolute error <= 1e-15. */
double tctl_cospi(double x);

/* y[i] = f(x[i]), vectorised; the same bits as one by one. y may be x. */
void tctl_expf_array(size_t n, const float *x, float *y);
void tctl_tanhf_array(size_t n, const float *x, float *y);

#endif
