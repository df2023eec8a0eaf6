/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The micro-kernel, written once: included by each kernel_*.c behind a header of engine/vector, and after it has defined
 *
 *     KERNEL_NAME              "avx2"; KERNEL_TABLE: tctl_simd_avx2
 *     ROWS, VECTORS            largest tile
 *     K_BLOCK                  rows of a panel that the loop nest takes at once
 *
 * A tile of r rows and v vectors holds its r * v accumulators in registers over the whole block of k. `rows` and
 * `vectors` are constants after inlining, so the loops over them unroll completely.
 */
#include "engine/gemm/tile.h"
#include "engine/vector/unroll.h"

#if defined(__GNUC__)
#define PREFETCH(p) __builtin_prefetch(p, 1)
#else
#define PREFETCH(p) ((void)(p))
#endif

#if defined(TRAINCTL_FREE_ORDER)
enum { FREE_ORDER = 1 };
#else
enum { FREE_ORDER = 0 };
#endif

/* Vector j of a row; the last vector of an edge tile is cut off. */
INLINE VEC load_part(const float *p, int j, int vectors, uint32_t tail)
{
    return tail && j == vectors - 1 ? VLOAD_TAIL(p + j * LANES, tail) : VLOAD(p + j * LANES);
}

/* What the chains of row i begin with; TCTL_GEMM_ZERO has nothing. */
INLINE const float *start_of(const tctl_gemm_tile *t, int i)
{
    return t->start == TCTL_GEMM_C ? t->c + (size_t)i * t->c_row : t->bias;
}

INLINE void begin(const tctl_gemm_tile *t, int rows, int vectors, VEC acc[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            acc[i][j] = FREE_ORDER || t->start == TCTL_GEMM_ZERO
                            ? VZERO()
                            : load_part(start_of(t, i), j, vectors, t->tail);
    }
}

/* Of a build that measures what the exact contract costs: a block is summed from zero and added to what is there. */
INLINE void add_start(const tctl_gemm_tile *t, int rows, int vectors, VEC acc[ROWS][VECTORS])
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            acc[i][j] = VFMA(VSPLAT(1.0f), load_part(start_of(t, i), j, vectors, t->tail), acc[i][j]);
    }
}

INLINE void finish(const tctl_gemm_tile *t, int rows, int vectors, VEC acc[ROWS][VECTORS])
{
    const uint32_t tail = t->tail;
    const size_t c_row = t->c_row;
    float *c = t->c;
    UNROLL
    for (int i = 0; i < rows; i++, c += c_row) {
        UNROLL
        for (int j = 0; j < vectors; j++) {
            if (tail && j == vectors - 1)
                VSTORE_TAIL(c + j * LANES, tail, acc[i][j]);
            else
                VSTORE(c + j * LANES, acc[i][j]);
        }
    }
}

/* One term of every chain of the tile. */
INLINE void step(const float *a, ptrdiff_t a_row, const float *b, int rows, int vectors,
                 VEC acc[ROWS][VECTORS])
{
    VEC row[VECTORS];
    UNROLL
    for (int j = 0; j < vectors; j++)
        row[j] = VLOAD(b + j * LANES);
    UNROLL
    for (int i = 0; i < rows; i++) {
        const VEC x = VSPLAT(a[i * a_row]);
        UNROLL
        for (int j = 0; j < vectors; j++)
            acc[i][j] = VFMA(x, row[j], acc[i][j]);
    }
}

/* What the next tile begins with comes while this one computes. */
INLINE void fetch_next(const tctl_gemm_tile *t, int rows, int vectors)
{
    UNROLL
    for (int i = 0; i < rows; i++) {
        UNROLL
        for (int j = 0; j < vectors * LANES; j += 16)
            PREFETCH(t->next_c + (size_t)i * t->c_row + j);
    }
}

INLINE void tile(const tctl_gemm_tile *t, const int rows, const int vectors)
{
    VEC acc[ROWS][VECTORS];
    begin(t, rows, vectors, acc);
    if (t->next_c)
        fetch_next(t, rows, vectors);
    const float *b = t->b;
    const ptrdiff_t a_row = t->a_row, a_column = t->a_column;
    const size_t b_row = t->b_row;
    size_t s = 0;
    do {
        const float *a = t->segments ? t->a + t->segments[s] : t->a;
        /* Not unrolled: compilers then mix the steps and run out of registers. */
        for (size_t p = t->k; p > 0; p--, a += a_column, b += b_row)
            step(a, a_row, b, rows, vectors, acc);
    } while (++s < t->n_segments);
    if (FREE_ORDER && t->start != TCTL_GEMM_ZERO)
        add_start(t, rows, vectors, acc);
    finish(t, rows, vectors, acc);
}

#define TILE(r, v)                                                                                           \
    static void tile_##r##_##v(const tctl_gemm_tile *t)                                                      \
    {                                                                                                        \
        tile(t, r, v);                                                                                       \
    }
#define TILES_2(r)  TILE(r, 1) TILE(r, 2)
#define TILES_4(r)  TILES_2(r) TILE(r, 3) TILE(r, 4)
#define TILES_8(r)  TILES_4(r) TILE(r, 5) TILE(r, 6) TILE(r, 7) TILE(r, 8)
#define NAMES_2(r)  tile_##r##_1, tile_##r##_2
#define NAMES_4(r)  NAMES_2(r), tile_##r##_3, tile_##r##_4
#define NAMES_8(r)  NAMES_4(r), tile_##r##_5, tile_##r##_6, tile_##r##_7, tile_##r##_8
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

JOIN(TILES_, VECTORS)
(1) JOIN(TILES_, VECTORS)(2) JOIN(TILES_, VECTORS)(3) JOIN(TILES_, VECTORS)(4)
#if ROWS == 6
    JOIN(TILES_, VECTORS)(5) JOIN(TILES_, VECTORS)(6)
#endif

        static tctl_gemm_tile_fn *const tiles[ROWS * VECTORS] = {
            JOIN(NAMES_, VECTORS)(1), JOIN(NAMES_, VECTORS)(2),
            JOIN(NAMES_, VECTORS)(3), JOIN(NAMES_, VECTORS)(4),
#if ROWS == 6
            JOIN(NAMES_, VECTORS)(5), JOIN(NAMES_, VECTORS)(6),
#endif
};

const tctl_simd KERNEL_TABLE = {KERNEL_NAME, LANES, ROWS, VECTORS, K_BLOCK, tiles};
