/* SPDX-License-Identifier: Apache-2.0 */
/*
 * globalavgpool: the mean of each channel over the image, or over the positions of a sequence. The sum is one chain over (row, column) ascending; for
 * images of more than TCTL_LEAF_TERMS positions it is the tree over the image's leaves (tree.h). dx = dy / positions.
 */
#include "engine/op.h"
#include "engine/tree.h"

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    char text[TCTL_OP_TEXT];
    if (self->in[0].rank == 1)
        return tctl_op_fail(self, err, "needs an image or a sequence; its input is %s",
                            tctl_shape_text(&self->in[0], text));
    tctl_leaves *leaves = tctl_arena_take(site->arena, sizeof *leaves);
    if (!leaves)
        return tctl_op_fail_memory(self, err);
    *leaves = tctl_leaves_of(self->in[0].height, self->in[0].width);
    self->plan = leaves;
    self->out = (tctl_shape){1, 1, 1, self->in[0].channels};
    self->scratch_floats = (size_t)(leaves->per_unit * self->out.channels);
    return TCTL_OK;
}

static void sum_rows(const float *restrict x, int64_t positions, int64_t channels, float *restrict sums)
{
    memset(sums, 0, (size_t)channels * sizeof *sums);
    for (int64_t r = 0; r < positions; r++, x += channels) {
        for (int64_t c = 0; c < channels; c++)
            sums[c] += x[c];
    }
}

/* Samples. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_leaves *l = call->self->plan;
    const int64_t channels = call->self->out.channels, size = l->height * l->width * channels;
    float *sums = tctl_op_scratch(call, thread);
    for (int64_t n = first; n < last; n++) {
        for (int64_t leaf = 0; leaf < l->per_unit; leaf++) {
            int64_t row = leaf * l->rows, rows = row + l->rows < l->height ? l->rows : l->height - row;
            sum_rows(call->self->x[0] + n * size + row * l->width * channels, rows * l->width, channels,
                     sums + leaf * channels);
        }
        tctl_tree_join(sums, l->per_unit, (size_t)channels, (size_t)channels);
        for (int64_t c = 0; c < channels; c++)
            call->self->y[n * channels + c] = sums[c] / (float)(l->height * l->width);
    }
}

static void forward(const tctl_op_call *call)
{
    tctl_op_ranges(call, call->n, 1, forward_range);
}

static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const tctl_operation *self = call->self;
    const tctl_leaves *l = self->plan;
    const int64_t channels = self->out.channels, positions = l->height * l->width;
    float *share = tctl_op_scratch(call, thread);
    for (int64_t n = first; n < last; n++) {
        float *dx = self->dx[0] + n * positions * channels;
        for (int64_t c = 0; c < channels; c++)
            share[c] = self->dy[n * channels + c] / (float)positions;
        for (int64_t r = 0; r < positions; r++, dx += channels) {
            for (int64_t c = 0; c < channels; c++)
                dx[c] = self->add_dx[0] ? dx[c] + share[c] : share[c];
        }
    }
}

static void backward(const tctl_op_call *call)
{
    if (call->self->dx[0])
        tctl_op_ranges(call, call->n, 1, backward_range);
}

const tctl_op tctl_op_globalavgpool = {
    .schema = &tctl_network_op_table[TCTL_OP_GLOBALAVGPOOL],
    .infer = infer,
    .forward = forward,
    .backward = backward,
};
