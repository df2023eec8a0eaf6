/* SPDX-License-Identifier: Apache-2.0 */
/* See fmath.h. The polynomials and their derivation are described in fmath_inline.h. */
#include "base/fmath.h"

#include "base/fmath_inline.h"

float tctl_expf(float x)
{
    return tctl_expf_inline(x);
}

float tctl_logf(float x)
{
    return tctl_logf_inline(x);
}

float tctl_log1pf(float x)
{
    return tctl_log1pf_inline(x);
}

float tctl_tanhf(float x)
{
    return tctl_tanhf_inline(x);
}

void tctl_sincos_turns(float x, float *ret_sin, float *ret_cos)
{
    double s, c;
    tctl_sincos_turns_core((double)x, &s, &c);
    *ret_sin = (float)s;
    *ret_cos = (float)c;
}

double tctl_cospi(double x)
{
    double shifted = 2.0 * x + TCTL_ROUNDER;
    uint64_t half = tctl_bits_of_double(shifted) & 3;         /* 0, 1 or 2 half turns of pi */
    double r = x - 0.5 * (shifted - TCTL_ROUNDER), z = r * r; /* exact; |r| <= 1/4 */
    if (half == 1) {
        /* sin(pi r)/r, |error| <= 1.4e-16 */
        double s = -0x1.6c5b875d4e739p-16;
        s = s * z + 0x1.e8eed12ee00a3p-12;
        s = s * z - 0x1.e3074b4ff3058p-8;
        s = s * z + 0x1.50783485cbd83p-4;
        s = s * z - 0x1.32d2cce62ac22p-1;
        s = s * z + 0x1.466bc6775aad9p+1;
        s = s * z - 0x1.4abbce625be53p+2;
        s = s * z + 0x1.921fb54442d18p+1;
        return 0.0 - s * r;
    }
    /* cos(pi r), |error| <= 2.1e-17 */
    double c = 0x1.1e2a69fa47a81p-18;
    c = c * z - 0x1.b6dd6cfa280afp-14;
    c = c * z + 0x1.f9d3854812ae6p-10;
    c = c * z - 0x1.a6d1f29f1c7fap-6;
    c = c * z + 0x1.e1f5068919a8ap-3;
    c = c * z - 0x1.55d3c7e3cbfedp+0;
    c = c * z + 0x1.03c1f081b5ac4p+2;
    c = c * z - 0x1.3bd3cc9be45dep+2;
    c = c * z + 1.0;
    return half == 2 ? 0.0 - c : c;
}

void tctl_expf_array(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = tctl_expf_inline(x[i]);
}

void tctl_tanhf_array(size_t n, const float *x, float *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = tctl_tanhf_inline(x[i]);
}
