/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service "trainctl.math/1": elementary functions whose bits are the same everywhere.
 *
 * libm's results change with the CPU and the release; a plugin that keeps the exact contract takes these. Fixed
 * sequences of IEEE operations. sqrt needs no replacement: IEEE 754 defines its bits.
 */
#ifndef TRAINCTL_HOST_MATH_H
#define TRAINCTL_HOST_MATH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_MATH_ID "trainctl.math/1"

/* All [any]; pure; same bits for: run, threads, SIMD, compiler, CPU. */
typedef struct tctl_math {
    uint32_t struct_size, reserved;
    float (*expf)(float);    /* e^x, <= 1 ULP; 0 and inf outside the range; NaN for NaN */
    float (*logf)(float);    /* natural logarithm, <= 1 ULP; -inf at 0, NaN below */
    float (*log1pf)(float);  /* log(1 + x), <= 1 ULP */
    float (*tanhf)(float);   /* <= 1 ULP */
    double (*cospi)(double); /* cos(pi x) for x in [0, 1], absolute error <= 1e-15 */
} tctl_math;

#ifdef __cplusplus
}
#endif

#endif
