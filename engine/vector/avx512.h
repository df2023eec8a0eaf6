/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the kernels for AVX-512F. */
#ifndef TCTL_ENGINE_VECTOR_H
#define TCTL_ENGINE_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#define LANES 16

#define VEC                  __m512
#define VZERO()              _mm512_setzero_ps()
#define VLOAD(p)             _mm512_loadu_ps(p)
#define VSTORE(p, v)         _mm512_storeu_ps(p, v)
#define VSPLAT(x)            _mm512_set1_ps(x)
#define VFMA(a, b, c)        _mm512_fmadd_ps(a, b, c)
#define VLOAD_TAIL(p, n)     _mm512_maskz_loadu_ps(first(n), p)
#define VSTORE_TAIL(p, n, v) _mm512_mask_storeu_ps(p, first(n), v)

static inline __mmask16 first(uint32_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

#endif
