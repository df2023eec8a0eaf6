/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers are told about the loops of this folder. */
#ifndef TCTL_ENGINE_LOOPS_H
#define TCTL_ENGINE_LOOPS_H

/* Arrays are the same or apart, so that no element depends on another one. */
#if defined(__clang__)
#define ELEMENTWISE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ELEMENTWISE _Pragma("GCC ivdep")
#else
#define ELEMENTWISE
#endif

#endif
