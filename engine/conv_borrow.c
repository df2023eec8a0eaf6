/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backward of a convolution in front of a batch-norm, whose gradient is never stored: it is made image by image, in
 * the place where the input gradient wants it (a band with a border of zeros), and serves both gradients while it is in
 * the second-level cache. Chains, leaves and tree are those of conv_weight_gradient.c and conv_input_gradient.c.
 *
 * For layers whose images and weights are small enough for that; the others are bound by arithmetic anyway.
 */
#include "engine/batchnorm.h"
#include "engine/conv.h"

enum { MAX_WEIGHTS = 1 << 15 };

typedef struct borrow_job {
    const tctl_op_call *call;
    tctl_op_call lender;       /* the same call of the batch-norm */
    tctl_normalization before; /* of x; without channels: none */
    tctl_strips_job input;
    float *partials;
    int64_t units, run;
} borrow_job;

/* A thread's memory. */
typedef struct room {
    float *slots, *panel, *x, *dy, *row;
} room;

/* ---- the plan ------------------------------------------------------------------------------------------ */

static size_t slots_floats(const tctl_conv *c, int64_t units)
{
    return tctl_tree_slots(&c->leaves, units) * (size_t)(c->k * c->out);
}

static size_t panel_floats(const tctl_simd *simd, const tctl_conv *c)
{
    return (size_t)(c->weight_rows * c->window.out_width) * tctl_gemm_panel_columns(simd);
}

static size_t band_floats(const tctl_strips *s)
{
    return (size_t)((s->height + 2 * s->pad) * tctl_strips_band_row(s));
}

bool tctl_conv_borrows(const tctl_simd *simd, tctl_operation *self, uint32_t max_batch, uint32_t threads)
{
    const tctl_conv *c = self->plan;
    const int64_t units = tctl_leaves_units(&c->leaves, max_batch);
    if (c->groups > 1 || !c->strips || !c->strips_back || c->bias || c->leaves.per_unit > 1 ||
        c->k * c->out > MAX_WEIGHTS || c->forward.rows < c->forward.out_height ||
        c->input_gradient.rows < c->input_gradient.out_height ||
        units / tctl_conv_units_of_run(c, units) < threads)
        return false;
    const size_t scratch = slots_floats(c, units) + panel_floats(simd, c) + band_floats(&c->forward) +
                           band_floats(&c->input_gradient) + (size_t)(c->window.out_width * c->out);
    const size_t shared =
        tctl_gemm_packed_floats(simd, (size_t)(c->window.kernel * c->window.kernel * c->out), (size_t)c->in) +
        (size_t)(c->max_unit_groups * c->k * c->out);
    self->scratch_floats = scratch > self->scratch_floats ? scratch : self->scratch_floats;
    self->shared_floats = shared > self->shared_floats ? shared : self->shared_floats;
    return true;
}

/* ---- one image ----------------------------------------------------------------------------------------- */

static void borrow_image(const borrow_job *job, int64_t sample, const room *m)
{
    const tctl_conv *c = job->call->self->plan;
    const tctl_strips *s = &c->input_gradient;
    float *row = m->dy + s->pad * tctl_strips_band_row(s) + s->pad * s->channels;
    for (int64_t y = 0; y < s->height; y++, row += tctl_strips_band_row(s))
        tctl_batchnorm_gradient(&job->lender, (sample * s->height + y) * s->width, s->width, m->row, row,
                                false);
}

static void add_image(const borrow_job *job, int64_t sample, const room *m, float *sums, bool begin)
{
    const tctl_op_call *call = job->call;
    const tctl_conv *c = call->self->plan;
    const tctl_strips *f = &c->forward, *b = &c->input_gradient;
    const float *image = call->self->x[0] + sample * f->height * f->width * f->channels;
    const float *band = job->before.channels
                            ? tctl_strips_band_of(f, call->simd, &job->before, image, 0, f->out_height, m->x)
                            : tctl_strips_band(f, image, 0, 0, f->out_height, m->x);
    const float *dy = m->dy + b->pad * tctl_strips_band_row(b) + b->pad * b->channels;
    tctl_conv_rows r = {.dy_row = tctl_strips_band_row(b), .k1 = c->k, .columns = c->out, .panel = m->panel};
    for (int64_t y = 0; y < f->out_height; y += r.rows) {
        r.rows = f->out_height - y < c->weight_rows ? f->out_height - y : c->weight_rows;
        r.band = band + y * f->stride * tctl_strips_band_row(f);
        r.dy = dy + y * r.dy_row;
        tctl_conv_add_rows(call, &r, sums, begin && y == 0);
    }
}

static void sum_unit(const borrow_job *job, int64_t unit, const room *m, float *sums)
{
    const tctl_op_call *call = job->call;
    const tctl_conv *c = call->self->plan;
    const tctl_window *w = &c->window;
    const int64_t first = unit * c->leaves.samples, end = first + c->leaves.samples;
    for (int64_t sample = first; sample < end && sample < call->n; sample++) {
        borrow_image(job, sample, m);
        add_image(job, sample, m, sums, sample == first);
        if (call->self->dx[0])
            tctl_strips_multiply(&job->input, 0, m->dy,
                                 call->self->dx[0] + sample * w->height * w->width * c->in, w->height);
    }
}

/* ---- all of them --------------------------------------------------------------------------------------- */

/* Chunk: a run of units, whole subtrees. */
static void borrow_run(void *arg, uint64_t chunk, uint32_t thread)
{
    const borrow_job *job = arg;
    const tctl_conv *c = job->call->self->plan;
    const int64_t first = (int64_t)chunk * job->run, last = first + job->run, total = c->k * c->out;
    room m = {.slots = tctl_op_scratch(job->call, thread)};
    m.panel = m.slots + slots_floats(c, job->units);
    m.x = m.panel + panel_floats(job->call->simd, c);
    m.dy = m.x + band_floats(&c->forward);
    m.row = m.dy + band_floats(&c->input_gradient);
    memset(m.dy, 0, band_floats(&c->input_gradient) * sizeof *m.dy); /* the border stays so */
    tctl_tree tree;
    tctl_tree_begin(&tree, m.slots, (size_t)total);
    for (int64_t unit = first; unit < last && unit < job->units; unit++) {
        sum_unit(job, unit, &m, tctl_tree_slot(&tree));
        tctl_tree_push(&tree);
        tctl_tree_end_unit(&tree, &c->leaves);
    }
    memcpy(job->partials + (int64_t)chunk * total, tctl_tree_finish(&tree), (size_t)total * sizeof(float));
}

void tctl_conv_backward_borrowed(const tctl_op_call *call)
{
    const tctl_operation *self = call->self;
    const tctl_conv *c = self->plan;
    const size_t packed = tctl_gemm_packed_floats(
        call->simd, (size_t)(c->window.kernel * c->window.kernel * c->out), (size_t)c->in);
    borrow_job job = {.call = call,
                      .lender = *call,
                      .input = {.call = call,
                                .strips = &c->input_gradient,
                                .packed = call->shared,
                                .columns = c->in,
                                .start = self->add_dx[0] ? TCTL_GEMM_C : TCTL_GEMM_ZERO},
                      .partials = call->shared + packed,
                      .units = tctl_leaves_units(&c->leaves, call->n)};
    job.lender.self = self->lender;
    if (self->before)
        job.before = tctl_batchnorm_normalization(self->before);
    job.run = tctl_conv_units_of_run(c, job.units);
    const int64_t runs = (job.units + job.run - 1) / job.run;
    if (self->dx[0])
        tctl_conv_pack_transposed(call);
    tctl_pool_run(call->pool, (uint64_t)runs, borrow_run, &job);
    tctl_conv_join_runs(call, job.partials, runs);
}
