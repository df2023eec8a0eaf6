/* SPDX-License-Identifier: Apache-2.0 */
/* What a linear operator does otherwise than a convolution: the gradients of its weights. */
#ifndef TCTL_ENGINE_LINEAR_H
#define TCTL_ENGINE_LINEAR_H

#include "engine/conv.h"

/* Enlarges the operation's memory needs by those of the gradient, after tctl_conv_plan. */
void tctl_linear_plan(const tctl_op_site *, tctl_operation *);
/* grad[0] and grad[1] from x and dy. */
void tctl_linear_weight_gradient(const tctl_op_call *);

#endif
