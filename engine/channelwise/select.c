/* SPDX-License-Identifier: Apache-2.0 */
/* Which functions go with which matrix product. */
#include <string.h>

#include "engine/channelwise/channelwise.h"

const tctl_channelwise *tctl_channelwise_of(const tctl_simd *simd)
{
#if defined(__x86_64__)
    if (strcmp(simd->name, "avx512") == 0)
        return &tctl_channelwise_avx512;
    if (strcmp(simd->name, "avx2") == 0)
        return &tctl_channelwise_avx2;
#elif defined(__aarch64__)
    if (strcmp(simd->name, "neon") == 0)
        return &tctl_channelwise_neon;
#endif
    (void)simd;
    return &tctl_channelwise_portable;
}
