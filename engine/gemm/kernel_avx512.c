/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for AVX-512F: 6 x 64, 24 accumulators. Runs only where the processor has it. */
#include "engine/gemm/tile.h"

#if defined(__x86_64__)
#include "engine/vector/avx512.h"

#define KERNEL_NAME  "avx512"
#define KERNEL_TABLE tctl_simd_avx512
#define ROWS         6
#define VECTORS      4
#define K_BLOCK      128

#include "engine/gemm/kernel_body.h"
#endif
