/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The matrix product: the one function behind which everything multiplies.
 *
 *     C[m,n] = start[m,n] + A[m,k] B[k,n]        float32, row-major C
 *
 * Numerics (docs/numerics.md): every element of C is one chain  c = fmaf(A[i,p], B[p,j], c)  over p = 0..k-1,
 * that begins with +0, with a bias, or with what C holds. Accumulators are loaded from C before each block of k,
 * vectors run along columns, and work is split by rows and columns only; so neither block sizes, nor the width
 * of vectors, nor who computes what can show in a bit. Rows and columns of an edge tile may be padded, k never.
 *
 * A is read where it lies, through two strides: a plain matrix, a transposed one, or patches of an image that the
 * caller has gathered. B is packed into panels, by the caller once for many products or inside the call.
 *
 * tctl_gemm is single-threaded: operators cut their work into chunks and call from inside them. tctl_gemm_run cuts a
 * large product itself: no operator calls it today, bench/gemm and the tests do. [any]
 */
#ifndef TCTL_ENGINE_GEMM_H
#define TCTL_ENGINE_GEMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"

/* ---- variants of the inner kernel ---------------------------------------------------------------------- */

typedef struct tctl_gemm_tile tctl_gemm_tile; /* engine/gemm/tile.h */
typedef void tctl_gemm_tile_fn(const tctl_gemm_tile *);

enum { TCTL_GEMM_MAX_ROWS = 6, TCTL_GEMM_MAX_VECTORS = 8 };

/* One instruction set. All of them give the same bits. */
typedef struct tctl_simd {
    const char *name;                /* "portable", "avx2", "avx512", "neon" */
    uint32_t lanes;                  /* floats per vector */
    uint32_t rows, vectors;          /* largest tile: rows x (vectors * lanes) */
    uint32_t k_block;                /* such that a panel of k_block rows fits the first-level cache */
    tctl_gemm_tile_fn *const *tiles; /* [rows][vectors]: tile of r+1 rows and v+1 vectors */
} tctl_simd;

/* The variants that this processor can run, best first; the last is "portable". *ret_n >= 1. */
const tctl_simd *const *tctl_simd_available(uint32_t *ret_n);
/* The variant of that name; the best one if `name` is NULL or empty. TCTL_EINVAL if there is no such variant on
 * this processor; the message names those that there are. The variable TRAINCTL_SIMD is read in one place,
 * tctl_network_create, and passed here. */
tctl_status tctl_simd_choose(const char *name, const tctl_simd **ret, tctl_error *err);

/* ---- panels of B --------------------------------------------------------------------------------------- */

/* B[p,j] is at data[p * row + j * column]. */
typedef struct tctl_gemm_matrix {
    const float *data;
    ptrdiff_t row, column;
} tctl_gemm_matrix;

/* Columns of one panel, and how many panels n columns make. */
static inline size_t tctl_gemm_panel_columns(const tctl_simd *simd)
{
    return (size_t)simd->lanes * simd->vectors;
}
static inline size_t tctl_gemm_panels(const tctl_simd *simd, size_t n)
{
    return (n + tctl_gemm_panel_columns(simd) - 1) / tctl_gemm_panel_columns(simd);
}
/* Floats between two packed rows of panel `panel` of n columns (its columns, rounded up to whole vectors). */
size_t tctl_gemm_panel_stride(const tctl_simd *simd, size_t n, size_t panel);
/* Floats that B[k,n] takes when packed; panel p begins at p * k * tctl_gemm_panel_columns. */
size_t tctl_gemm_packed_floats(const tctl_simd *simd, size_t k, size_t n);
/* Packs k rows of panel `panel` of a matrix with n columns to dst[k][stride]; columns past n become 0. */
void tctl_gemm_pack(const tctl_simd *simd, const tctl_gemm_matrix *b, size_t k, size_t n, size_t panel,
                    float *dst);

/* ---- the product --------------------------------------------------------------------------------------- */

/* What the chains begin with. */
typedef enum tctl_gemm_start {
    TCTL_GEMM_ZERO = 0,
    TCTL_GEMM_BIAS = 1, /* bias[j] */
    TCTL_GEMM_C = 2     /* C[i,j]: the chain of an earlier call goes on */
} tctl_gemm_start;

typedef struct tctl_gemm_call {
    const tctl_simd *simd;
    size_t m, n, k;
    tctl_gemm_matrix a;    /* A[i,p] is at a.data[i * a.row + p * a.column] */
    tctl_gemm_matrix b;    /* used if packed_b is NULL; then `scratch` is needed */
    const float *packed_b; /* the panels of all of B, packed with tctl_gemm_pack */
    float *c;
    size_t c_row; /* floats between rows of C */
    tctl_gemm_start start;
    const float *bias; /* [n] */
    float *scratch;    /* [tctl_gemm_scratch_floats], the caller's own */
} tctl_gemm_call;

size_t tctl_gemm_scratch_floats(const tctl_simd *simd);
/* k = 0 writes the starts. C must not overlap A, B, or the bias. */
void tctl_gemm(const tctl_gemm_call *call);

/* The same for large products, over a pool: packed_b is not used, and scratch is [tctl_gemm_run_floats] for the
 * pool's threads. */
size_t tctl_gemm_run_floats(const tctl_simd *simd, uint32_t threads);
void tctl_gemm_run(const tctl_gemm_call *call, tctl_pool *pool);

/* ---- one panel, terms in segments ---------------------------------------------------------------------- */

/*
 * C[m,n] = start + A B for one panel of columns, where A's terms lie in pieces: term s * k + p of row i is at
 * a.data[segments[s] + i * a.row + p * a.column]. So a convolution reads an image where it lies: a segment is a row of
 * taps. Terms are taken in that order, as one chain.
 */
typedef struct tctl_gemm_strip_call {
    const tctl_simd *simd;
    size_t m, n; /* n columns: at most a panel */
    size_t k;    /* terms of a segment */
    const ptrdiff_t *segments;
    size_t n_segments;
    tctl_gemm_matrix a;
    const float *b; /* packed: [n_segments * k][b_row] */
    size_t b_row;   /* tctl_gemm_panel_stride */
    float *c;
    size_t c_row;
    tctl_gemm_start start;
    const float *bias; /* [n] */
} tctl_gemm_strip_call;

void tctl_gemm_strip(const tctl_gemm_strip_call *);

#endif
