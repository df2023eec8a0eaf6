/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of bench/train, as lists of nodes. bench/train_torch.py has the same ones. */
#ifndef TCTL_BENCH_TRAIN_CASES_H
#define TCTL_BENCH_TRAIN_CASES_H

#include "trainctl/model.h"
#include "trainctl/tensor.h"

typedef struct bench_case {
    const char *name;
    tctl_field input;
    uint32_t batch, n_classes, n_nodes;
    const tctl_node *nodes;
} bench_case;

extern const bench_case bench_cases[];
extern const uint32_t bench_n_cases;

#endif
