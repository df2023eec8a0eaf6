/* SPDX-License-Identifier: Apache-2.0 */
/* Sums per channel over all positions of a batch, by leaves and the tree: bias gradients, batch-norm. */
#ifndef TCTL_ENGINE_REDUCE_H
#define TCTL_ENGINE_REDUCE_H

#include "engine/op.h"
#include "engine/tree.h"

typedef struct tctl_column_sums tctl_column_sums;

/* One leaf: the sums over positions first..last-1, each a chain from +0 in ascending order, of channels
 * c0..c1-1 (at most TCTL_REDUCE_CHANNELS) of each of the n_sums quantities: sums[s * channels + c] for c0 <= c < c1. */
enum { TCTL_REDUCE_CHANNELS = 16 };
typedef void tctl_leaf_fn(const tctl_column_sums *, int64_t first, int64_t last, int64_t c0, int64_t c1,
                          float *sums);

struct tctl_column_sums {
    const tctl_op_call *call;
    tctl_leaves leaves;
    int64_t channels, n_sums;
    tctl_leaf_fn *leaf;
    const float *x, *y, *center; /* whatever `leaf` reads: [positions, channels], [channels] */
};

/* Floats that the sums take for a batch of n. */
size_t tctl_column_sums_floats(const tctl_leaves *, int64_t n, int64_t channels, int64_t n_sums);
/* Leaves the sums in values[n_sums][channels]; the rest of `values` is scratch. */
void tctl_column_sums_run(const tctl_column_sums *, float *values);

/* The sums of x itself, with n_sums = 1. */
tctl_leaf_fn tctl_leaf_sum;

#endif
