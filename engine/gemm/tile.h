/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop nest (gemm.c) hands to a micro-kernel (kernel_*.c), and the variants' tables. */
#ifndef TCTL_ENGINE_GEMM_TILE_H
#define TCTL_ENGINE_GEMM_TILE_H

#include "engine/gemm/gemm.h"

struct tctl_gemm_tile {
    size_t k;       /* of a segment */
    const float *a; /* A[i,p] at a[i * a_row + p * a_column] */
    ptrdiff_t a_row, a_column;
    const ptrdiff_t *segments; /* where in a each of n_segments runs of k terms begins; NULL: one, at 0 */
    size_t n_segments;
    const float *b; /* packed rows, b_row floats apart: whole vectors */
    size_t b_row;
    float *c;
    size_t c_row;
    const float *bias; /* at the tile's first column */
    tctl_gemm_start start;
    const float *next_c; /* where the next tile begins, of as many rows and columns; NULL: nowhere. A hint */
    uint32_t tail;       /* columns of the last vector that exist; 0: all */
};

extern const tctl_simd tctl_simd_portable;
#if defined(__x86_64__)
extern const tctl_simd tctl_simd_avx2, tctl_simd_avx512;
#elif defined(__aarch64__)
extern const tctl_simd tctl_simd_neon;
#endif

#endif
