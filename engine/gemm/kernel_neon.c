/* SPDX-License-Identifier: Apache-2.0 */
/* The micro-kernel for AArch64, whose baseline has fused multiply-add: 6 x 16, 24 accumulators. */
#include "engine/gemm/tile.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#include <string.h>

#define KERNEL_NAME  "neon"
#define KERNEL_TABLE tctl_simd_neon
#define LANES        4
#define ROWS         6
#define VECTORS      4
#define K_BLOCK      256

#define VEC                  float32x4_t
#define VZERO()              vdupq_n_f32(0)
#define VLOAD(p)             vld1q_f32(p)
#define VSTORE(p, v)         vst1q_f32(p, v)
#define VSPLAT(x)            vdupq_n_f32(x)
#define VFMA(a, b, c)        vfmaq_f32(c, a, b)
#define VLOAD_TAIL(p, n)     load_first(p, n)
#define VSTORE_TAIL(p, n, v) store_first(p, n, v)

static inline float32x4_t load_first(const float *p, uint32_t n)
{
    float lanes[4] = {0};
    memcpy(lanes, p, n * sizeof *p);
    return vld1q_f32(lanes);
}

static inline void store_first(float *p, uint32_t n, float32x4_t v)
{
    float lanes[4];
    vst1q_f32(lanes, v);
    memcpy(p, lanes, n * sizeof *p);
}

#include "engine/gemm/kernel_body.h"
#endif
