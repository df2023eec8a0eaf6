/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the kernels for AArch64. */
#ifndef TCTL_ENGINE_VECTOR_H
#define TCTL_ENGINE_VECTOR_H

#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define LANES 4

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

#endif
