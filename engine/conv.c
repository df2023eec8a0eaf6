/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of a convolution, and its forward. Weights are packed once; then chunks of output rows are multiplied: from
 * the image where it lies (strips.h), or, for narrow images, from gathered patches. Groups of few channels go their own
 * way (conv_channelwise.h). Grains decide the time only.
 */
#include "engine/conv.h"

#include "engine/batchnorm.h"
#include "engine/reduce.h"

enum {
    PATCH_FLOATS = 1 << 16, /* patches of one chunk: half of a second-level cache */
    MIN_ROWS = 24,
    MAX_ROWS = 768,
    DIRECT_ROWS = 96,      /* without patches */
    TILE_FLOATS = 1 << 14, /* dweight of one chunk */
    STRIP_TILE_FLOATS = 40960,
    MAX_UNIT_GROUPS = 16,
    MAX_PARTIAL_FLOATS = 1 << 22
};

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* ---- the plan ------------------------------------------------------------------------------------------ */

static int64_t rows_for(int64_t k)
{
    return clamp(PATCH_FLOATS / (int64_t)tctl_patches_stride(k), MIN_ROWS, MAX_ROWS) / 12 * 12;
}

/* Rows of dweight per chunk: equal parts, so that the last is not a sliver. */
static int64_t rows_of_weights(int64_t k, int64_t columns, int64_t floats)
{
    int64_t most = clamp(floats / columns, 6, k < 6 ? 6 : k), parts = (k + most - 1) / most;
    return ((k + parts - 1) / parts + 5) / 6 * 6;
}

static size_t shared_floats(const tctl_op_site *site, const tctl_conv *c)
{
    const size_t groups = (size_t)c->groups, weights = (size_t)(c->k * c->out);
    size_t forward = groups * tctl_gemm_packed_floats(site->simd, (size_t)c->k, (size_t)c->out_group);
    size_t taps = (size_t)(c->window.kernel * c->window.kernel);
    size_t backward =
        groups * tctl_gemm_packed_floats(site->simd, taps * (size_t)c->out_group, (size_t)c->in_group);
    size_t partials = (size_t)c->max_unit_groups * weights;
    forward = max_size(forward, tctl_conv_channelwise_shared_floats(&c->channelwise_plan));
    size_t bias = c->bias ? tctl_column_sums_floats(&c->leaves, site->max_batch, c->out, 1) : 0;
    return max_size(max_size(forward, backward), max_size(partials, bias));
}

static size_t weight_scratch(const tctl_op_site *site, const tctl_conv *c)
{
    const size_t slots = tctl_tree_slots(&c->leaves, tctl_leaves_units(&c->leaves, site->max_batch));
    const size_t sums = slots * (size_t)(c->k_grain * c->weight_columns);
    if (c->channelwise_weights)
        return sums + tctl_conv_channelwise_scratch_floats(&c->channelwise_plan);
    if (c->strips)
        return sums + (size_t)(c->weight_rows * c->window.out_width) * tctl_gemm_panel_columns(site->simd) +
               tctl_strips_band_floats(&c->forward, c->weight_rows);
    return sums + TCTL_CONV_LEAF_ROWS * tctl_patches_stride(c->k_grain) +
           tctl_gemm_scratch_floats(site->simd);
}

static size_t scratch_floats(const tctl_op_site *site, const tctl_conv *c)
{
    const int64_t taps = c->window.kernel * c->window.kernel;
    size_t forward = (size_t)c->row_grain * tctl_patches_stride(c->k);
    size_t input = (size_t)c->phase_grain * (tctl_patches_stride(taps * c->out_group) + (size_t)c->in_group);
    forward = max_size(forward, tctl_strips_scratch_floats(&c->forward));
    input = max_size(input, tctl_strips_scratch_floats(&c->input_gradient));
    if (c->channelwise)
        forward = tctl_conv_channelwise_scratch_floats(&c->channelwise_plan);
    if (c->channelwise_back)
        input = tctl_conv_channelwise_scratch_floats(&c->channelwise_plan);
    return max_size(max_size(forward, input), weight_scratch(site, c));
}

static bool plan_strips(const tctl_op_site *site, tctl_conv *c)
{
    const tctl_window *w = &c->window;
    c->strips = !c->direct && !c->channelwise_weights && w->out_width >= TCTL_STRIPS_MIN_WIDTH;
    c->strips_back =
        !c->direct && !c->channelwise_back && w->stride == 1 && w->pad <= w->dilation * (w->kernel - 1);
    if (c->strips_back &&
        !tctl_strips_input_gradient(site->arena, w, c->out_group, c->groups, &c->input_gradient))
        return false;
    if (c->direct || c->channelwise_weights)
        return true;
    if (!tctl_strips_forward(site->arena, w, c->in_group, c->groups, &c->forward))
        return false;
    if (!c->strips)
        return true;
    const int64_t most = clamp(TCTL_CONV_LEAF_ROWS / w->out_width, 1, c->forward.rows);
    const int64_t parts = (w->out_height + most - 1) / most;
    c->weight_rows = (w->out_height + parts - 1) / parts;
    ptrdiff_t *segments = tctl_arena_take_array(site->arena, (size_t)c->weight_rows, sizeof *segments);
    for (int64_t i = 0; segments && i < c->weight_rows; i++)
        segments[i] = (ptrdiff_t)(i * w->stride) * tctl_strips_band_row(&c->forward);
    c->weight_segments = segments;
    return segments != NULL;
}

static bool plan_channelwise(const tctl_op_site *site, tctl_conv *c)
{
    const tctl_window *w = &c->window;
    c->channelwise_weights = tctl_conv_channelwise_fits(w, c->groups, c->in_group, c->out_group);
    c->channelwise = c->channelwise_weights || tctl_conv_channelwise_few(w, c->groups, c->in_group);
    c->channelwise_back = tctl_conv_channelwise_fits_back(w, c->groups, c->in_group, c->out_group);
    return tctl_conv_channelwise_plan(site->arena, w, c->in, c->out, c->groups, &c->channelwise_plan);
}

/* How dweight is cut. With strips a chunk has few columns, since each chunk packs its columns of dy; without, few rows,
 * since each gathers its rows' part of the patches. */
static void plan_weights(const tctl_op_site *site, tctl_conv *c)
{
    const int64_t panel = (int64_t)tctl_gemm_panel_columns(site->simd);
    c->weight_groups = c->channelwise_weights ? 1 : c->groups;
    c->weight_columns = c->out / c->weight_groups;
    c->k_grain = c->k;
    if (c->strips && c->k * c->weight_columns > TILE_FLOATS) {
        const int64_t columns = STRIP_TILE_FLOATS / c->k / panel * panel;
        if (columns < c->weight_columns)
            c->weight_columns = columns < panel ? panel : columns;
        c->k_grain = rows_of_weights(c->k, c->weight_columns, STRIP_TILE_FLOATS);
    } else if (!c->channelwise_weights) {
        c->k_grain = rows_of_weights(c->k, c->weight_columns, TILE_FLOATS);
    }
    const int64_t columns = c->out / c->weight_groups;
    c->weight_parts = (columns + c->weight_columns - 1) / c->weight_columns;
}

tctl_status tctl_conv_plan(const tctl_op_site *site, tctl_operation *self, tctl_conv *c, tctl_error *err)
{
    const tctl_window *w = &c->window;
    c->in_group = c->in / c->groups;
    c->out_group = c->out / c->groups;
    c->k = w->kernel * w->kernel * c->in_group;
    c->direct = w->kernel == 1 && w->stride == 1 && w->pad == 0 && c->groups == 1;
    c->row_grain = c->direct ? DIRECT_ROWS : rows_for(c->k);
    c->phase_grain = c->direct ? DIRECT_ROWS : rows_for(w->kernel * w->kernel * c->out_group);
    if (!plan_channelwise(site, c))
        return tctl_op_fail_memory(self, err);
    c->leaves = tctl_leaves_of(w->out_height, w->out_width);
    c->max_unit_groups = clamp(MAX_PARTIAL_FLOATS / (c->k * c->out), 1, MAX_UNIT_GROUPS);
    if (!plan_strips(site, c))
        return tctl_op_fail_memory(self, err);
    plan_weights(site, c);
    self->plan = c;
    self->shared_floats = shared_floats(site, c);
    self->scratch_floats = scratch_floats(site, c);
    return TCTL_OK;
}

/* ---- forward ------------------------------------------------------------------------------------------- */

static void pack_weights(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const tctl_op_call *call = arg;
    const tctl_conv *c = call->self->plan;
    const size_t panels = tctl_gemm_panels(call->simd, (size_t)c->out_group), panel = chunk % panels;
    const int64_t g = (int64_t)(chunk / panels);
    tctl_gemm_matrix b = {call->self->param[0] + g * c->out_group, (ptrdiff_t)c->out, 1};
    tctl_gemm_pack(call->simd, &b, (size_t)c->k, (size_t)c->out_group, panel,
                   tctl_conv_panel(call, g, (size_t)c->k, (size_t)c->out_group, panel));
}

/* Output rows row0..row1-1, columns j0..j1-1 of one group. */
static void multiply(const tctl_op_call *call, int64_t g, int64_t row0, int64_t row1, int64_t j0, int64_t j1,
                     const float *a, size_t a_row)
{
    const tctl_conv *c = call->self->plan;
    const int64_t column = g * c->out_group + j0;
    tctl_gemm_call product = {
        .simd = call->simd,
        .m = (size_t)(row1 - row0),
        .n = (size_t)(j1 - j0),
        .k = (size_t)c->k,
        .a = {a, (ptrdiff_t)a_row, 1},
        .packed_b = tctl_conv_panel(call, g, (size_t)c->k, (size_t)c->out_group,
                                    (size_t)j0 / tctl_gemm_panel_columns(call->simd)),
        .c = call->self->y + row0 * c->out + column,
        .c_row = (size_t)c->out,
        .start = c->bias ? TCTL_GEMM_BIAS : TCTL_GEMM_ZERO,
        .bias = c->bias ? call->self->param[1] + column : NULL,
    };
    tctl_gemm(&product);
}

static void forward_rows(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_conv *c = call->self->plan;
    float *patches = tctl_op_scratch(call, thread);
    const size_t stride = tctl_patches_stride(c->k);
    for (int64_t g = 0; g < c->groups; g++) {
        tctl_channels channels = {c->in, g * c->in_group, c->in_group};
        tctl_patches_gather(&c->window, call->self->x[0], &channels, first, last, 0, c->k, patches, stride);
        multiply(call, g, first, last, 0, c->out_group, patches, stride);
    }
}

static void forward_direct(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const tctl_op_call *call = arg;
    const tctl_conv *c = call->self->plan;
    const int64_t columns = (c->out + TCTL_CONV_DIRECT_COLUMNS - 1) / TCTL_CONV_DIRECT_COLUMNS,
                  part = (int64_t)chunk % columns;
    const int64_t rows = call->n * c->window.out_height * c->window.out_width;
    const int64_t row0 = (int64_t)chunk / columns * c->row_grain, row1 = row0 + c->row_grain;
    const int64_t j0 = part * TCTL_CONV_DIRECT_COLUMNS, j1 = j0 + TCTL_CONV_DIRECT_COLUMNS;
    multiply(call, 0, row0, row1 < rows ? row1 : rows, j0, j1 < c->out ? j1 : c->out,
             call->self->x[0] + row0 * c->in, (size_t)c->in);
}

bool tctl_conv_sums(const tctl_operation *self, uint32_t max_batch, uint32_t threads)
{
    const tctl_conv *c = self->plan;
    const bool whole =
        c->channelwise || (c->strips && c->forward.images == 0 && c->forward.rows == c->window.out_height);
    return whole && c->leaves.per_unit == 1 &&
           tctl_leaves_units(&c->leaves, max_batch) >= 2 * (int64_t)threads;
}

bool tctl_conv_normalizes(const tctl_operation *self)
{
    const tctl_conv *c = self->plan;
    return self->lender && !c->channelwise && c->forward.pad > 0 && c->forward.images == 0;
}

static void add_sums(const tctl_op_call *conv, int64_t image, const float *out)
{
    tctl_op_call call = *conv;
    call.self = conv->self->summed;
    tctl_batchnorm_add_sums(&call, image, out);
}

void tctl_conv_forward(const tctl_op_call *call)
{
    const tctl_conv *c = call->self->plan;
    const int64_t rows = call->n * c->window.out_height * c->window.out_width;
    const float *bias = c->bias ? call->self->param[1] : NULL;
    tctl_conv_finish_fn *const finish = call->self->summed ? add_sums : NULL;
    tctl_op_call copy = *call;
    if (c->channelwise) {
        tctl_conv_channelwise_forward(call, &c->channelwise_plan, bias, c->leaves.samples, finish);
        return;
    }
    tctl_pool_run(call->pool, (uint64_t)c->groups * tctl_gemm_panels(call->simd, (size_t)c->out_group),
                  pack_weights, &copy);
    if (c->direct) {
        int64_t chunks = (rows + c->row_grain - 1) / c->row_grain;
        chunks *= (c->out + TCTL_CONV_DIRECT_COLUMNS - 1) / TCTL_CONV_DIRECT_COLUMNS;
        tctl_pool_run(call->pool, (uint64_t)chunks, forward_direct, &copy);
    } else if (tctl_strips_can(&c->forward, call->n)) {
        tctl_normalization before;
        if (call->self->before)
            before = tctl_batchnorm_normalization(call->self->before);
        const tctl_strips_job job = {.call = call,
                                     .normalization = call->self->before ? &before : NULL,
                                     .strips = &c->forward,
                                     .x = call->self->x[0],
                                     .packed = call->shared,
                                     .out = call->self->y,
                                     .columns = c->out_group,
                                     .start = bias ? TCTL_GEMM_BIAS : TCTL_GEMM_ZERO,
                                     .bias = bias,
                                     .samples = c->leaves.samples,
                                     .finish = finish};
        tctl_strips_run(&job);
    } else {
        tctl_op_ranges(call, rows, c->row_grain, forward_rows);
    }
}
