/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dweight and dbias of a linear operator: sums over all positions of the batch, by leaves and the tree (tree.h).
 *
 * Work is cut into columns, for wide inputs into rows of dweight, and into aligned runs of units that make whole subtrees.
 * A chunk packs its columns of some positions of dy, a panel at a time, and multiplies all its rows while the panel
 * is in the first-level cache. The bias is one more row: its terms are the panel itself. So dy is read once. How work is
 * cut cannot show.
 */
#include "engine/linear.h"

#include <string.h>

#include "engine/math/norm.h"

enum {
    POSITIONS = TCTL_CONV_LEAF_ROWS,    /* whose terms are added at once */
    COLUMNS = TCTL_CONV_DIRECT_COLUMNS, /* of a chunk */
    TILE_ROWS = 1024,                   /* of dweight, of a chunk at most */
    JOIN_GRAIN = 2048
};

typedef struct job {
    const tctl_op_call *call;
    const tctl_conv *c;
    int64_t units; /* of the batch */
    int64_t run;   /* units of one chunk: a power of two */
    int64_t runs, column_parts, row_parts;
} job;

/* One chunk's share. */
typedef struct share {
    const job *job;
    int64_t k0, k1, column, columns, run;
    bool bias; /* it has the row of the bias, behind the others */
    float *slots, *panel;
} share;

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t min_int(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rows_of_tile(const tctl_conv *c)
{
    return divide_up(c->k, divide_up(c->k, TILE_ROWS));
}

static size_t slot_floats(const tctl_conv *c)
{
    return (size_t)((rows_of_tile(c) + 1) * min_int(c->out, COLUMNS));
}

/* Rows of all partial sums: those of the weights, and the bias. */
static int64_t partial_rows(const tctl_conv *c)
{
    return c->k + c->bias;
}

void tctl_linear_plan(const tctl_op_site *site, tctl_operation *self)
{
    const tctl_conv *c = self->plan;
    const int64_t units = tctl_leaves_units(&c->leaves, site->max_batch);
    const size_t runs = (size_t)divide_up(units, tctl_conv_units_of_run(c, units));
    const size_t shared = runs * (size_t)(partial_rows(c) * c->out);
    const size_t scratch =
        tctl_tree_slots(&c->leaves, units) * slot_floats(c) + POSITIONS * tctl_gemm_panel_columns(site->simd);
    self->shared_floats = shared > self->shared_floats ? shared : self->shared_floats;
    self->scratch_floats = scratch > self->scratch_floats ? scratch : self->scratch_floats;
}

/* ---- one chunk ----------------------------------------------------------------------------------------- */

/* sums[n] goes on with the rows of the panel that was packed, or begins. */
static void add_bias(const share *s, const tctl_gemm_strip_call *panel, bool begin, float *sums)
{
    float padded[COLUMNS] = {0}; /* a panel has no more */
    if (!begin)
        memcpy(padded, sums, panel->n * sizeof *sums);
    tctl_norm_of(s->job->call->simd)->add_sums((int64_t)panel->k, (int64_t)panel->b_row, panel->b, padded);
    memcpy(sums, padded, panel->n * sizeof *sums);
}

/* Adds the terms of positions first..last-1 to the chains in out[rows, and the bias's][columns], or begins them. */
static void add_positions(const share *s, int64_t first, int64_t last, float *out, bool begin)
{
    static const ptrdiff_t here = 0;
    const tctl_op_call *call = s->job->call;
    const tctl_conv *c = s->job->c;
    const tctl_gemm_matrix dy = {call->self->dy + first * c->out + s->column, (ptrdiff_t)c->out, 1};
    const size_t columns = (size_t)s->columns, width = tctl_gemm_panel_columns(call->simd);
    for (size_t panel = 0; panel < tctl_gemm_panels(call->simd, columns); panel++) {
        const size_t j = panel * width;
        const tctl_gemm_strip_call product = {
            .simd = call->simd,
            .m = (size_t)(s->k1 - s->k0),
            .n = columns - j < width ? columns - j : width,
            .k = (size_t)(last - first),
            .segments = &here,
            .n_segments = 1,
            .a = {call->self->x[0] + first * c->in + s->k0, 1, (ptrdiff_t)c->in},
            .b = s->panel,
            .b_row = tctl_gemm_panel_stride(call->simd, columns, panel),
            .c = out + j,
            .c_row = columns,
            .start = begin ? TCTL_GEMM_ZERO : TCTL_GEMM_C};
        tctl_gemm_pack(call->simd, &dy, product.k, columns, panel, s->panel);
        tctl_gemm_strip(&product);
        if (s->bias)
            add_bias(s, &product, begin, out + (s->k1 - s->k0) * s->columns + j);
    }
}

static void sum_leaf(const share *s, int64_t unit, int64_t leaf, float *out)
{
    int64_t first, last;
    tctl_leaves_range(&s->job->c->leaves, s->job->call->n, unit, leaf, &first, &last);
    for (int64_t at = first; at < last; at += POSITIONS)
        add_positions(s, at, min_int(at + POSITIONS, last), out, at == first);
}

/* The subtree of the chunk's units, to its place among the partial sums. */
static void sum_run(const share *s)
{
    const tctl_conv *c = s->job->c;
    const int64_t first = s->run * s->job->run, last = min_int(first + s->job->run, s->job->units);
    const int64_t rows = s->k1 - s->k0 + s->bias;
    tctl_tree tree;
    tctl_tree_begin(&tree, s->slots, (size_t)(rows * s->columns));
    for (int64_t unit = first; unit < last; unit++) {
        for (int64_t leaf = 0; leaf < c->leaves.per_unit; leaf++) {
            sum_leaf(s, unit, leaf, tctl_tree_slot(&tree));
            tctl_tree_push(&tree);
        }
        tctl_tree_end_unit(&tree, &c->leaves);
    }
    const float *sums = tctl_tree_finish(&tree);
    float *partial = s->job->call->shared + (s->run * partial_rows(c) + s->k0) * c->out + s->column;
    for (int64_t k = 0; k < rows; k++)
        memcpy(partial + k * c->out, sums + k * s->columns, (size_t)s->columns * sizeof *sums);
}

/* Chunk: (run, columns, rows). The last rows have the bias behind them. */
static void gradient_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    const job *j = arg;
    const tctl_conv *c = j->c;
    const int64_t number = (int64_t)chunk, part = number % j->row_parts, rows = rows_of_tile(c);
    share s = {.job = j,
               .k0 = part * rows,
               .k1 = min_int(part * rows + rows, c->k),
               .column = number / j->row_parts % j->column_parts * COLUMNS,
               .run = number / j->row_parts / j->column_parts,
               .bias = c->bias && part == j->row_parts - 1};
    s.columns = min_int(COLUMNS, c->out - s.column);
    s.panel = tctl_op_scratch(j->call, thread);
    s.slots = s.panel + POSITIONS * tctl_gemm_panel_columns(j->call->simd);
    sum_run(&s);
}

/* ---- joining the runs ---------------------------------------------------------------------------------- */

/* Chunk: some elements of the partial sums of all runs, to the gradients of the weights and, behind them, of the bias. */
static void join_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const job *j = arg;
    const tctl_operation *self = j->call->self;
    const int64_t weights = j->c->k * j->c->out, total = partial_rows(j->c) * j->c->out;
    const int64_t first = (int64_t)chunk * JOIN_GRAIN, last = min_int(first + JOIN_GRAIN, total);
    float *sums = j->call->shared;
    tctl_tree_join(sums + first, j->runs, (size_t)total, (size_t)(last - first));
    if (first < weights)
        tctl_op_store_gradient(j->call, self->grad[0] + first, sums + first, min_int(last, weights) - first);
    if (last > weights) {
        const int64_t begin = first > weights ? first : weights;
        tctl_op_store_gradient(j->call, self->grad[1] + (begin - weights), sums + begin, last - begin);
    }
}

void tctl_linear_weight_gradient(const tctl_op_call *call)
{
    const tctl_conv *c = call->self->plan;
    job j = {.call = call, .c = c, .units = tctl_leaves_units(&c->leaves, call->n)};
    j.run = tctl_conv_units_of_run(c, j.units);
    j.runs = divide_up(j.units, j.run);
    j.column_parts = divide_up(c->out, COLUMNS);
    j.row_parts = divide_up(c->k, rows_of_tile(c));
    tctl_pool_run(call->pool, (uint64_t)(j.runs * j.column_parts * j.row_parts), gradient_chunk, &j);
    tctl_pool_run(call->pool, (uint64_t)divide_up(partial_rows(c) * c->out, JOIN_GRAIN), join_chunk, &j);
}
