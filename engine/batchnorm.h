/* SPDX-License-Identifier: Apache-2.0 */
/* What a convolution does for the batch-norms around it (fuse.c). */
#ifndef TCTL_ENGINE_BATCHNORM_H
#define TCTL_ENGINE_BATCHNORM_H

#include "engine/math/norm.h"
#include "engine/op.h"

/* How the batch-norm makes its output, once its forward (or evaluation) has summed. */
tctl_normalization tctl_batchnorm_normalization(const tctl_operation *);

/* Adds the positions of one image to the sums of its leaf, of whole samples: images of a leaf in order, from its first. The
 * call's operation is the batch-norm. [any] */
void tctl_batchnorm_add_sums(const tctl_op_call *, int64_t sample, const float *x);

/* dx (or dx +=, if `add`) of positions first..first+n-1 of one image row, once its backward has summed. `room` holds a
 * row of an image. The call's operation is the batch-norm. [any] */
void tctl_batchnorm_gradient(const tctl_op_call *, int64_t first, int64_t n, float *room, float *dx,
                             bool add);

#endif
