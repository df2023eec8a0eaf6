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
    bool direct;              /* patches are the pixels themselves: 1 x 1, stride 1, no pad, one group */
    bool strips, strips_back; /* the image is read where it lies: strips.h; else through gathered patches */
    tctl_strips forward, input_gradient;
    int64_t weight_rows; /* rows of outputs whose terms are added at once to dweight, with strips */
    const ptrdiff_t *weight_segments; /* [weight_rows]: where each begins in its band */
    int64_t row_grain;                /* output rows of one chunk of the forward */
    int64_t phase_grain;              /* input pixels of one chunk of the input gradient */
    int64_t k_grain;                  /* rows of dweight of one chunk */
    int64_t max_unit_groups;          /* partial sums of dweight that there is room for */
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

/* Weights of group g in panels: panel p at tctl_conv_panel(…), for m columns per group and k rows. */
static inline float *tctl_conv_panel(const tctl_op_call *call, int64_t g, size_t k, size_t m, size_t panel)
{
    return call->shared + (size_t)g * tctl_gemm_packed_floats(call->simd, k, m) +
           panel * k * tctl_gemm_panel_columns(call->simd);
}

/* grad = value, or grad += value if the batch accumulates. */
void tctl_op_store_gradient(const tctl_op_call *, float *grad, const float *value, int64_t n);

#endif
