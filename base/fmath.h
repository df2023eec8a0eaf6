/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our own elementary functions for float: fixed sequences of IEEE operations, so that the bits are the same on
 * every machine, compiler and optimisation level. libm's are not: they change with the CPU's features.
 *
 * All [any]; same bits for: run, threads, SIMD, compiler, CPU. Error bounds in units of the last place, measured
 * over all floats by tests/base/test_fmath.c.
 */
#ifndef TCTL_BASE_FMATH_H
#define TCTL_BASE_FMATH_H

float tctl_expf(float x);   /* e^x, <= 1 ULP; 0 and inf outside the range; NaN for NaN */
float tctl_logf(float x);   /* natural logarithm, <= 1 ULP; -inf at 0, NaN below */
float tctl_log1pf(float x); /* log(1 + x), <= 1 ULP */
float tctl_tanhf(float x);  /* <= 1 ULP */
/* sin and cos of 2 pi x for x in [0, 1]: what Box-Muller and cosine schedules need; absolute error <= 2^-24. */
void tctl_sincos_turns(float x, float *ret_sin, float *ret_cos);
/* cos(pi x) in double for x in [0, 1], absolute error <= 1e-15. */
double tctl_cospi(double x);

#endif
