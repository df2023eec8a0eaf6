/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.hooks/1": the moments of a training step.
 *
 *   run_begin
 *     epoch_begin
 *       batch_ready       the batch is in memory; nothing was computed
 *       loss_ready        forward is done; loss_scale may be set for the backward pass
 *       gradients_ready   gradients are complete; the stage may change them, hold or veto the step
 *       step_done         parameters were updated, or not: see `action`
 *     epoch_end           before the evaluation
 *   run_end               after the last evaluation; parameters may be replaced (EMA) before they are saved
 *
 * Several stages are called in the order of `stages:`. Every moment is optional (NULL). A resumed run begins with
 * run_begin too, after every `load` of trainctl.state/1 and with `position` and `epoch` where it goes on: what
 * was loaded stays, only what is missing is made.
 */
#ifndef TRAINCTL_EXT_HOOKS_H
#define TRAINCTL_EXT_HOOKS_H

#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"
#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_HOOKS_ID "trainctl.hooks/1"

enum {
    TCTL_STEP_TAKE = 0, /* update the parameters */
    TCTL_STEP_HOLD = 1, /* keep the gradients, add the next micro-batch's to them, do not update */
    TCTL_STEP_SKIP = 2  /* drop the gradients, do not update (an overflow under loss scaling) */
};

/* What the stages see of the training; members marked (w) may be written by a hook. */
typedef struct tctl_training {
    uint32_t struct_size;
    uint32_t n_parameters, n_slots, n_buffers;
    const tctl_parameter *parameters; /* [n_parameters], in the order of the model */
    const tctl_parameter *buffers;    /* [n_buffers] of `buffer`: batch-norm running statistics */
    uint64_t n_elements;              /* of the flat arrays; tensors are padded with elements that stay 0 */
    float *param;                     /* (w) [n_elements] */
    float *grad;                      /* (w) [n_elements], gradients_ready: sum over the samples held so far,
                                         times loss_scale / divisor */
    float *slot[TCTL_OPTIMIZER_MAX_SLOTS]; /* (w) [n_elements] */
    float *buffer;                         /* (w) [n_buffer_elements] batch-norm running statistics */
    tctl_position position;                /* of the update under way; micro-batches share it */
    uint64_t epoch;                        /* from 0 */
    uint64_t micro_batch;                  /* gradients held before this one: 0 without accumulation */
    uint64_t batch_samples;                /* samples in this (micro-)batch */
    const uint64_t *sample_indices;        /* [batch_samples], global indices in the data set */
    double divisor;    /* (w) batch_ready: what per-sample gradients are divided by; the number
                                         of samples of the whole batch, micro-batches together. Neither it nor
                                         loss_scale may change while gradients are held */
    double loss_scale; /* (w) batch_ready or loss_ready: a power of two; the trainer divides
                                         it out again after gradients_ready */
    float loss;        /* loss_ready and later: mean over the batch, unscaled */
    int32_t action;    /* step_done: what was decided, TCTL_STEP_… */
    int32_t reserved;
    /* (w) run_begin: micro-batches that a stage will hold per update, at least 1. Position (updates per epoch and
     * per run) and the default divisor follow from it; a group that the end of an epoch cuts short has the
     * number of its own samples as divisor. */
    uint64_t accumulate;
    uint64_t batches_left; /* of this epoch, after this micro-batch; a HOLD on the last one is taken */
    uint64_t n_buffer_elements;
    uint64_t updates; /* taken so far; position.step counts vetoed ones too */
} tctl_training;

typedef struct tctl_hooks {
    uint32_t struct_size, reserved;
    tctl_status (*run_begin)(tctl_stage *, tctl_training *, tctl_error *);   /* [main] */
    tctl_status (*epoch_begin)(tctl_stage *, tctl_training *, tctl_error *); /* [step] */
    tctl_status (*batch_ready)(tctl_stage *, tctl_training *, tctl_error *); /* [step] */
    tctl_status (*loss_ready)(tctl_stage *, tctl_training *, tctl_error *);  /* [step] */
    /* *action comes in as decided so far; SKIP outranks HOLD outranks TAKE. [step] */
    tctl_status (*gradients_ready)(tctl_stage *, tctl_training *, int32_t *action, tctl_error *);
    tctl_status (*step_done)(tctl_stage *, tctl_training *, tctl_error *); /* [step] */
    tctl_status (*epoch_end)(tctl_stage *, tctl_training *, tctl_error *); /* [step] */
    tctl_status (*run_end)(tctl_stage *, tctl_training *, tctl_error *);   /* [main] */
} tctl_hooks;

#ifdef __cplusplus
}
#endif

#endif
