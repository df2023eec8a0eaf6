/* SPDX-License-Identifier: Apache-2.0 */
/* Inside a network: what build.c lays out and network.c runs. */
#ifndef TCTL_ENGINE_BUILD_H
#define TCTL_ENGINE_BUILD_H

#include "base/arena.h"
#include "engine/loss.h"
#include "engine/op.h"

struct tctl_network {
    tctl_arena *arena; /* operations, names, plans */
    tctl_pool *pool;
    const tctl_simd *simd;
    uint64_t seed;
    uint32_t max_batch, n_operations;
    tctl_operation *operations;
    bool *computes_gradient; /* [n_operations]: somebody before it, or itself, has parameters */
    tctl_network_memory memory;
    tctl_loss loss;
    int32_t token_dtype;  /* of the input if it is token numbers, else 0 */
    int64_t positions;    /* token numbers of a sample */
    int64_t vocabulary;   /* token numbers are below it */
    int32_t *tokens;      /* [max_batch, positions], of the batch, checked */
    const float *outputs; /* of the last operation; NULL: it is the batch's x */
    float *output_gradient;
    float *activations; /* all that lives between operations: outputs, gradients, what is saved */
    float *scratch;     /* shared, then one part for each thread */
    size_t shared_floats, scratch_stride;
};

/* The operation that the loss reads, or TCTL_MODEL_INPUT. */
static inline int32_t tctl_build_last_source(const tctl_network *net)
{
    const tctl_operation *last = &net->operations[net->n_operations - 1];
    return last->flags & TCTL_OP_ALIAS ? last->sources[0] : (int32_t)net->n_operations - 1;
}

/* Operations, shapes, parameters; what is computed together; then memory. The network is zeroed but for pool, simd, seed, and max_batch. */
tctl_status tctl_build_operations(tctl_network *, const tctl_network_request *, tctl_error *err);
void tctl_build_fusions(tctl_network *); /* operators take those behind them into their own pass */
tctl_status tctl_build_memory(tctl_network *, tctl_error *err);

#endif
