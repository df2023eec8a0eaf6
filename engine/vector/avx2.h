/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of the kernels for AVX2 with FMA. */
#ifndef TCTL_ENGINE_VECTOR_H
#define TCTL_ENGINE_VECTOR_H

#include <immintrin.h>
#include <stdint.h>

#define LANES 8

#define VEC                  __m256
#define VZERO()              _mm256_setzero_ps()
#define VLOAD(p)             _mm256_loadu_ps(p)
#define VSTORE(p, v)         _mm256_storeu_ps(p, v)
#define VSPLAT(x)            _mm256_set1_ps(x)
#define VFMA(a, b, c)        _mm256_fmadd_ps(a, b, c)
#define VLOAD_TAIL(p, n)     _mm256_maskload_ps(p, first(n))
#define VSTORE_TAIL(p, n, v) _mm256_maskstore_ps(p, first(n), v)

static inline __m256i first(uint32_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

#endif
