/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large products, over a pool: blocks of columns, then of k; a block of B is packed once for all threads, then every
 * chunk packs its own rows of A and multiplies. Both lie in micro-panels that are read from front to back, so that
 * neither the strides of the matrices nor the pages they lie on show in the time.
 *
 * Chains are those of gemm.h: a block of k goes on with what the block before it left in C. How rows and columns are
 * cut among threads decides the time only. Block sizes are constants that suit every cache of at least 256 KiB
 * (A's rows) and 2 MiB (B's columns, which all threads share); they are not asked of the processor.
 */
#include <stdbool.h>
#include <string.h>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "engine/gemm/gemm.h"
#include "engine/gemm/tile.h"

enum {
    ROW_BLOCK = 240,      /* rows of A that a chunk packs at most: a multiple of every kernel's rows */
    COLUMN_BLOCK = 2048,  /* columns of B that are packed at once: a multiple of every panel */
    DIRECT_PANELS = 4,    /* up to so many panels of B, a plain A is read where it lies */
    SHORT_K = 64,         /* and up to so many terms */
    CHUNKS_PER_THREAD = 4 /* wanted, so that a slow thread does not hold up the others */
};

typedef struct run {
    const tctl_gemm_call *call;
    float *packed_a; /* [threads][ROW_BLOCK * k_block] */
    bool direct;     /* A is read where it lies */
    size_t panel0, panel1, p0, k;
    size_t rows, row_parts, panels_per_part;
} run;

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t a_floats(const tctl_simd *simd)
{
    return (size_t)ROW_BLOCK * simd->k_block;
}

size_t tctl_gemm_run_floats(const tctl_simd *simd, uint32_t threads)
{
    return (size_t)simd->k_block * COLUMN_BLOCK + threads * a_floats(simd);
}

/* ---- packing ------------------------------------------------------------------------------------------- */

static void pack_b(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const run *r = arg;
    const tctl_gemm_call *g = r->call;
    tctl_gemm_matrix b = g->b;
    b.data += (ptrdiff_t)r->p0 * b.row;
    tctl_gemm_pack(g->simd, &b, r->k, g->n, r->panel0 + chunk,
                   g->scratch + chunk * r->k * tctl_gemm_panel_columns(g->simd));
}

/* Rows of A that lie one behind the other in k, to dst[k][rows]. */
static void pack_a_plain(const tctl_gemm_matrix *a, const float *from, size_t rows, size_t k, float *dst)
{
    for (size_t p = 0; p < k; p++, from += a->column, dst += rows) {
        for (size_t i = 0; i < rows; i++)
            dst[i] = from[(ptrdiff_t)i * a->row];
    }
}

#if defined(__SSE2__)
/* Six rows, four terms at a time. */
static void pack_a_six(ptrdiff_t row, const float *from, size_t k, float *dst)
{
    for (size_t p = 0; p < k; p += 4, from += 4, dst += 24) {
        __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + row);
        __m128 r2 = _mm_loadu_ps(from + 2 * row), r3 = _mm_loadu_ps(from + 3 * row);
        const __m128 r4 = _mm_loadu_ps(from + 4 * row), r5 = _mm_loadu_ps(from + 5 * row);
        const __m128 low = _mm_unpacklo_ps(r4, r5), high = _mm_unpackhi_ps(r4, r5);
        _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
        _mm_storeu_ps(dst, r0);
        _mm_storel_pi((__m64 *)(void *)(dst + 4), low);
        _mm_storeu_ps(dst + 6, r1);
        _mm_storeh_pi((__m64 *)(void *)(dst + 10), low);
        _mm_storeu_ps(dst + 12, r2);
        _mm_storel_pi((__m64 *)(void *)(dst + 16), high);
        _mm_storeu_ps(dst + 18, r3);
        _mm_storeh_pi((__m64 *)(void *)(dst + 22), high);
    }
}
#endif

/* Six rows of a transposed matrix: they are neighbours. */
static void pack_a_six_transposed(ptrdiff_t column, const float *from, size_t k, float *dst)
{
    for (size_t p = 0; p < k; p++, from += column, dst += 6)
        memcpy(dst, from, 6 * sizeof *dst);
}

static void pack_a_panel(const tctl_gemm_matrix *a, const float *from, size_t rows, size_t k, float *dst)
{
    size_t done = 0;
    if (a->row == 1 && rows == 6) {
        pack_a_six_transposed(a->column, from, k, dst);
        return;
    }
#if defined(__SSE2__)
    if (a->column == 1 && rows == 6) {
        done = k / 4 * 4;
        pack_a_six(a->row, from, done, dst);
    }
#endif
    pack_a_plain(a, from + (ptrdiff_t)done * a->column, rows, k - done, dst + done * rows);
}

/* ---- the products -------------------------------------------------------------------------------------- */

/* The rows of one packed panel of A times some panels of B. */
static void multiply_rows(const run *r, tctl_gemm_matrix a, size_t i, size_t rows, size_t q, bool more_rows)
{
    const tctl_gemm_call *g = r->call;
    const tctl_simd *simd = g->simd;
    const size_t columns = tctl_gemm_panel_columns(simd), j0 = q * columns;
    const size_t stride = tctl_gemm_panel_stride(simd, g->n, q), width = min_size(columns, g->n - j0);
    const tctl_gemm_tile t = {.k = r->k,
                              .a = a.data,
                              .a_row = a.row,
                              .a_column = a.column,
                              .b = g->scratch + (q - r->panel0) * r->k * columns,
                              .b_row = stride,
                              .c = g->c + i * g->c_row + j0,
                              .c_row = g->c_row,
                              .next_c = more_rows ? g->c + (i + rows) * g->c_row + j0 : NULL,
                              .bias = g->start == TCTL_GEMM_BIAS ? g->bias + j0 : NULL,
                              .start = r->p0 ? TCTL_GEMM_C : g->start,
                              .tail = (uint32_t)(width % simd->lanes)};
    simd->tiles[(rows - 1) * simd->vectors + stride / simd->lanes - 1](&t);
}

static const float *a_at(const run *r, size_t i)
{
    const tctl_gemm_matrix *a = &r->call->a;
    return a->data + (ptrdiff_t)i * a->row + (ptrdiff_t)r->p0 * a->column;
}

/* Chunk: a part of the rows, and a part of the panels. */
static void multiply_part(void *arg, uint64_t chunk, uint32_t thread)
{
    const run *r = arg;
    const tctl_gemm_call *g = r->call;
    const size_t step = g->simd->rows, i0 = chunk % r->row_parts * r->rows, i1 = min_size(i0 + r->rows, g->m);
    const size_t q0 = r->panel0 + chunk / r->row_parts * r->panels_per_part;
    const size_t q1 = min_size(q0 + r->panels_per_part, r->panel1);
    float *packed = r->packed_a + thread * a_floats(g->simd);
    for (size_t i = i0; i < i1 && !r->direct; i += step)
        pack_a_panel(&g->a, a_at(r, i), min_size(step, i1 - i), r->k, packed + (i - i0) * r->k);
    for (size_t q = q0; q < q1; q++) {
        for (size_t i = i0; i < i1; i += step) {
            const size_t rows = min_size(step, i1 - i);
            const tctl_gemm_matrix plain = {a_at(r, i), g->a.row, g->a.column},
                                   panel = {packed + (i - i0) * r->k, 1, (ptrdiff_t)rows};
            multiply_rows(r, r->direct ? plain : panel, i, rows, q, i + 2 * step <= i1);
        }
    }
}

/* Rows in equal parts, their number a multiple of the threads where there are enough; columns are cut where rows do
 * not give every thread something to do. */
static void cut(run *r, uint32_t threads)
{
    const size_t step = r->call->simd->rows, m = r->call->m, panels = r->panel1 - r->panel0;
    size_t parts = divide_up(divide_up(m, ROW_BLOCK), threads) * threads;
    r->rows = min_size(divide_up(divide_up(m, parts), step) * step, ROW_BLOCK);
    r->row_parts = divide_up(m, r->rows);
    size_t column_parts = threads == 1 ? 1 : divide_up((size_t)threads * CHUNKS_PER_THREAD, r->row_parts);
    r->panels_per_part = divide_up(panels, min_size(column_parts, panels));
}

/* Whether packing A costs more than it saves: each row is read once for every panel. */
static bool reads_in_place(const tctl_gemm_call *g, size_t panels)
{
    return panels == 1 || (g->a.column == 1 && (panels <= DIRECT_PANELS || g->k <= SHORT_K));
}

void tctl_gemm_run(const tctl_gemm_call *g, tctl_pool *pool)
{
    const size_t columns = tctl_gemm_panel_columns(g->simd), k_block = g->simd->k_block;
    const size_t panels = tctl_gemm_panels(g->simd, g->n), step = COLUMN_BLOCK / columns;
    run r = {.call = g, .packed_a = g->scratch + k_block * COLUMN_BLOCK};
    for (r.panel0 = 0; r.panel0 < panels; r.panel0 = r.panel1) {
        r.panel1 = min_size(r.panel0 + step, panels);
        r.direct = reads_in_place(g, r.panel1 - r.panel0);
        cut(&r, tctl_pool_threads(pool));
        r.p0 = 0;
        do { /* once even for k = 0: the starts are written */
            r.k = min_size(k_block, g->k - r.p0);
            tctl_pool_run(pool, r.panel1 - r.panel0, pack_b, &r);
            tctl_pool_run(pool, r.row_parts * divide_up(r.panel1 - r.panel0, r.panels_per_part),
                          multiply_part, &r);
            r.p0 += k_block;
        } while (r.p0 < g->k);
    }
}
