/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that can be computed: parameters, activations, forward, backward.
 *
 * Built once from the graph and the shape of a sample, for batches up to `max_batch`; nothing is allocated after
 * that. One arena holds parameters, one gradients, one activations. Layout is channels-last: [N,H,W,C].
 *
 * Numerics (the exact contract): every output element of a product is one chain of fused multiply-adds in
 * ascending k, from the bias or zero; sums over a batch are fixed leaves of consecutive samples joined by one
 * binary tree over the leaf number. Which thread computes what never shows. docs/numerics.md has every formula.
 */
#ifndef TCTL_ENGINE_NETWORK_H
#define TCTL_ENGINE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/model.h"
#include "trainctl/tensor.h"

typedef struct tctl_network tctl_network;

typedef struct tctl_network_request {
    const tctl_model *model;
    const tctl_model_service *models;
    const tctl_field *input; /* f32 [H,W,C] or [features], or token numbers u8, i32 or i64 [positions] */
    uint32_t max_batch;
    uint32_t n_classes;     /* the last operator's output must have as many elements; 0: whatever it has */
    uint32_t n_labels;      /* of a sample: 0 for one, else one per position of the output sequence */
    double label_smoothing; /* 0 <= e < 1 */
    uint64_t seed;          /* initial weights: stream "init.<node>.<parameter>"; dropout: "dropout.<node>" */
    tctl_pool *pool;
} tctl_network_request;

/* TCTL_ESPEC, with the operator's name, if the model does not fit (kernel larger than the image, an unknown operator,
 * more than 2^31 elements, …); TCTL_EINVAL for a request that makes no sense. The only place that reads the environment
 * variable TRAINCTL_SIMD (tctl_simd_choose): it decides the time, not the bits. */
tctl_status tctl_network_create(const tctl_network_request *, tctl_network **ret, tctl_error *err);
void tctl_network_destroy(tctl_network *); /* NULL is fine */

/* The operators' option tables: for trainctl.trainer/1, whose descriptor is constant data that is read without running
 * code, so a function would not do. TCTL_NETWORK_OPS is their number. */
enum { TCTL_NETWORK_OPS = 22 };
extern const tctl_op_schema tctl_network_op_table[TCTL_NETWORK_OPS];

/* The flat arrays, 64-byte aligned, and what lies in them. Live as long as the network. */
typedef struct tctl_network_memory {
    uint32_t n_parameters, n_buffers;
    const tctl_parameter *parameters, *buffers;
    uint64_t n_elements, n_buffer_elements; /* tensors are padded to 16 elements; padding stays 0 */
    float *param, *grad, *buffer;
    uint64_t activation_bytes, parameter_bytes; /* for reports */
} tctl_network_memory;
const tctl_network_memory *tctl_network_memory_of(tctl_network *);

typedef struct tctl_network_batch {
    const float *x;          /* [n, input dims]; unused if the input is token numbers */
    const void *tokens;      /* [n, positions] token numbers, of the input field's type */
    const int64_t *labels;   /* [n, labels], 0..classes-1; anything else is TCTL_EFORMAT naming the sample */
    const uint64_t *indices; /* [n] global sample indices: addresses of dropout */
    uint32_t n;
    uint32_t step;  /* `when` of dropout's addresses */
    double divisor; /* per-sample losses (means over the sample's labels) and gradients are divided by it */
    double loss_scale; /* gradients are multiplied by it; a power of two */
    bool accumulate;   /* add to the gradients that are there */
} tctl_network_batch;

typedef struct tctl_network_result {
    float loss;           /* sum of the samples' losses / divisor */
    uint64_t correct;     /* labels at which the largest output is; ties go to the lowest class */
    const float *outputs; /* [n, labels, n_classes] logits, valid until the next call */
    uint32_t n_classes;
} tctl_network_result;

/* Training mode: batch statistics, dropout on, running statistics updated. [step] */
tctl_status tctl_network_forward(tctl_network *, const tctl_network_batch *, tctl_network_result *ret,
                                 tctl_error *err);
/* Gradients of the last training forward into `grad`. [step] */
tctl_status tctl_network_backward(tctl_network *, const tctl_network_batch *, tctl_error *err);
/* Evaluation mode: running statistics, dropout off, nothing is changed. [step] */
tctl_status tctl_network_evaluate(tctl_network *, const tctl_network_batch *, tctl_network_result *ret,
                                  tctl_error *err);

#endif
