/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are computed in one pass over memory: a batch-norm takes the ReLU and the max-pool behind it along, if
 * nobody else reads what is between them. Every element is computed by the same operations in the same order, so no bit
 * changes; what is between is never stored. An operator that was taken along becomes an alias of the one that took it. And
 * convolutions help the batch-norms around them: they sum for the one behind, make its gradient in pieces when they need
 * them, and normalize what they read from the one before.
 */
#include "engine/build.h"
#include "engine/conv.h"
#include "engine/maxpool.h"

enum { NONE = -1, MAX_TAPS = 255 /* a winner's number is a byte */ };

/* The only operation that reads operation i; NONE if several do, or the loss. */
static int32_t only_reader(const tctl_network *net, int32_t i)
{
    int32_t reader = NONE, readers = tctl_build_last_source(net) == i;
    for (uint32_t k = 0; k < net->n_operations; k++) {
        const tctl_operation *other = &net->operations[k];
        for (uint32_t j = 0; !(other->flags & TCTL_OP_ALIAS) && j < other->n_inputs; j++) {
            if (other->sources[j] == i) {
                reader = (int32_t)k;
                readers++;
            }
        }
    }
    return readers == 1 ? reader : NONE;
}

/* Operation i shows what `taken` showed. */
static void take(tctl_network *net, int32_t i, int32_t taken)
{
    net->operations[taken].flags = TCTL_OP_ALIAS;
    for (uint32_t k = 0; k < net->n_operations; k++) {
        tctl_operation *other = &net->operations[k];
        for (uint32_t j = 0; j < other->n_inputs; j++) {
            if (other->sources[j] == taken)
                other->sources[j] = i;
        }
    }
}

static void take_relu(tctl_network *net, int32_t i)
{
    const int32_t next = only_reader(net, i);
    if (next == NONE || net->operations[next].op != &tctl_op_relu)
        return;
    net->operations[i].tail.relu = true;
    take(net, i, next);
}

static void take_pool(tctl_network *net, int32_t i)
{
    const int32_t next = only_reader(net, i);
    if (next == NONE || net->operations[next].op != &tctl_op_maxpool)
        return;
    tctl_operation *self = &net->operations[i];
    const tctl_window *w = tctl_maxpool_window(&net->operations[next]);
    if (w->stride != w->kernel || w->pad != 0 || w->kernel * w->kernel > MAX_TAPS)
        return;
    self->tail.pool = w;
    self->out = net->operations[next].out;
    self->saved_bytes += (size_t)tctl_shape_count(&self->out) * net->max_batch; /* winners */
    self->flags &= ~(uint32_t)TCTL_OP_GRADIENT_IN_PLACE;
    if (self->tail.relu)
        self->flags |= TCTL_OP_KEEPS_OUTPUT;
    take(net, i, next);
}

/* The convolution before a batch-norm sums for it, and makes its gradient itself. */
static void help(tctl_network *net, int32_t i)
{
    tctl_operation *self = &net->operations[i];
    if (self->sources[0] < 0 || only_reader(net, self->sources[0]) != i)
        return;
    tctl_operation *conv = &net->operations[self->sources[0]];
    const uint32_t threads = tctl_pool_threads(net->pool);
    if (conv->op != &tctl_op_conv)
        return;
    if (tctl_conv_sums(conv, net->max_batch, threads)) {
        conv->summed = self;
        self->flags |= TCTL_OP_SUMMED;
    }
    if (tctl_conv_borrows(net->simd, conv, net->max_batch, threads)) {
        conv->lender = self;
        self->flags |= TCTL_OP_LENDS;
    }
}

/* The convolution behind a batch-norm normalizes what it reads. */
static void defer(tctl_network *net, int32_t i)
{
    tctl_operation *self = &net->operations[i];
    const int32_t next = only_reader(net, i);
    if (next == NONE || net->operations[next].op != &tctl_op_conv || self->sources[0] < 0 ||
        self->tail.pool || !tctl_conv_normalizes(&net->operations[next]))
        return;
    net->operations[next].before = self;
    self->flags |= TCTL_OP_DEFERRED;
}

void tctl_build_fusions(tctl_network *net)
{
    for (int32_t i = 0; i < (int32_t)net->n_operations; i++) {
        if (net->operations[i].op != &tctl_op_batchnorm)
            continue;
        take_relu(net, i);
        take_pool(net, i);
        help(net, i);
    }
    for (int32_t i = 0; i < (int32_t)net->n_operations; i++) {
        if (net->operations[i].op == &tctl_op_batchnorm)
            defer(net, i);
    }
}
