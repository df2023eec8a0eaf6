/* SPDX-License-Identifier: Apache-2.0 */
/* exp and gelu of arrays in plain C: for compilers to vectorise. y may be x. */
#ifndef TCTL_ENGINE_FUNCTIONS_PLAIN_H
#define TCTL_ENGINE_FUNCTIONS_PLAIN_H

#include "base/fmath_activation.h"
#include "engine/math/loops.h"

static void map_exp(int64_t n, const float *x, float *y)
{
    ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = tctl_expf_inline(x[i]);
}

static void map_gelu(int64_t n, const float *x, float *y)
{
    ELEMENTWISE
    for (int64_t i = 0; i < n; i++)
        y[i] = tctl_geluf_inline(x[i]);
}

static void both_gelu(int64_t n, const float *x, float *y, float *slope)
{
    ELEMENTWISE
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i];
        y[i] = tctl_geluf_inline(v);
        slope[i] = tctl_gelu_slopef_inline(v);
    }
}

#endif
