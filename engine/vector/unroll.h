/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers are told, so that loops over registers unroll completely. */
#ifndef TCTL_ENGINE_UNROLL_H
#define TCTL_ENGINE_UNROLL_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif
#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

#endif
