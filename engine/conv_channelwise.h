/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions whose groups have few channels, down to one (depthwise): products channel by channel
 * (engine/channelwise) of images that are spread out (spread.h). The first layers of networks, with few channels and so
 * few terms, are computed by a loop of that kind as well. Chains, leaves and trees are the convolution's.
 */
#ifndef TCTL_ENGINE_CONV_CHANNELWISE_H
#define TCTL_ENGINE_CONV_CHANNELWISE_H

#include "engine/op.h"
#include "engine/patches.h"
#include "engine/spread.h"

/* Pixels of dx that take the same taps. */
typedef struct tctl_channelwise_phase {
    tctl_phase phase;
    int64_t first_term, n_terms;
} tctl_channelwise_phase;

typedef struct tctl_conv_channelwise {
    tctl_window window;
    tctl_spread x, dy;
    int64_t in, out;
    bool few;                /* one group of few terms */
    int64_t rows, rows_back; /* of y and dx: what is computed from one band */
    int64_t n_terms, n_terms_back;
    const ptrdiff_t *terms;      /* of y, in its band of x: [kernel][kernel][in channel of the group] */
    const ptrdiff_t *terms_back; /* of dx, in its band of dy: phase by phase */
    const tctl_channelwise_phase *phases; /* [stride * stride] */
} tctl_conv_channelwise;

/* Where it pays: for y, for y and dweight, and for dx. */
bool tctl_conv_channelwise_few(const tctl_window *, int64_t groups, int64_t in_group);
bool tctl_conv_channelwise_fits(const tctl_window *, int64_t groups, int64_t in_group, int64_t out_group);
bool tctl_conv_channelwise_fits_back(const tctl_window *, int64_t groups, int64_t in_group,
                                     int64_t out_group);

/* False if memory is out. */
bool tctl_conv_channelwise_plan(tctl_arena *, const tctl_window *, int64_t in, int64_t out, int64_t groups,
                                tctl_conv_channelwise *ret);
size_t tctl_conv_channelwise_shared_floats(const tctl_conv_channelwise *);
size_t tctl_conv_channelwise_scratch_floats(const tctl_conv_channelwise *);

/* After each whole image, if `finish` is not NULL; a chunk is then `samples` images in a row. */
typedef void tctl_conv_finish_fn(const tctl_op_call *, int64_t image, const float *y);
void tctl_conv_channelwise_forward(const tctl_op_call *, const tctl_conv_channelwise *, const float *bias,
                                   int64_t samples, tctl_conv_finish_fn *finish);
void tctl_conv_channelwise_input_gradient(const tctl_op_call *, const tctl_conv_channelwise *);
/* One leaf of dweight: positions first..last-1, whole rows. `memory`: its scratch. */
void tctl_conv_channelwise_leaf(const tctl_op_call *, const tctl_conv_channelwise *, int64_t first,
                                int64_t last, float *out, float *memory);

#endif
