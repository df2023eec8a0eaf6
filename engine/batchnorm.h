/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a batch-norm in pieces, for the convolution in front of it (conv_borrow.c). */
#ifndef TCTL_ENGINE_BATCHNORM_H
#define TCTL_ENGINE_BATCHNORM_H

#include "engine/op.h"

/* dx (or dx +=, if `add`) of positions first..first+n-1 of one image row, once its backward has summed. `room` holds a
 * row of an image. The call's operation is the batch-norm. [any] */
void tctl_batchnorm_gradient(const tctl_op_call *, int64_t first, int64_t n, float *room, float *dx,
                             bool add);

#endif
