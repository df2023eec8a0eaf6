/* SPDX-License-Identifier: Apache-2.0 */
/* What -Ofast puts into a library: a constructor that sets FTZ and DAZ. */
#include <stdint.h>

__attribute__((constructor)) static void set_fast_math(void)
{
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | (uint64_t)1 << 24));
#endif
}
