/* SPDX-License-Identifier: Apache-2.0 */
/* One panel of a product whose terms lie in segments: see gemm.h. */
#include "engine/gemm/gemm.h"
#include "engine/gemm/tile.h"

void tctl_gemm_strip(const tctl_gemm_strip_call *g)
{
    const tctl_simd *simd = g->simd;
    const size_t vectors = g->b_row / simd->lanes, tiles = (g->m + simd->rows - 1) / simd->rows;
    tctl_gemm_tile t = {.k = g->k,
                        .segments = g->segments,
                        .n_segments = g->n_segments,
                        .a_row = g->a.row,
                        .a_column = g->a.column,
                        .b = g->b,
                        .b_row = g->b_row,
                        .c_row = g->c_row,
                        .bias = g->bias,
                        .start = g->start,
                        .tail = (uint32_t)(g->n % simd->lanes)};
    /* Tiles of nearly equal heights: one of two rows at the end would wait for its own results. */
    const size_t height = g->m / tiles, higher = g->m % tiles;
    t.a = g->a.data;
    t.c = g->c;
    for (size_t i = 0; i < tiles; i++) {
        const size_t rows = height + (i < higher);
        t.next_c = i + 1 < tiles ? t.c + rows * g->c_row : NULL;
        simd->tiles[(rows - 1) * simd->vectors + vectors - 1](&t);
        t.a += (ptrdiff_t)rows * g->a.row;
        t.c += rows * g->c_row;
    }
}
