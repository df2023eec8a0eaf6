/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for AArch64, whose baseline has fused multiply-add: 6 x 16, 24 accumulators. */
#include "engine/gemm/tile.h"

#if defined(__aarch64__)
#include "engine/vector/neon.h"

#define KERNEL_NAME  "neon"
#define KERNEL_TABLE tctl_simd_neon
#define ROWS         6
#define VECTORS      4
#define K_BLOCK      256

#include "engine/gemm/kernel_body.h"
#endif
