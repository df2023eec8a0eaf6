/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop nest around the micro-kernels, and the packing of B.
 *
 * Blocks of columns, then of k, then of rows (Goto and van de Geijn, "Anatomy of High-Performance Matrix
 * Multiplication", ACM TOMS 34(3), 2008), with one difference: a block of k never begins from zero and is added
 * later, it goes on with the accumulators that the block before it left in C. So block sizes cannot show.
 */
#include "engine/gemm/gemm.h"

#include <string.h>

#include "engine/gemm/tile.h"

enum {
    ROW_BLOCK = 96,     /* rows of A that stay in the second-level cache: a multiple of every kernel's rows */
    COLUMN_BLOCK = 256, /* columns of B that are packed at once: a multiple of every panel */
    WHOLE_PANEL = 16,   /* columns of a panel of most variants */
    PACK_ROWS = 8       /* rows of a transposed B that are read together */
};

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- packing ------------------------------------------------------------------------------------------- */

static size_t panel_width(const tctl_simd *simd, size_t n, size_t panel)
{
    size_t columns = tctl_gemm_panel_columns(simd);
    return min_size(columns, n - panel * columns);
}

size_t tctl_gemm_panel_stride(const tctl_simd *simd, size_t n, size_t panel)
{
    size_t width = panel_width(simd, n, panel);
    return (width + simd->lanes - 1) / simd->lanes * simd->lanes;
}

size_t tctl_gemm_packed_floats(const tctl_simd *simd, size_t k, size_t n)
{
    return tctl_gemm_panels(simd, n) * tctl_gemm_panel_columns(simd) * k;
}

/* Rows of B lie one behind the other. Whole panels are common, and copied with a constant length. */
static void pack_rows(const tctl_gemm_matrix *b, const float *from, size_t k, size_t width, size_t stride,
                      float *dst)
{
    if (width == WHOLE_PANEL && stride == WHOLE_PANEL) {
        for (size_t p = 0; p < k; p++, from += b->row, dst += WHOLE_PANEL)
            memcpy(dst, from, WHOLE_PANEL * sizeof *dst);
        return;
    }
    for (size_t p = 0; p < k; p++, from += b->row, dst += stride) {
        for (size_t j = 0; j < width; j++)
            dst[j] = from[j];
        for (size_t j = width; j < stride; j++)
            dst[j] = 0;
    }
}

/* Any strides; a few rows at a time, so that a column's cache line is used while it is there. */
static void pack_strided(const tctl_gemm_matrix *b, const float *from, size_t k, size_t width, size_t stride,
                         float *dst)
{
    for (size_t p0 = 0; p0 < k; p0 += PACK_ROWS) {
        size_t p1 = min_size(p0 + PACK_ROWS, k);
        for (size_t j = 0; j < width; j++) {
            const float *column = from + (ptrdiff_t)j * b->column;
            for (size_t p = p0; p < p1; p++)
                dst[p * stride + j] = column[(ptrdiff_t)p * b->row];
        }
        for (size_t p = p0; p < p1; p++) {
            for (size_t j = width; j < stride; j++)
                dst[p * stride + j] = 0;
        }
    }
}

void tctl_gemm_pack(const tctl_simd *simd, const tctl_gemm_matrix *b, size_t k, size_t n, size_t panel,
                    float *dst)
{
    size_t columns = tctl_gemm_panel_columns(simd), stride = tctl_gemm_panel_stride(simd, n, panel);
    const float *from = b->data + (ptrdiff_t)(panel * columns) * b->column;
    if (b->column == 1)
        pack_rows(b, from, k, panel_width(simd, n, panel), stride, dst);
    else
        pack_strided(b, from, k, panel_width(simd, n, panel), stride, dst);
}

/* ---- the product --------------------------------------------------------------------------------------- */

/* Rows i0..i1 of one panel over one block of k. */
static void multiply_panel(const tctl_gemm_call *g, size_t i0, size_t i1, size_t p0, size_t k, size_t panel,
                           const float *b)
{
    const tctl_simd *simd = g->simd;
    const size_t j0 = panel * tctl_gemm_panel_columns(simd), width = panel_width(simd, g->n, panel);
    const size_t stride = tctl_gemm_panel_stride(simd, g->n, panel), vectors = stride / simd->lanes;
    tctl_gemm_tile t = {.k = k,
                        .a_row = g->a.row,
                        .a_column = g->a.column,
                        .b = b,
                        .b_row = stride,
                        .c_row = g->c_row,
                        .bias = g->start == TCTL_GEMM_BIAS ? g->bias + j0 : NULL,
                        .start = p0 ? TCTL_GEMM_C : g->start,
                        .tail = (uint32_t)(width % simd->lanes)};
    for (size_t i = i0; i < i1; i += simd->rows) {
        size_t rows = min_size(simd->rows, i1 - i);
        t.a = g->a.data + (ptrdiff_t)i * g->a.row + (ptrdiff_t)p0 * g->a.column;
        t.c = g->c + i * g->c_row + j0;
        simd->tiles[(rows - 1) * simd->vectors + vectors - 1](&t);
    }
}

/* All rows of columns j0.. (whole panels) over one block of k. */
static void multiply_block(const tctl_gemm_call *g, size_t panel0, size_t panel1, size_t p0, size_t k)
{
    const tctl_simd *simd = g->simd;
    const size_t columns = tctl_gemm_panel_columns(simd);
    tctl_gemm_matrix block = g->b;
    if (!g->packed_b) {
        block.data += (ptrdiff_t)p0 * block.row;
        for (size_t q = panel0; q < panel1; q++)
            tctl_gemm_pack(simd, &block, k, g->n, q, g->scratch + (q - panel0) * k * columns);
    }
    for (size_t i = 0; i < g->m; i += ROW_BLOCK) {
        for (size_t q = panel0; q < panel1; q++) {
            const float *b =
                g->packed_b ? g->packed_b + q * g->k * columns + p0 * tctl_gemm_panel_stride(simd, g->n, q)
                            : g->scratch + (q - panel0) * k * columns;
            multiply_panel(g, i, min_size(i + ROW_BLOCK, g->m), p0, k, q, b);
        }
    }
}

size_t tctl_gemm_scratch_floats(const tctl_simd *simd)
{
    return (size_t)simd->k_block * COLUMN_BLOCK;
}

void tctl_gemm(const tctl_gemm_call *g)
{
    const size_t panels = tctl_gemm_panels(g->simd, g->n);
    const size_t step = COLUMN_BLOCK / tctl_gemm_panel_columns(g->simd), k_block = g->simd->k_block;
    for (size_t q = 0; q < panels; q += step) {
        size_t p = 0;
        do { /* once even for k = 0: the starts are written */
            multiply_block(g, q, min_size(q + step, panels), p, min_size(k_block, g->k - p));
            p += k_block;
        } while (p < g->k);
    }
}
