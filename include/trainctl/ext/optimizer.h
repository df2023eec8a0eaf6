/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.optimizer/1": one update over flat memory.
 *
 * Parameters, gradients and the optimizer's slots (momentum, second moment) are flat arrays of equal length,
 * owned by the trainer, zeroed at the start. `update` is elementwise: the trainer calls it on ranges of any
 * size from many threads. An optimizer that needs a norm over a whole tensor (LARS, LAMB) has `measure`.
 */
#ifndef TRAINCTL_EXT_OPTIMIZER_H
#define TRAINCTL_EXT_OPTIMIZER_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_OPTIMIZER_ID        "trainctl.optimizer/1"
#define TCTL_OPTIMIZER_MAX_SLOTS 4

/* One tensor of the model, as optimizers and hooks see it. */
typedef struct tctl_parameter {
    const char *name; /* "conv1.weight" */
    uint64_t offset;  /* of its first element in the flat arrays */
    uint64_t count;   /* elements */
    uint32_t flags;   /* TCTL_PARAMETER_… */
    int32_t rank;
    int64_t dims[6];
} tctl_parameter;

enum {
    /* biases, batch-norm scale and shift: weight decay leaves them alone */
    TCTL_PARAMETER_NO_DECAY = 1u << 0,
    /* never updated */
    TCTL_PARAMETER_FROZEN = 1u << 1,
    /* no gradient: learned from batches by the operator itself (batch-norm running statistics) */
    TCTL_PARAMETER_BUFFER = 1u << 2,
    /* a table of rows that are looked up, not multiplied: [rows, features] in files as well */
    TCTL_PARAMETER_LOOKUP = 1u << 3
};

typedef struct tctl_update {
    uint32_t struct_size, reserved;
    const tctl_parameter *parameter;       /* the tensor that the range lies in */
    uint64_t n;                            /* elements in the range */
    float *param;                          /* [n], in-out */
    const float *grad;                     /* [n], mean over the batch */
    float *slot[TCTL_OPTIMIZER_MAX_SLOTS]; /* [n] each, in-out; NULL past n_slots */
    double lr_factor;                      /* of the schedule; the optimizer multiplies its own `lr` by it */
    uint64_t step;                         /* updates taken, this one included: from 1 */
    double measured;                       /* what `measure` returned for the whole tensor, else 0 */
} tctl_update;

typedef struct tctl_optimizer {
    uint32_t struct_size;
    uint32_t n_slots;              /* 0..TCTL_OPTIMIZER_MAX_SLOTS; may be more than a stage uses */
    const char *const *slot_names; /* [n_slots]: "momentum"; part of the trace and of checkpoints */
    /* Elementwise; a fixed sequence of IEEE operations per element; no allocation. [worker] */
    void (*update)(tctl_stage *, const tctl_update *);
    /* Optional: a number for the whole tensor before its ranges are updated, computed in a fixed order.
     * NULL: not needed. [worker] */
    double (*measure)(tctl_stage *, const tctl_update *whole);
} tctl_optimizer;

#ifdef __cplusplus
}
#endif

#endif
