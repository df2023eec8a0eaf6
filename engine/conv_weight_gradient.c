/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dweight and dbias of a convolution: sums over all positions of the batch, by leaves and the tree (tree.h).
 *
 * Work is cut three ways: into rows of dweight, into channel groups, and into aligned runs of units that make whole
 * subtrees. A chunk goes through its units in order with a binary counter of partial sums, and leaves the root of
 * its subtree; the roots are joined at the end. How long the runs are depends on memory, and cannot show.
 */
#include "engine/conv.h"
#include "engine/reduce.h"

typedef struct weight_job {
    const tctl_op_call *call;
    int64_t units; /* of the batch */
    int64_t run;   /* units of one chunk: a power of two */
    int64_t runs;
    int64_t k_parts;
} weight_job;

/* One chunk's share. */
typedef struct share {
    const weight_job *job;
    const tctl_conv *c;
    int64_t group, column, columns, k0, k1, run; /* column: of all groups */
    float *slots;
    float *patches, *gemm_scratch; /* without strips */
    float *panel, *band;           /* with strips; the second also channel by channel */
} share;

/* Adds the terms of positions row0..row1-1 to the chains in `out`, or begins them. */
static void multiply(const share *s, int64_t row0, int64_t row1, float *out, bool begin)
{
    const tctl_op_call *call = s->job->call;
    const tctl_conv *c = s->c;
    const float *x = call->self->x[0];
    tctl_gemm_matrix a = {x + row0 * c->in + s->k0, 1, (ptrdiff_t)c->in};
    if (!c->direct) {
        tctl_channels channels = {c->in, s->group * c->in_group, c->in_group};
        size_t stride = tctl_patches_stride(s->k1 - s->k0);
        tctl_patches_gather(&c->window, x, &channels, row0, row1, s->k0, s->k1, s->patches, stride);
        a = (tctl_gemm_matrix){s->patches, 1, (ptrdiff_t)stride};
    }
    tctl_gemm_call product = {
        .simd = call->simd,
        .m = (size_t)(s->k1 - s->k0),
        .n = (size_t)s->columns,
        .k = (size_t)(row1 - row0),
        .a = a,
        .b = {call->self->dy + row0 * c->out + s->column, (ptrdiff_t)c->out, 1},
        .c = out,
        .c_row = (size_t)s->columns,
        .start = begin ? TCTL_GEMM_ZERO : TCTL_GEMM_C,
        .scratch = s->gemm_scratch,
    };
    tctl_gemm(&product);
}

void tctl_conv_add_rows(const tctl_op_call *call, const tctl_conv_rows *r, float *out, bool begin)
{
    const tctl_conv *c = call->self->plan;
    const tctl_strips *f = &c->forward;
    const size_t n = (size_t)r->columns, width = (size_t)f->out_width;
    for (size_t panel = 0; panel < tctl_gemm_panels(call->simd, n); panel++) {
        const size_t columns = tctl_gemm_panel_columns(call->simd), j = panel * columns;
        const size_t stride = tctl_gemm_panel_stride(call->simd, n, panel);
        for (int64_t y = 0; y < r->rows; y++) {
            const tctl_gemm_matrix b = {r->dy + y * r->dy_row, (ptrdiff_t)c->out, 1};
            tctl_gemm_pack(call->simd, &b, width, n, panel, r->panel + (size_t)y * width * stride);
        }
        tctl_gemm_strip_call strip = {.simd = call->simd,
                                      .n = n - j < columns ? n - j : columns,
                                      .k = width,
                                      .segments = c->weight_segments,
                                      .n_segments = (size_t)r->rows,
                                      .a = {NULL, 1, (ptrdiff_t)(f->stride * f->channels)},
                                      .b = r->panel,
                                      .b_row = stride,
                                      .c_row = n,
                                      .start = begin ? TCTL_GEMM_ZERO : TCTL_GEMM_C};
        for (int64_t k = r->k0, end; k < r->k1; k = end) {
            const int64_t run = (int64_t)f->k, segment = k / run;
            end = (segment + 1) * run < r->k1 ? (segment + 1) * run : r->k1;
            strip.m = (size_t)(end - k);
            strip.a.data = r->band + f->segments[segment] + k % run;
            strip.c = out + (size_t)(k - r->k0) * n + j;
            tctl_gemm_strip(&strip);
        }
    }
}

/* The same for some rows of outputs of one sample, whose band is read where it lies. */
static void multiply_strips(const share *s, int64_t sample, int64_t row0, int64_t rows, float *out,
                            bool begin)
{
    const tctl_op_call *call = s->job->call;
    const tctl_strips *f = &s->c->forward;
    const float *image = call->self->x[0] + sample * f->height * f->width * s->c->in;
    const float *dy = call->self->dy + (sample * f->out_height + row0) * f->out_width * s->c->out;
    const tctl_conv_rows r = {.band = tctl_strips_band(f, image, s->group, row0, rows, s->band),
                              .dy = dy + s->column,
                              .dy_row = f->out_width * s->c->out,
                              .rows = rows,
                              .k0 = s->k0,
                              .k1 = s->k1,
                              .columns = s->columns,
                              .panel = s->panel};
    tctl_conv_add_rows(call, &r, out, begin);
}

static void sum_leaf_strips(const share *s, int64_t first, int64_t last, float *out)
{
    const int64_t height = s->c->window.out_height, width = s->c->window.out_width;
    for (int64_t row = first / width, end; row < last / width; row = end) {
        end = (row / height + 1) * height < last / width ? (row / height + 1) * height : last / width;
        end = row + s->c->weight_rows < end ? row + s->c->weight_rows : end;
        multiply_strips(s, row / height, row % height, end - row, out, row == first / width);
    }
}

static void sum_leaf(const share *s, int64_t unit, int64_t leaf, float *out)
{
    int64_t first, last;
    tctl_leaves_range(&s->c->leaves, s->job->call->n, unit, leaf, &first, &last);
    if (s->c->channelwise_weights) {
        tctl_conv_channelwise_leaf(s->job->call, &s->c->channelwise_plan, first, last, out, s->band);
        return;
    }
    if (s->c->strips) {
        sum_leaf_strips(s, first, last, out);
        return;
    }
    for (int64_t row = first; row < last; row += TCTL_CONV_LEAF_ROWS)
        multiply(s, row, row + TCTL_CONV_LEAF_ROWS < last ? row + TCTL_CONV_LEAF_ROWS : last, out,
                 row == first);
}

/* The subtree of the chunk's units, to its place among the partial sums. */
static void sum_run(const share *s)
{
    const tctl_conv *c = s->c;
    const int64_t first = s->run * s->job->run, last = first + s->job->run;
    tctl_tree tree;
    tctl_tree_begin(&tree, s->slots, (size_t)((s->k1 - s->k0) * s->columns));
    for (int64_t unit = first; unit < last && unit < s->job->units; unit++) {
        for (int64_t leaf = 0; leaf < c->leaves.per_unit; leaf++) {
            sum_leaf(s, unit, leaf, tctl_tree_slot(&tree));
            tctl_tree_push(&tree);
        }
        tctl_tree_end_unit(&tree, &c->leaves);
    }
    const float *sums = tctl_tree_finish(&tree);
    float *partial = s->job->call->shared + s->run * c->k * c->out + s->column;
    for (int64_t k = s->k0; k < s->k1; k++)
        memcpy(partial + k * c->out, sums + (k - s->k0) * s->columns, (size_t)s->columns * sizeof *sums);
}

/* Chunk: (run, group, part of the columns, part of the rows). */
static void weight_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    const weight_job *job = arg;
    const tctl_conv *c = job->call->self->plan;
    const int64_t number = (int64_t)chunk, part = number % job->k_parts, of_run = number / job->k_parts;
    const int64_t group_columns = c->out / c->weight_groups, j = of_run % c->weight_parts * c->weight_columns;
    share s = {.job = job, .c = c, .k0 = part * c->k_grain};
    s.group = of_run / c->weight_parts % c->weight_groups;
    s.column = s.group * group_columns + j;
    s.columns = group_columns - j < c->weight_columns ? group_columns - j : c->weight_columns;
    s.k1 = s.k0 + c->k_grain < c->k ? s.k0 + c->k_grain : c->k;
    s.run = of_run / c->weight_parts / c->weight_groups;
    s.slots = tctl_op_scratch(job->call, thread);
    const size_t slots = tctl_tree_slots(&c->leaves, job->units);
    s.gemm_scratch = s.panel = s.slots + slots * (size_t)(c->k_grain * c->weight_columns);
    s.patches = s.gemm_scratch + tctl_gemm_scratch_floats(job->call->simd);
    s.band = s.panel;
    if (c->strips)
        s.band += (size_t)(c->weight_rows * c->window.out_width) * tctl_gemm_panel_columns(job->call->simd);
    sum_run(&s);
}

/* ---- joining the runs ---------------------------------------------------------------------------------- */

void tctl_op_store_gradient(const tctl_op_call *call, float *grad, const float *value, int64_t n)
{
    if (call->batch->accumulate) {
        for (int64_t i = 0; i < n; i++)
            grad[i] += value[i];
    } else {
        memcpy(grad, value, (size_t)n * sizeof *grad);
    }
}

enum { JOIN_GRAIN = 2048 };

typedef struct join {
    const tctl_op_call *call;
    float *partials;
    int64_t runs, total;
} join;

static void join_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const join *j = arg;
    const int64_t first = (int64_t)chunk * JOIN_GRAIN;
    const int64_t n = first + JOIN_GRAIN < j->total ? JOIN_GRAIN : j->total - first;
    tctl_tree_join(j->partials + first, j->runs, (size_t)j->total, (size_t)n);
    tctl_op_store_gradient(j->call, j->call->self->grad[0] + first, j->partials + first, n);
}

void tctl_conv_join_runs(const tctl_op_call *call, float *partials, int64_t runs)
{
    const tctl_conv *c = call->self->plan;
    join j = {call, partials, runs, c->k * c->out};
    tctl_pool_run(call->pool, (uint64_t)((j.total + JOIN_GRAIN - 1) / JOIN_GRAIN), join_chunk, &j);
}

int64_t tctl_conv_units_of_run(const tctl_conv *c, int64_t units)
{
    int64_t run = 1;
    while ((units + run - 1) / run > c->max_unit_groups)
        run *= 2;
    return run;
}

void tctl_conv_weight_gradient(const tctl_op_call *call)
{
    const tctl_conv *c = call->self->plan;
    weight_job job = {.call = call, .units = tctl_leaves_units(&c->leaves, call->n)};
    job.run = tctl_conv_units_of_run(c, job.units);
    job.runs = (job.units + job.run - 1) / job.run;
    job.k_parts = (c->k + c->k_grain - 1) / c->k_grain;
    tctl_pool_run(call->pool, (uint64_t)(job.runs * c->weight_groups * c->weight_parts * job.k_parts),
                  weight_chunk, &job);
    tctl_conv_join_runs(call, call->shared, job.runs);
    if (c->bias) {
        tctl_column_sums sums = {.call = call,
                                 .leaves = c->leaves,
                                 .channels = c->out,
                                 .n_sums = 1,
                                 .leaf = tctl_leaf_sum,
                                 .x = call->self->dy};
        tctl_column_sums_run(&sums, call->shared);
        tctl_op_store_gradient(call, call->self->grad[1], call->shared, c->out);
    }
}

void tctl_conv_backward(const tctl_op_call *call)
{
    if (call->self->lender) {
        tctl_conv_backward_borrowed(call);
        return;
    }
    tctl_conv_weight_gradient(call);
    if (call->self->dx[0])
        tctl_conv_input_gradient(call);
}
