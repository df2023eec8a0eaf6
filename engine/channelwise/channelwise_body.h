/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of channelwise.h: included by each channelwise_*.c behind a header of engine/vector, and after it has
 * defined CHANNELWISE_TABLE, the name of its table.
 *
 * A tile keeps a vector of channels of several positions (or terms) in registers: as many chains as hide the latency
 * of an addition. Their number is a constant after inlining.
 */
#include "engine/channelwise/channelwise.h"
#include "engine/vector/unroll.h"

enum { MAX_POSITIONS = 8, MAX_TERMS = 12, SHARED_POSITIONS = 6, SHARED_VECTORS = 2 };

/* tail 0: a whole vector. */
INLINE VEC load(const float *p, uint32_t tail)
{
    return tail ? VLOAD_TAIL(p, tail) : VLOAD(p);
}

INLINE void store(float *p, uint32_t tail, VEC v)
{
    if (tail)
        VSTORE_TAIL(p, tail, v);
    else
        VSTORE(p, v);
}

/* ---- chains over terms --------------------------------------------------------------------------------- */

/* `positions` positions from p on, a vector of channels from c on. */
INLINE void row_tile(const tctl_channelwise_row *r, int64_t p, int64_t c, uint32_t tail, const int positions)
{
    const ptrdiff_t step = r->x_step;
    const int64_t weights_row = tctl_channelwise_stride(r->channels);
    const float *x = r->x + p * step + c, *weights = r->weights + c;
    float *y = r->y + p * r->y_step + c;
    VEC sum[MAX_POSITIONS];
    UNROLL
    for (int i = 0; i < positions; i++) {
        if (r->start == TCTL_GEMM_ZERO)
            sum[i] = VZERO();
        else
            sum[i] = load(r->start == TCTL_GEMM_C ? y + i * r->y_step : r->bias + c, tail);
    }
    for (int64_t t = 0; t < r->n_terms; t++, weights += weights_row) {
        const VEC w = VLOAD(weights);
        const float *from = x + r->terms[t];
        UNROLL
        for (int i = 0; i < positions; i++)
            sum[i] = VFMA(VLOAD(from + i * step), w, sum[i]);
    }
    UNROLL
    for (int i = 0; i < positions; i++)
        store(y + i * r->y_step, tail, sum[i]);
}

typedef void row_tile_fn(const tctl_channelwise_row *, int64_t p, int64_t c, uint32_t tail);

#define ROW_TILE(n)                                                                                          \
    static void row_tile_##n(const tctl_channelwise_row *r, int64_t p, int64_t c, uint32_t tail)             \
    {                                                                                                        \
        row_tile(r, p, c, tail, n);                                                                          \
    }
ROW_TILE(1)
ROW_TILE(2)
ROW_TILE(3)
ROW_TILE(4)
ROW_TILE(5)
ROW_TILE(6)
ROW_TILE(7)
ROW_TILE(8)

static row_tile_fn *const row_tiles[] = {row_tile_1, row_tile_2, row_tile_3, row_tile_4,
                                         row_tile_5, row_tile_6, row_tile_7, row_tile_8};

static void row(const tctl_channelwise_row *r)
{
    const int64_t parts = (r->n + MAX_POSITIONS - 1) / MAX_POSITIONS;
    for (int64_t i = 0; i < parts; i++) { /* of nearly equal lengths */
        const int64_t p = r->n * i / parts, positions = r->n * (i + 1) / parts - p;
        row_tile_fn *const tile = row_tiles[positions - 1];
        for (int64_t c = 0; c < r->channels; c += LANES)
            tile(r, p, c, c + LANES > r->channels ? (uint32_t)(r->channels - c) : 0);
    }
}

/* ---- the same, one x for all channels ------------------------------------------------------------------ */

/* What the chains of one position begin with, or where they end. */
INLINE void begin_shared(const tctl_channelwise_row *r, const float *y, int64_t c, uint32_t tail,
                         const int vectors, VEC sum[SHARED_VECTORS])
{
    const float *from = r->start == TCTL_GEMM_C ? y : r->bias + c;
    UNROLL
    for (int j = 0; j < vectors; j++)
        sum[j] = r->start == TCTL_GEMM_ZERO ? VZERO() : load(from + j * LANES, j == vectors - 1 ? tail : 0);
}

/* `tail` cuts the last vector. */
INLINE void shared_tile(const tctl_channelwise_row *r, int64_t p, int64_t c, uint32_t tail,
                        const int positions, const int vectors)
{
    const ptrdiff_t step = r->x_step;
    const int64_t weights_row = tctl_channelwise_stride(r->channels);
    const float *x = r->x + p * step, *weights = r->weights + c;
    float *y = r->y + p * r->y_step + c;
    VEC sum[SHARED_POSITIONS][SHARED_VECTORS];
    UNROLL
    for (int i = 0; i < positions; i++)
        begin_shared(r, y + i * r->y_step, c, tail, vectors, sum[i]);
    for (int64_t t = 0; t < r->n_terms; t++, weights += weights_row) {
        const float *from = x + r->terms[t];
        VEC w[SHARED_VECTORS];
        UNROLL
        for (int j = 0; j < vectors; j++)
            w[j] = VLOAD(weights + j * LANES);
        UNROLL
        for (int i = 0; i < positions; i++) {
            const VEC one = VSPLAT(from[i * step]);
            UNROLL
            for (int j = 0; j < vectors; j++)
                sum[i][j] = VFMA(one, w[j], sum[i][j]);
        }
    }
    UNROLL
    for (int i = 0; i < positions; i++) {
        UNROLL
        for (int j = 0; j < vectors; j++)
            store(y + i * r->y_step + j * LANES, j == vectors - 1 ? tail : 0, sum[i][j]);
    }
}

#define SHARED_TILE(n, v)                                                                                    \
    static void shared_tile_##n##_##v(const tctl_channelwise_row *r, int64_t p, int64_t c, uint32_t tail)    \
    {                                                                                                        \
        shared_tile(r, p, c, tail, n, v);                                                                    \
    }
SHARED_TILE(1, 1)
SHARED_TILE(2, 1)
SHARED_TILE(3, 1)
SHARED_TILE(4, 1)
SHARED_TILE(5, 1)
SHARED_TILE(6, 1)
SHARED_TILE(1, 2)
SHARED_TILE(2, 2)
SHARED_TILE(3, 2)
SHARED_TILE(4, 2)
SHARED_TILE(5, 2)
SHARED_TILE(6, 2)

static row_tile_fn *const shared_tiles[SHARED_VECTORS][SHARED_POSITIONS] = {
    {shared_tile_1_1, shared_tile_2_1, shared_tile_3_1, shared_tile_4_1, shared_tile_5_1, shared_tile_6_1},
    {shared_tile_1_2, shared_tile_2_2, shared_tile_3_2, shared_tile_4_2, shared_tile_5_2, shared_tile_6_2}};

static void shared_row(const tctl_channelwise_row *r)
{
    const int64_t parts = (r->n + SHARED_POSITIONS - 1) / SHARED_POSITIONS;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t p = r->n * i / parts, positions = r->n * (i + 1) / parts - p;
        for (int64_t c = 0; c < r->channels; c += SHARED_VECTORS * LANES) {
            const int64_t left = r->channels - c;
            const int vectors = left > LANES ? 2 : 1;
            const uint32_t tail = left < vectors * LANES ? (uint32_t)(left % LANES) : 0;
            shared_tiles[vectors - 1][positions - 1](r, p, c, tail);
        }
    }
}

/* ---- chains over positions ----------------------------------------------------------------------------- */

/* `terms` terms from t on, a vector of channels from c on. */
INLINE void sums_tile(const tctl_channelwise_sums *s, int64_t t, int64_t c, uint32_t tail, const int terms)
{
    float *sums = s->sums + t * s->channels + c;
    const float *dy = s->dy + c;
    VEC sum[MAX_TERMS];
    UNROLL
    for (int i = 0; i < terms; i++)
        sum[i] = load(sums + i * s->channels, tail);
    for (int64_t r = 0; r < s->rows; r++) {
        const float *x[MAX_TERMS];
        UNROLL
        for (int i = 0; i < terms; i++)
            x[i] = s->x + s->terms[t + i] + r * s->x_row + c;
        for (int64_t p = 0, at = 0; p < s->n; p++, at += s->x_step, dy += s->channels) {
            const VEC d = load(dy, tail);
            UNROLL
            for (int i = 0; i < terms; i++)
                sum[i] = VFMA(VLOAD(x[i] + at), d, sum[i]);
        }
    }
    UNROLL
    for (int i = 0; i < terms; i++)
        store(sums + i * s->channels, tail, sum[i]);
}

typedef void sums_tile_fn(const tctl_channelwise_sums *, int64_t t, int64_t c, uint32_t tail);

#define SUMS_TILE(n)                                                                                         \
    static void sums_tile_##n(const tctl_channelwise_sums *s, int64_t t, int64_t c, uint32_t tail)           \
    {                                                                                                        \
        sums_tile(s, t, c, tail, n);                                                                         \
    }
SUMS_TILE(1)
SUMS_TILE(2)
SUMS_TILE(3)
SUMS_TILE(4)
SUMS_TILE(5)
SUMS_TILE(6)
SUMS_TILE(7)
SUMS_TILE(8)
SUMS_TILE(9)
SUMS_TILE(10)
SUMS_TILE(11)
SUMS_TILE(12)

static sums_tile_fn *const sums_tiles[] = {sums_tile_1, sums_tile_2,  sums_tile_3,  sums_tile_4,
                                           sums_tile_5, sums_tile_6,  sums_tile_7,  sums_tile_8,
                                           sums_tile_9, sums_tile_10, sums_tile_11, sums_tile_12};

static void sums(const tctl_channelwise_sums *s)
{
    const int64_t parts = (s->n_terms + MAX_TERMS - 1) / MAX_TERMS;
    for (int64_t c = 0; c < s->channels; c += LANES) {
        const uint32_t tail = c + LANES > s->channels ? (uint32_t)(s->channels - c) : 0;
        for (int64_t i = 0; i < parts; i++) {
            const int64_t t = s->n_terms * i / parts;
            sums_tiles[s->n_terms * (i + 1) / parts - t - 1](s, t, c, tail);
        }
    }
}

const tctl_channelwise CHANNELWISE_TABLE = {row, shared_row, sums};
