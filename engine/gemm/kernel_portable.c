/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The micro-kernel in plain C: what every processor runs, and what the others are compared with. Without a
 * fused multiply-add in hardware it is right and slow, because fmaf then is a function of the C library.
 */
#include "engine/gemm/tile.h"
#include "engine/vector/portable.h"

#define KERNEL_NAME  "portable"
#define KERNEL_TABLE tctl_simd_portable
#define ROWS         4
#define VECTORS      8
#define K_BLOCK      256

#include "engine/gemm/kernel_body.h"
