/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dx of a convolution: for every input pixel one chain over the taps that reach it and the output channels.
 *
 * With a stride, pixels fall into stride * stride phases, each with its own taps and so its own dense product:
 * nothing is multiplied that the stride skips. The weights of a phase are packed transposed, tap by tap.
 */
#include "engine/conv.h"

typedef struct packed_phase {
    tctl_phase phase;
    int64_t k;     /* terms: taps * out_group */
    size_t offset; /* of its panels in the shared memory */
} packed_phase;

/* Phases lie one behind the other, each with the panels of all its groups. */
static packed_phase find_phase(const tctl_op_call *call, const tctl_conv *c, int64_t index)
{
    packed_phase p = {.offset = 0};
    for (int64_t i = 0;; i++) {
        p.phase = tctl_phase_of(&c->window, i);
        p.k = p.phase.n_tap_y * p.phase.n_tap_x * c->out_group;
        if (i == index)
            return p;
        p.offset += (size_t)c->groups * tctl_gemm_packed_floats(call->simd, (size_t)p.k, (size_t)c->in_group);
    }
}

static float *panel_of(const tctl_op_call *call, const tctl_conv *c, const packed_phase *p, int64_t g,
                       size_t panel)
{
    return tctl_conv_panel(call, g, (size_t)p->k, (size_t)c->in_group, panel) + p->offset;
}

/* Chunk: one panel of one group of one phase. */
static void pack_transposed(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const tctl_op_call *call = arg;
    const tctl_conv *c = call->self->plan;
    const size_t panels = tctl_gemm_panels(call->simd, (size_t)c->in_group), panel = chunk % panels;
    const int64_t g = (int64_t)(chunk / panels) % c->groups;
    const packed_phase p = find_phase(call, c, (int64_t)(chunk / panels) / c->groups);
    const size_t stride = tctl_gemm_panel_stride(call->simd, (size_t)c->in_group, panel);
    float *dst = panel_of(call, c, &p, g, panel);
    for (int64_t i = 0; i < p.phase.n_tap_y; i++) {
        for (int64_t j = 0; j < p.phase.n_tap_x; j++, dst += (size_t)c->out_group * stride) {
            int64_t tap = (p.phase.tap_y + i * p.phase.tap_step) * c->window.kernel + p.phase.tap_x +
                          j * p.phase.tap_step;
            tctl_gemm_matrix b = {call->self->param[0] + tap * c->in_group * c->out + g * c->out_group, 1,
                                  (ptrdiff_t)c->out};
            tctl_gemm_pack(call->simd, &b, (size_t)c->out_group, (size_t)c->in_group, panel, dst);
        }
    }
}

void tctl_conv_pack_transposed(const tctl_op_call *call)
{
    const tctl_conv *c = call->self->plan;
    const int64_t phases = c->window.stride * c->window.stride;
    tctl_op_call copy = *call;
    tctl_pool_run(call->pool,
                  (uint64_t)(phases * c->groups) * tctl_gemm_panels(call->simd, (size_t)c->in_group),
                  pack_transposed, &copy);
}

/* ---- the products -------------------------------------------------------------------------------------- */

typedef struct phase_rows {
    const tctl_op_call *call;
    const packed_phase *p;
    int64_t row0, row1;
    float *memory; /* this thread's */
} phase_rows;

static void multiply(const phase_rows *r, int64_t g, const float *a, size_t a_row, float *out, size_t out_row)
{
    const tctl_operation *self = r->call->self;
    const tctl_conv *c = self->plan;
    tctl_gemm_call product = {
        .simd = r->call->simd,
        .m = (size_t)(r->row1 - r->row0),
        .n = (size_t)c->in_group,
        .k = (size_t)r->p->k,
        .a = {a, (ptrdiff_t)a_row, 1},
        .packed_b = panel_of(r->call, c, r->p, g, 0),
        .c = out,
        .c_row = out_row,
        .start = self->add_dx[0] ? TCTL_GEMM_C : TCTL_GEMM_ZERO,
    };
    tctl_gemm(&product);
}

/* dx at the r-th pixel of the phase. */
static float *pixel(const tctl_operation *self, const tctl_conv *c, const tctl_phase *p, int64_t r)
{
    int64_t y = p->first_y + r / p->width % p->height * c->window.stride;
    int64_t x = p->first_x + r % p->width * c->window.stride;
    int64_t n = r / (p->width * p->height);
    return self->dx[0] + ((n * c->window.height + y) * c->window.width + x) * c->in;
}

/* Pixels of a phase are not neighbours: the product goes through a small matrix. */
static void multiply_scattered(const phase_rows *r, int64_t g, const float *a, size_t a_row, float *out)
{
    const tctl_operation *self = r->call->self;
    const tctl_conv *c = self->plan;
    const size_t n = (size_t)c->in_group;
    for (int64_t i = r->row0; self->add_dx[0] && i < r->row1; i++)
        memcpy(out + (size_t)(i - r->row0) * n, pixel(self, c, &r->p->phase, i) + g * c->in_group,
               n * sizeof *out);
    multiply(r, g, a, a_row, out, n);
    for (int64_t i = r->row0; i < r->row1; i++)
        memcpy(pixel(self, c, &r->p->phase, i) + g * c->in_group, out + (size_t)(i - r->row0) * n,
               n * sizeof *out);
}

static void phase_chunk(const phase_rows *r)
{
    const tctl_operation *self = r->call->self;
    const tctl_conv *c = self->plan;
    const size_t stride = tctl_patches_stride(r->p->k);
    for (int64_t g = 0; g < c->groups; g++) {
        tctl_channels channels = {c->out, g * c->out_group, c->out_group};
        tctl_patches_gather_phase(&c->window, &r->p->phase, self->dy, &channels, r->row0, r->row1, r->memory,
                                  stride);
        if (c->window.stride == 1)
            multiply(r, g, r->memory, stride, self->dx[0] + r->row0 * c->in + g * c->in_group, (size_t)c->in);
        else
            multiply_scattered(r, g, r->memory, stride, r->memory + (size_t)c->phase_grain * stride);
    }
}

/* Every phase is given the chunks that the largest needs. */
static int64_t chunks_of_phase(const tctl_conv *c, int64_t n)
{
    const tctl_window *w = &c->window;
    int64_t rows = n * ((w->height + w->stride - 1) / w->stride) * ((w->width + w->stride - 1) / w->stride);
    return (rows + c->phase_grain - 1) / c->phase_grain;
}

static void gather_and_multiply(void *arg, uint64_t chunk, uint32_t thread)
{
    const tctl_op_call *call = arg;
    const tctl_conv *c = call->self->plan;
    const int64_t chunks = chunks_of_phase(c, call->n);
    const packed_phase p = find_phase(call, c, (int64_t)chunk / chunks);
    const int64_t rows = call->n * p.phase.height * p.phase.width;
    phase_rows r = {call, &p, (int64_t)chunk % chunks * c->phase_grain, 0, tctl_op_scratch(call, thread)};
    r.row1 = r.row0 + c->phase_grain < rows ? r.row0 + c->phase_grain : rows;
    if (r.row0 < r.row1)
        phase_chunk(&r);
}

/* 1 x 1: dy is its own matrix of patches. Chunk: some rows, and some panels of columns. */
static void multiply_direct(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const tctl_op_call *call = arg;
    const tctl_operation *self = call->self;
    const tctl_conv *c = self->plan;
    const int64_t columns = (c->in + TCTL_CONV_DIRECT_COLUMNS - 1) / TCTL_CONV_DIRECT_COLUMNS;
    const int64_t rows = call->n * c->window.height * c->window.width;
    const int64_t row0 = (int64_t)chunk / columns * c->phase_grain, row1 = row0 + c->phase_grain;
    const int64_t j0 = (int64_t)chunk % columns * TCTL_CONV_DIRECT_COLUMNS,
                  j1 = j0 + TCTL_CONV_DIRECT_COLUMNS;
    tctl_gemm_call product = {
        .simd = call->simd,
        .m = (size_t)((row1 < rows ? row1 : rows) - row0),
        .n = (size_t)((j1 < c->in ? j1 : c->in) - j0),
        .k = (size_t)c->out,
        .a = {self->dy + row0 * c->out, (ptrdiff_t)c->out, 1},
        .packed_b = tctl_conv_panel(call, 0, (size_t)c->out, (size_t)c->in,
                                    (size_t)j0 / tctl_gemm_panel_columns(call->simd)),
        .c = self->dx[0] + row0 * c->in + j0,
        .c_row = (size_t)c->in,
        .start = self->add_dx[0] ? TCTL_GEMM_C : TCTL_GEMM_ZERO,
    };
    tctl_gemm(&product);
}

void tctl_conv_input_gradient(const tctl_op_call *call)
{
    const tctl_conv *c = call->self->plan;
    const int64_t phases = c->window.stride * c->window.stride;
    tctl_op_call copy = *call;
    if (c->channelwise_back) {
        tctl_conv_channelwise_input_gradient(call, &c->channelwise_plan);
        return;
    }
    tctl_conv_pack_transposed(call);
    if (c->direct) {
        int64_t rows = call->n * c->window.height * c->window.width;
        int64_t chunks = (rows + c->phase_grain - 1) / c->phase_grain;
        chunks *= (c->in + TCTL_CONV_DIRECT_COLUMNS - 1) / TCTL_CONV_DIRECT_COLUMNS;
        tctl_pool_run(call->pool, (uint64_t)chunks, multiply_direct, &copy);
    } else if (tctl_strips_can(&c->input_gradient, call->n)) {
        const tctl_strips_job job = {.call = call,
                                     .strips = &c->input_gradient,
                                     .x = call->self->dy,
                                     .packed = call->shared,
                                     .out = call->self->dx[0],
                                     .columns = c->in_group,
                                     .start = call->self->add_dx[0] ? TCTL_GEMM_C : TCTL_GEMM_ZERO};
        tctl_strips_run(&job);
    } else {
        tctl_pool_run(call->pool, (uint64_t)(phases * chunks_of_phase(c, call->n)), gather_and_multiply,
                      &copy);
    }
}
