/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draft extension "trainctl.layer/1": an operator from outside the tree.
 * May change until it leaves this folder; its id will stay.
 *
 * The exact contract holds for it too: `forward` and `backward` handle one fixed group of samples; the
 * gradients of its parameters are summed over the groups by the trainer's fixed tree.
 */
#ifndef TRAINCTL_DRAFT_LAYER_H
#define TRAINCTL_DRAFT_LAYER_H

#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/host/random.h"
#include "trainctl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_LAYER_ID "trainctl.layer/1"

typedef struct tctl_layer {
    uint32_t struct_size, reserved;
    const tctl_op_schema *schema; /* the operator's name and options */
    /* Shapes: inputs and outputs without the batch dimension; how many parameters, their sizes. [main] */
    tctl_status (*infer)(tctl_stage *, const tctl_node *, const tctl_field *in, uint32_t n_in,
                         tctl_field *out, tctl_parameter *params, uint32_t cap, uint32_t *ret_n,
                         tctl_error *);
    /* Initial values of parameter `i` from its own stream. [any] */
    tctl_status (*initialize)(tctl_stage *, const tctl_node *, uint32_t i, const tctl_random_address *,
                              float *values, tctl_error *);
    /* y = f(x; w) for a group of samples (first dimension of every tensor). [worker] */
    tctl_status (*forward)(tctl_stage *, const tctl_node *, const tctl_tensor *x, const float *const *w,
                           const tctl_tensor *y, tctl_error *);
    /* dx and dw (both overwritten) from dy. [worker] */
    tctl_status (*backward)(tctl_stage *, const tctl_node *, const tctl_tensor *x, const tctl_tensor *y,
                            const tctl_tensor *dy, const float *const *w, const tctl_tensor *dx,
                            float *const *dw, tctl_error *);
    /* Optional, all three or none: what a layer learns from a batch besides gradients (running ranges of a
     * fake-quantizer, running mean of a norm). `infer` gives such tensors TCTL_PARAMETER_BUFFER: they follow the
     * parameters in `w`, have no gradient, and are saved with the model. `measure` makes n_statistics numbers
     * from one group, `join` two groups' into one (the trainer's fixed tree says which), `absorb` writes the
     * buffers. */
    uint32_t n_statistics, reserved_2;
    void (*measure)(tctl_stage *, const tctl_node *, const tctl_tensor *x, double *ret); /* [worker] */
    void (*join)(tctl_stage *, const tctl_node *, double *into, const double *from);     /* [worker] */
    void (*absorb)(tctl_stage *, const tctl_node *, const double *statistics,
                   float *const *buffers); /* [step] */
} tctl_layer;

#ifdef __cplusplus
}
#endif

#endif
