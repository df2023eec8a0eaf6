/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for AVX2 with FMA: 6 x 16, 12 accumulators. Runs only where the processor has both. */
#include "engine/gemm/tile.h"

#if defined(__x86_64__)
#include "engine/vector/avx2.h"

#define KERNEL_NAME  "avx2"
#define KERNEL_TABLE tctl_simd_avx2
#define ROWS         6
#define VECTORS      2
#define K_BLOCK      256

#include "engine/gemm/kernel_body.h"
#endif
