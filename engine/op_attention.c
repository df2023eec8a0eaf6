/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention: Vaswani et al., "Attention Is All You Need", 2017, equation 1, for each sample and head by itself:
 *
 *     s_ij = chain from +0 over the head's d features: fma(q_i, k_j, c)
 *     p_ij = e_ij * (1 / rowsum e_i),   e_ij = exp(s_ij * a - max over j of s_ij * a),   a = 1 / sqrt(d)
 *     y_i  = chain from +0 over j:  fma(p_ij, v_j, c)
 *
 *     dp_ij = chain from +0 over features: fma(dy_i, v_j, c)
 *     g_ij  = (p_ij * (dp_ij - rowsum over j of p_ij * dp_ij)) * a
 *     dq_i = chain from +0 over j: fma(g_ij, k_j, c)      dk_j = chain from +0 over i: fma(g_ij, q_i, c)
 *     dv_j = chain from +0 over i: fma(p_ij, dy_i, c)
 *
 * With `causal`, position i sees j <= i: maximum and row sums are over those. The chains over j go on to the end of i's
 * block of CAUSAL_ROWS positions, with p = g = +0 beyond i, and those over i begin with j's block. That is part of the
 * contract (docs/numerics.md), and lets all products be matrix products.
 *
 * Scores exist for a few rows at a time: the forward keeps two numbers per row, from which the backward makes the same p
 * again. The input is q, k and v side by side, [positions, 3 * features], or three inputs.
 */
#include <math.h>

#include "engine/math/math.h"
#include "engine/op.h"

enum {
    CAUSAL_ROWS = 16,    /* contract */
    BLOCK_FLOATS = 4096, /* scores of a block; with MIN_ROWS decides the time only */
    MIN_ROWS = 24
};

typedef struct plan {
    int64_t positions, features, heads, depth; /* depth: features of a head */
    bool causal;
    float scale;
    int64_t rows; /* of a block */
} plan;

static tctl_status check(const tctl_operation *self, plan *p, tctl_error *err)
{
    char text_a[TCTL_OP_TEXT], text_b[TCTL_OP_TEXT];
    const tctl_shape *in = self->in;
    if (self->n_inputs == 2)
        return tctl_op_fail(self, err,
                            "has 2 inputs; it takes one with q, k and v side by side, or these three");
    for (uint32_t j = 0; j < self->n_inputs; j++) {
        if (in[j].rank != 2)
            return tctl_op_fail(self, err, "needs a sequence [positions, features]; its input is %s",
                                tctl_shape_text(&in[j], text_a));
        if (in[j].height != in[0].height || in[j].channels != in[0].channels)
            return tctl_op_fail(self, err, "its inputs have different shapes, %s and %s",
                                tctl_shape_text(&in[0], text_a), tctl_shape_text(&in[j], text_b));
    }
    if (self->n_inputs == 1 && in[0].channels % 3 != 0)
        return tctl_op_fail(self, err, "its input has %lld features; q, k and v need a multiple of 3",
                            (long long)in[0].channels);
    p->features = self->n_inputs == 1 ? in[0].channels / 3 : in[0].channels;
    if (p->features % p->heads != 0)
        return tctl_op_fail(self, err, "heads %lld does not divide the %lld features", (long long)p->heads,
                            (long long)p->features);
    return TCTL_OK;
}

/* Blocks of nearly equal height. */
static int64_t rows_of_block(const plan *p)
{
    const int64_t t = p->positions, most = BLOCK_FLOATS / t > MIN_ROWS ? BLOCK_FLOATS / t : MIN_ROWS;
    const int64_t blocks = (t + most - 1) / most;
    return p->causal ? CAUSAL_ROWS : (t + blocks - 1) / blocks;
}

static size_t packed(const tctl_op_site *site, int64_t k, int64_t n)
{
    return tctl_gemm_packed_floats(site->simd, (size_t)k, (size_t)n);
}

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_int(self, "heads", &p->heads, err);
    if (!st)
        st = tctl_op_bool(self, "causal", &p->causal, err);
    if (!st)
        st = check(self, p, err);
    if (st)
        return st;
    const int64_t t = p->positions = self->in[0].height, d = p->depth = p->features / p->heads;
    p->scale = (float)(1 / sqrt((double)d));
    p->rows = rows_of_block(p);
    self->plan = p;
    self->out = (tctl_shape){2, t, 1, p->features};
    self->saved_bytes = 2 * (size_t)(t * p->heads) * site->max_batch * sizeof(float);
    self->scratch_floats = 2 * packed(site, d, t) + packed(site, t, d) + packed(site, p->rows, d) +
                           (size_t)(2 * p->rows * t + (p->rows + 2 * t) * d);
    return TCTL_OK;
}

/* ---- one head of one sample ---------------------------------------------------------------------------- */

/* One head's rows of q, k, v or dy. */
typedef struct rows {
    const float *data;
    int64_t stride;
} rows;

/* The same of y, dq, dk or dv. */
typedef struct target {
    float *data; /* NULL: nobody needs it */
    int64_t stride;
    bool add;
} target;

typedef struct head {
    const tctl_op_call *call;
    const plan *p;
    const tctl_math *math;
    rows q, k, v;
    float *saved; /* [positions][2] */
    float *memory;
} head;

static size_t pack(const head *h, const tctl_gemm_matrix *b, int64_t k, int64_t n, float *to)
{
    const tctl_simd *simd = h->call->simd;
    for (size_t panel = 0; panel < tctl_gemm_panels(simd, (size_t)n); panel++)
        tctl_gemm_pack(simd, b, (size_t)k, (size_t)n, panel,
                       to + panel * (size_t)k * tctl_gemm_panel_columns(simd));
    return tctl_gemm_packed_floats(simd, (size_t)k, (size_t)n);
}

static size_t pack_plain(const head *h, const rows *from, int64_t first, int64_t k, float *to)
{
    const tctl_gemm_matrix b = {from->data + first * from->stride, (ptrdiff_t)from->stride, 1};
    return pack(h, &b, k, h->p->depth, to);
}

static size_t pack_transposed(const head *h, const rows *from, float *to)
{
    const tctl_gemm_matrix b = {from->data, 1, (ptrdiff_t)from->stride};
    return pack(h, &b, h->p->depth, h->p->positions, to);
}

/* A matrix whose panels were packed, of which a product may take the first rows and columns only. */
typedef struct panels {
    const float *data;
    int64_t k, n;
} panels;

/* C[m, n] from A[m, k] and the first k rows of B. n is B's, or less by whole panels. */
static void multiply(const head *h, const tctl_gemm_matrix *a, int64_t m, int64_t n, int64_t k,
                     const panels *b, float *c, size_t c_row, tctl_gemm_start start)
{
    static const ptrdiff_t here = 0;
    const tctl_simd *simd = h->call->simd;
    const int64_t columns = (int64_t)tctl_gemm_panel_columns(simd);
    for (int64_t j = 0; j < n; j += columns) {
        const tctl_gemm_strip_call product = {
            .simd = simd,
            .m = (size_t)m,
            .n = (size_t)(columns < n - j ? columns : n - j),
            .k = (size_t)k,
            .segments = &here,
            .n_segments = 1,
            .a = *a,
            .b = b->data + j * b->k,
            .b_row = tctl_gemm_panel_stride(simd, (size_t)b->n, (size_t)(j / columns)),
            .c = c + j,
            .c_row = c_row,
            .start = start};
        tctl_gemm_strip(&product);
    }
}

/* Where a head's rows begin in a tensor whose rows are `stride` long and have the head's features behind `at`. A chunk
 * is a head of a sample. */
static int64_t begin_of(const plan *p, uint64_t chunk, int64_t stride, int64_t at)
{
    const int64_t sample = (int64_t)chunk / p->heads, number = (int64_t)chunk % p->heads;
    return sample * p->positions * stride + at + number * p->depth;
}

/* q, k or v: parts of one input, or inputs of their own. */
static rows input_rows(const tctl_operation *self, uint64_t chunk, uint32_t which)
{
    const plan *p = self->plan;
    const uint32_t j = self->n_inputs == 1 ? 0 : which;
    const int64_t stride = self->in[j].channels, at = self->n_inputs == 1 ? which * p->features : 0;
    return (rows){self->x[j] + begin_of(p, chunk, stride, at), stride};
}

static target gradient_rows(const tctl_operation *self, uint64_t chunk, uint32_t which)
{
    const plan *p = self->plan;
    const uint32_t j = self->n_inputs == 1 ? 0 : which;
    const int64_t stride = self->in[j].channels, at = self->n_inputs == 1 ? which * p->features : 0;
    if (!self->dx[j])
        return (target){0};
    return (target){self->dx[j] + begin_of(p, chunk, stride, at), stride, self->add_dx[j]};
}

static head head_of(const tctl_op_call *call, uint64_t chunk, uint32_t thread)
{
    const tctl_operation *self = call->self;
    const plan *p = self->plan;
    return (head){.call = call,
                  .p = p,
                  .math = tctl_math_of(call->simd),
                  .q = input_rows(self, chunk, 0),
                  .k = input_rows(self, chunk, 1),
                  .v = input_rows(self, chunk, 2),
                  .saved = (float *)self->saved + 2 * (int64_t)chunk * p->positions,
                  .memory = tctl_op_scratch(call, thread)};
}

/* Rows first.. of the scores, `shape.rows` of them. Columns 0..end-1 are needed, and there are `shape.columns`: what
 * whole panels of the product have. */
typedef struct block {
    int64_t first, end;
    tctl_scores shape;
} block;

static block block_at(const head *h, int64_t first)
{
    const plan *p = h->p;
    const int64_t last = first + p->rows < p->positions ? first + p->rows : p->positions;
    const int64_t panel = (int64_t)tctl_gemm_panel_columns(h->call->simd);
    block b = {.first = first, .end = p->causal ? last : p->positions};
    const int64_t whole = (b.end + panel - 1) / panel * panel;
    b.shape = (tctl_scores){.rows = last - first,
                            .columns = whole < p->positions ? whole : p->positions,
                            .live = p->causal ? first + 1 : p->positions,
                            .live_step = p->causal,
                            .scale = p->scale};
    return b;
}

/* a[block's rows] times the packed transpose of k or v. */
static void multiply_rows(const head *h, const block *b, const rows *a, const float *transposed, float *out)
{
    const plan *p = h->p;
    const tctl_gemm_matrix left = {a->data + b->first * a->stride, (ptrdiff_t)a->stride, 1};
    const panels right = {transposed, p->depth, p->positions};
    multiply(h, &left, b->shape.rows, b->shape.columns, p->depth, &right, out, (size_t)b->shape.columns,
             TCTL_GEMM_ZERO);
}

/* ---- forward ------------------------------------------------------------------------------------------- */

static void forward_head(void *arg, uint64_t chunk, uint32_t thread)
{
    const tctl_op_call *call = arg;
    const head h = head_of(call, chunk, thread);
    const plan *p = h.p;
    float *y = call->self->y + begin_of(p, chunk, p->features, 0);
    float *keys = h.memory, *values = keys + pack_transposed(&h, &h.k, keys);
    float *scores = values + pack_plain(&h, &h.v, 0, p->positions, values);
    const panels right = {values, p->positions, p->depth};
    for (int64_t first = 0; first < p->positions; first += p->rows) {
        const block b = block_at(&h, first);
        multiply_rows(&h, &b, &h.q, keys, scores);
        h.math->softmax(&b.shape, scores, h.saved + 2 * first);
        const tctl_gemm_matrix left = {scores, (ptrdiff_t)b.shape.columns, 1};
        multiply(&h, &left, b.shape.rows, p->depth, b.end, &right, y + first * p->features,
                 (size_t)p->features, TCTL_GEMM_ZERO);
    }
}

static uint64_t chunks(const tctl_op_call *call)
{
    return (uint64_t)(call->n * ((const plan *)call->self->plan)->heads);
}

static void forward(const tctl_op_call *call)
{
    tctl_op_call copy = *call;
    tctl_pool_run(call->pool, chunks(call), forward_head, &copy);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

/* out[j] goes on with the terms of the block's rows: its weights' columns times rows of q or dy. */
static void add_columns(const head *h, const block *b, const float *weights, const rows *from, float *room,
                        const target *out)
{
    const tctl_gemm_matrix left = {weights, 1, (ptrdiff_t)b->shape.columns};
    const panels right = {room, b->shape.rows, h->p->depth};
    pack_plain(h, from, b->first, b->shape.rows, room);
    multiply(h, &left, b->end, h->p->depth, b->shape.rows, &right, out->data, (size_t)out->stride,
             TCTL_GEMM_C);
}

/* The parts of a thread's memory in a backward. */
typedef struct workspace {
    float *keys, *values; /* transposed */
    float *plain_keys, *p, *g, *packed, *dq, *dk, *dv;
} workspace;

static workspace lay_out(const head *h)
{
    const plan *p = h->p;
    workspace w;
    w.keys = h->memory;
    w.values = w.keys + pack_transposed(h, &h->k, w.keys);
    w.plain_keys = w.values + pack_transposed(h, &h->v, w.values);
    w.p = w.plain_keys + pack_plain(h, &h->k, 0, p->positions, w.plain_keys);
    w.g = w.p + p->rows * p->positions;
    w.packed = w.g + p->rows * p->positions;
    w.dq = w.packed + tctl_gemm_packed_floats(h->call->simd, (size_t)p->rows, (size_t)p->depth);
    w.dk = w.dq + p->rows * p->depth;
    w.dv = w.dk + p->positions * p->depth;
    return w;
}

/* Where a gradient is computed: where it belongs, or in `room` if it must be added to what is there, or nobody needs it. */
static target place(const plan *p, const target *to, float *room)
{
    return to->data && !to->add ? *to : (target){room, p->depth, false};
}

static void clear(const plan *p, const target *t)
{
    for (int64_t r = 0; r < p->positions; r++)
        memset(t->data + r * t->stride, 0, (size_t)p->depth * sizeof(float));
}

static void add_rows(const plan *p, const target *from, int64_t n, const target *to, int64_t first)
{
    for (int64_t r = 0; to->data && to->add && r < n; r++) {
        const float *d = from->data + r * from->stride;
        float *dx = to->data + (first + r) * to->stride;
        for (int64_t c = 0; c < p->depth; c++)
            dx[c] += d[c];
    }
}

/* Gradients of q, k and v: where they belong. */
typedef struct targets {
    target q, k, v;
} targets;

static void backward_block(const head *h, const workspace *w, const block *b, const rows *dy,
                           const targets *to)
{
    const plan *p = h->p;
    multiply_rows(h, b, &h->q, w->keys, w->p);
    multiply_rows(h, b, dy, w->values, w->g);
    h->math->softmax_again(&b->shape, h->saved + 2 * b->first, w->p);
    h->math->softmax_gradient(&b->shape, w->p, w->g);
    const tctl_gemm_matrix left = {w->g, (ptrdiff_t)b->shape.columns, 1};
    const panels right = {w->plain_keys, p->positions, p->depth};
    target dq = place(p, &to->q, w->dq);
    if (dq.data != w->dq)
        dq.data += b->first * dq.stride;
    multiply(h, &left, b->shape.rows, p->depth, b->end, &right, dq.data, (size_t)dq.stride, TCTL_GEMM_ZERO);
    add_rows(p, &dq, b->shape.rows, &to->q, b->first);
    const target dk = place(p, &to->k, w->dk), dv = place(p, &to->v, w->dv);
    add_columns(h, b, w->g, &h->q, w->packed, &dk);
    add_columns(h, b, w->p, dy, w->packed, &dv);
}

static void backward_head(void *arg, uint64_t chunk, uint32_t thread)
{
    const tctl_op_call *call = arg;
    const tctl_operation *self = call->self;
    const head h = head_of(call, chunk, thread);
    const plan *p = h.p;
    const rows dy = {self->dy + begin_of(p, chunk, p->features, 0), p->features};
    const targets to = {gradient_rows(self, chunk, 0), gradient_rows(self, chunk, 1),
                        gradient_rows(self, chunk, 2)};
    const workspace w = lay_out(&h);
    const target dk = place(p, &to.k, w.dk), dv = place(p, &to.v, w.dv);
    clear(p, &dk);
    clear(p, &dv);
    for (int64_t first = 0; first < p->positions; first += p->rows) {
        const block b = block_at(&h, first);
        backward_block(&h, &w, &b, &dy, &to);
    }
    add_rows(p, &dk, p->positions, &to.k, 0);
    add_rows(p, &dv, p->positions, &to.v, 0);
}

static void backward(const tctl_op_call *call)
{
    tctl_op_call copy = *call;
    if (call->self->dx[0] || call->self->dx[1] || call->self->dx[2])
        tctl_pool_run(call->pool, chunks(call), backward_head, &copy);
}

const tctl_op tctl_op_attention = {
    .schema = &tctl_network_op_table[TCTL_OP_ATTENTION],
    .flags = TCTL_OP_KEEPS_INPUT,
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
