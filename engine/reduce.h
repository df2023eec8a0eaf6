/* SPDX-License-Identifier: Apache-2.0 */
/* Sums per channel over all positions of a batch, by leaves and the tree: bias gradients, batch-norm. */
#ifndef TCTL_ENGINE_REDUCE_H
#define TCTL_ENGINE_REDUCE_H

#include "engine/op.h"
#include "engine/tree.h"

typedef struct tctl_column_sums tctl_column_sums;

/* One leaf: adds the terms of positions first..last-1, in ascending order, to the chains sums[n_sums][channels], which
 * begin with +0. */
typedef void tctl_leaf_fn(const tctl_column_sums *, int64_t first, int64_t last, float *sums,
                          uint32_t thread);

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
/* The same where somebody has left the sums of every leaf in values[leaves][n_sums][channels]. */
void tctl_column_sums_join(const tctl_column_sums *, float *values);

/* The sums of x itself, with n_sums = 1. */
tctl_leaf_fn tctl_leaf_sum;

#endif
