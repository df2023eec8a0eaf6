/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The micro-kernel in plain C: what every processor runs, and what the others are compared with. Without a
 * fused multiply-add in hardware it is right and slow, because fmaf then is a function of the C library.
 */
#include <math.h>

#include "engine/gemm/tile.h"

#define KERNEL_NAME  "portable"
#define KERNEL_TABLE tctl_simd_portable
#define LANES        1
#define ROWS         4
#define VECTORS      8
#define K_BLOCK      256

#define VEC                  float
#define VZERO()              0.0f
#define VLOAD(p)             (*(p))
#define VSTORE(p, v)         (*(p) = (v))
#define VSPLAT(x)            (x)
#define VFMA(a, b, c)        fmaf(a, b, c)
#define VLOAD_TAIL(p, n)     ((void)(n), *(p))
#define VSTORE_TAIL(p, n, v) ((void)(n), *(p) = (v))

#include "engine/gemm/kernel_body.h"
