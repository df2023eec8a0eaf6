/* SPDX-License-Identifier: Apache-2.0 */
/* Does what code linked with -ffast-math does when it is loaded: flush denormals to zero. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void flush_denormals(void)
{
#if defined(__x86_64__)
    unsigned mode;
    __asm__ volatile("stmxcsr %0" : "=m"(mode));
    mode |= 0x8040u;
    __asm__ volatile("ldmxcsr %0" : : "m"(mode));
#elif defined(__aarch64__)
    unsigned long mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    mode |= 1ul << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

COMMON_PLUGIN("fast_math");
