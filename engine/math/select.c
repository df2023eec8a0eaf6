/* SPDX-License-Identifier: Apache-2.0 */
/* Which loops go with which matrix product. NEON is part of AArch64's baseline, so there the portable ones are it. */
#include <string.h>

#include "engine/math/math.h"
#include "engine/math/norm.h"

const tctl_math *tctl_math_of(const tctl_simd *simd)
{
#if defined(__x86_64__)
    if (strcmp(simd->name, "avx512") == 0)
        return &tctl_math_avx512;
    if (strcmp(simd->name, "avx2") == 0)
        return &tctl_math_avx2;
#endif
    (void)simd;
    return &tctl_math_portable;
}

const tctl_norm *tctl_norm_of(const tctl_simd *simd)
{
#if defined(__x86_64__)
    if (strcmp(simd->name, "avx512") == 0)
        return &tctl_norm_avx512;
    if (strcmp(simd->name, "avx2") == 0)
        return &tctl_norm_avx2;
#endif
    (void)simd;
    return &tctl_norm_portable;
}
