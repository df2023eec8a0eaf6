/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution as matrix products: what the operators conv and linear do.
 *
 * Weights are [kernel, kernel, in / groups, out]: row k = (tap_y, tap_x, channel) ascending, columns are output
 * channels. A linear operator is a 1 x 1 convolution of a 1 x 1 image.
 *
 * Chains (docs/numerics.md):
 *   y         from the bias or +0, over k; taps outside the image are terms with x = 0
 *   dx        from +0 (or from what another reader of x has left), over (tap_y, tap_x, out channel) ascending;
 *             taps that the stride never lets reach the pixel are no terms, outputs outside the image are zeros
 *   dweight   over (sample, oy, ox), by leaves and the tree
 *   dbias     the same, plain sums
 */
#ifndef TCTL_ENGINE_CONV_H
#define TCTL_ENGINE_CONV_H

#include "engine/conv_channelwise.h"
#include "engine/op.h"
#include "engine/patches.h"
#include "engine/strips.h"
#include "engine/tree.h"

/* How work is cut: decides the time only. */
enum {
    TCTL_CONV_LEAF_ROWS = 224,    /* positions whose terms are added at once to dweight */
    TCTL_CONV_DIRECT_COLUMNS = 64 /* without patches, columns are cut too: a multiple of every panel */
};

typedef struct tctl_conv {
    tctl_window window;
    int64_t in, out, groups; /* channels */
    int64_t in_group, out_group;
    int64_t k; /* kernel * kernel * in_group */
    bool bias;
    bool direct; /* patches are the pixels themselves: 1 x 1, stride 1, no pad, one group */
    bool channelwise, channelwise_weights, channelwise_back; /* for y, dweight and dx: conv_channelwise.h */
    tctl_conv_channelwise channelwise_plan;
    bool strips,
        strips_back; /* for dweight and dx the image is read where it lies (strips.h), not gathered patches */
    tctl_strips forward, input_gradient;
    int64_t weight_rows; /* rows of outputs whose terms are added at once to dweight, with strips */
    const ptrdiff_t *weight_segments;     /* [weight_rows]: where each begins in its band */
    int64_t row_grain;                    /* output rows of one chunk of the forward */
    int64_t phase_grain;                  /* input pixels of one chunk of the input gradient */
    int64_t k_grain;                      /* rows of dweight of one chunk */
    int64_t weight_columns, weight_parts; /* columns of dweight of one chunk; parts of a group that makes */
    int64_t weight_groups;                /* 1 if a chunk takes all groups */
    int64_t max_unit_groups;              /* partial sums of dweight that there is room for */
    tctl_leaves leaves;
} tctl_conv;

/* Fills what follows from window, in, out, groups and bias, and the operation's memory needs. */
tctl_status tctl_conv_plan(const tctl_op_site *, tctl_operation *, tctl_conv *, tctl_error *err);
/* y from x, param[0] and param[1]. */
void tctl_conv_forward(const tctl_op_call *);
/* dx, grad[0] and grad[1] from x, dy and param[0]. */
void tctl_conv_backward(const tctl_op_call *);

/* The parts of the backward. */
void tctl_conv_input_gradient(const tctl_op_call *);
void tctl_conv_weight_gradient(const tctl_op_call *);
/* Both at once, image by image, where dy is borrowed from the operation behind (conv_borrow.c). */
void tctl_conv_backward_borrowed(const tctl_op_call *);
/* Whether the forward can sum the leaves of the batch-norm behind it. */
bool tctl_conv_sums(const tctl_operation *, uint32_t max_batch, uint32_t threads);
/* Whether forward and backward can normalize what they read. */
bool tctl_conv_normalizes(const tctl_operation *);
/* Whether the backward can be so, and should; then makes the room for it. */
bool tctl_conv_borrows(const tctl_simd *, tctl_operation *, uint32_t max_batch, uint32_t threads);

/* ---- what the parts share ------------------------------------------------------------------------------ */

/* Rows of outputs of one sample, as terms of rows k0..k1-1 of dweight. */
typedef struct tctl_conv_rows {
    const float *band;       /* of the input (strips.h) */
    const float *dy;         /* the first column's first row of outputs */
    int64_t dy_row, rows;    /* floats between rows; how many: at most weight_rows */
    int64_t k0, k1, columns; /* of dweight */
    float *panel;            /* room for [weight_rows * out_width][columns of a panel] */
} tctl_conv_rows;
/* Adds their terms to the chains in out[k1 - k0][columns], or begins them. */
void tctl_conv_add_rows(const tctl_op_call *, const tctl_conv_rows *, float *out, bool begin);
/* Units of samples that one chunk of the weight gradient sums to one partial sum: a power of two. */
int64_t tctl_conv_units_of_run(const tctl_conv *, int64_t units);
/* partials[runs][k * out] to the gradient of the weights. */
void tctl_conv_join_runs(const tctl_op_call *, float *partials, int64_t runs);
/* Weights for the input gradient, in panels, to the shared memory. */
void tctl_conv_pack_transposed(const tctl_op_call *);

/* Weights of group g in panels: panel p at tctl_conv_panel(…), for m columns per group and k rows. */
static inline float *tctl_conv_panel(const tctl_op_call *call, int64_t g, size_t k, size_t m, size_t panel)
{
    return call->shared + (size_t)g * tctl_gemm_packed_floats(call->simd, k, m) +
           panel * k * tctl_gemm_panel_columns(call->simd);
}

/* grad = value, or grad += value if the batch accumulates. */
void tctl_op_store_gradient(const tctl_op_call *, float *grad, const float *value, int64_t n);

#endif
