/* SPDX-License-Identifier: Apache-2.0 */
/* See fmath.h: the functions of fmath_activation.h, one number at a time. */
#include "base/fmath_activation.h"

#include "base/fmath.h"

float tctl_erff(float x)
{
    return tctl_erff_inline(x);
}

float tctl_sigmoidf(float x)
{
    return tctl_sigmoidf_inline(x);
}

float tctl_siluf(float x)
{
    return tctl_siluf_inline(x);
}

float tctl_silu_slopef(float x)
{
    return tctl_silu_slopef_inline(x);
}

float tctl_geluf(float x)
{
    return tctl_geluf_inline(x);
}

float tctl_gelu_slopef(float x)
{
    return tctl_gelu_slopef_inline(x);
}

float tctl_gelu_tanhf(float x)
{
    return tctl_gelu_tanhf_inline(x);
}

float tctl_gelu_tanh_slopef(float x)
{
    return tctl_gelu_tanh_slopef_inline(x);
}
