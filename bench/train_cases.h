/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The networks of bench/train: cnn, resnet9 (examples/resnet9), vit-tiny (examples/vit), gpt-mini (examples/char-gpt
 * without dropout, with a vocabulary of 256). bench/train_torch.py has the same ones.
 */
#ifndef TCTL_BENCH_TRAIN_CASES_H
#define TCTL_BENCH_TRAIN_CASES_H

#include "base/error.h"
#include "trainctl/model.h"
#include "trainctl/tensor.h"

/* A model that grows at its end; after an error nothing is added any more. */
typedef struct bench_graph {
    tctl_model *model;
    tctl_status status;
    tctl_error *err;
} bench_graph;

typedef struct bench_case {
    const char *name;
    tctl_field input; /* images, or token numbers u8 below n_classes */
    uint32_t batch, n_classes;
    uint32_t n_labels; /* of a sample, as tctl_network_request has it */
    void (*build)(bench_graph *);
} bench_case;

extern const bench_case bench_cases[];
extern const uint32_t bench_n_cases;

#endif
