/* SPDX-License-Identifier: Apache-2.0 */
/* See network.h: creating, running and destroying a network. build.c makes its operations, fuse.c joins them,
 * build_memory.c lays them out. */
#include "engine/network.h"

#include <stdlib.h>

#include "engine/build.h"

/* ---- life ---------------------------------------------------------------------------------------------- */

void tctl_network_destroy(tctl_network *net)
{
    if (!net)
        return;
    free(net->memory.param);
    free(net->memory.grad);
    free(net->memory.buffer);
    free(net->activations);
    free(net->scratch);
    free(net->loss.losses);
    free(net->loss.right);
    free(net->tokens);
    tctl_arena_destroy(net->arena);
    free(net);
}

static tctl_status check_request(const tctl_network_request *r, tctl_error *err)
{
    if (r->max_batch < 1)
        return tctl_fail(err, TCTL_EINVAL, "a network needs a batch of at least 1");
    if (!(r->label_smoothing >= 0 && r->label_smoothing < 1))
        return tctl_fail(err, TCTL_EINVAL, "label smoothing is %g; it must be at least 0 and less than 1",
                         r->label_smoothing);
    return TCTL_OK;
}

static void initialize(tctl_network *net)
{
    const tctl_op_site site = {net->arena, net->simd, net->max_batch, net->seed};
    for (uint32_t i = 0; i < net->n_operations; i++) {
        tctl_operation *self = &net->operations[i];
        if (self->op->initialize)
            self->op->initialize(&site, self);
        self->node = NULL;
    }
}

static tctl_status build(tctl_network *net, const tctl_network_request *request, tctl_error *err)
{
    net->arena = tctl_arena_create();
    if (!net->arena)
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for the network");
    tctl_status st = tctl_simd_choose(getenv("TRAINCTL_SIMD"), &net->simd, err);
    if (!st)
        st = tctl_build_operations(net, request, err);
    if (!st)
        tctl_build_fusions(net);
    if (!st)
        st = tctl_build_memory(net, err);
    if (!st)
        initialize(net);
    return st;
}

tctl_status tctl_network_create(const tctl_network_request *request, tctl_network **ret, tctl_error *err)
{
    tctl_status st = check_request(request, err);
    if (st)
        return st;
    tctl_network *net = calloc(1, sizeof *net);
    if (!net)
        return tctl_fail_memory(err, sizeof *net);
    net->pool = request->pool;
    net->seed = request->seed;
    net->max_batch = request->max_batch;
    st = build(net, request, err);
    if (st) {
        tctl_network_destroy(net);
        return st;
    }
    *ret = net;
    return TCTL_OK;
}

const tctl_network_memory *tctl_network_memory_of(tctl_network *net)
{
    return &net->memory;
}

/* ---- a batch ------------------------------------------------------------------------------------------- */

static tctl_status check_batch(const tctl_network *net, const tctl_network_batch *b, tctl_error *err)
{
    if (b->n < 1 || b->n > net->max_batch)
        return tctl_fail(err, TCTL_EINVAL, "a batch of %u samples; the network was made for 1 to %u", b->n,
                         net->max_batch);
    if (!(b->divisor > 0))
        return tctl_fail(err, TCTL_EINVAL, "the divisor of a batch is %g; it must be positive", b->divisor);
    const int64_t labels = net->loss.labels;
    for (int64_t i = 0; i < b->n * labels; i++) {
        if (b->labels[i] < 0 || b->labels[i] >= net->loss.classes)
            return tctl_fail(err, TCTL_EFORMAT, "sample %llu has label %lld; labels are 0 to %lld",
                             (unsigned long long)b->indices[i / labels], (long long)b->labels[i],
                             (long long)net->loss.classes - 1);
    }
    return TCTL_OK;
}

static int64_t token_at(const tctl_network *net, const void *tokens, int64_t i)
{
    if (net->token_dtype == TCTL_U8)
        return ((const uint8_t *)tokens)[i];
    return net->token_dtype == TCTL_I32 ? ((const int32_t *)tokens)[i] : ((const int64_t *)tokens)[i];
}

/* The batch's token numbers, checked, for the operators. */
static tctl_status take_tokens(tctl_network *net, const tctl_network_batch *b, tctl_error *err)
{
    for (int64_t i = 0; net->token_dtype && i < b->n * net->positions; i++) {
        int64_t token = token_at(net, b->tokens, i);
        if (token < 0 || token >= net->vocabulary)
            return tctl_fail(err, TCTL_EFORMAT,
                             "sample %llu has token %lld at position %lld; tokens are 0 to %lld",
                             (unsigned long long)b->indices[i / net->positions], (long long)token,
                             (long long)(i % net->positions), (long long)net->vocabulary - 1);
        net->tokens[i] = (int32_t)token;
    }
    return TCTL_OK;
}

static tctl_op_call call_of(const tctl_network *net, const tctl_network_batch *b, const tctl_operation *self)
{
    return (tctl_op_call){.self = self,
                          .batch = b,
                          .n = b->n,
                          .tokens = net->tokens,
                          .pool = net->pool,
                          .simd = net->simd,
                          .shared = net->scratch,
                          .scratch = net->scratch + net->shared_floats,
                          .scratch_stride = net->scratch_stride};
}

static void compute(tctl_network *net, const tctl_network_batch *b, bool training)
{
    for (uint32_t i = 0; i < net->n_operations; i++) {
        tctl_operation *self = &net->operations[i];
        if (self->flags & TCTL_OP_ALIAS)
            continue;
        for (uint32_t j = 0; j < self->n_inputs; j++) {
            if (self->sources[j] == TCTL_MODEL_INPUT)
                self->x[j] = b->x;
        }
        const tctl_op_call call = call_of(net, b, self);
        if (training || !self->op->evaluate)
            self->op->forward(&call);
        else
            self->op->evaluate(&call);
    }
}

static tctl_status run(tctl_network *net, const tctl_network_batch *b, bool training,
                       tctl_network_result *ret, tctl_error *err)
{
    tctl_status st = check_batch(net, b, err);
    if (!st)
        st = take_tokens(net, b, err);
    if (st)
        return st;
    compute(net, b, training);
    const float *outputs = net->outputs ? net->outputs : b->x;
    float sum;
    uint64_t correct;
    tctl_loss_forward(&net->loss, net->pool, outputs, b->labels, b->n, &sum, &correct);
    *ret = (tctl_network_result){.loss = (float)((double)sum / (b->divisor * (double)net->loss.labels)),
                                 .correct = correct,
                                 .outputs = outputs,
                                 .n_classes = (uint32_t)net->loss.classes};
    return TCTL_OK;
}

tctl_status tctl_network_forward(tctl_network *net, const tctl_network_batch *b, tctl_network_result *ret,
                                 tctl_error *err)
{
    return run(net, b, true, ret, err);
}

tctl_status tctl_network_evaluate(tctl_network *net, const tctl_network_batch *b, tctl_network_result *ret,
                                  tctl_error *err)
{
    return run(net, b, false, ret, err);
}

tctl_status tctl_network_backward(tctl_network *net, const tctl_network_batch *b, tctl_error *err)
{
    tctl_status st = check_batch(net, b, err);
    if (!st)
        st = take_tokens(net, b, err);
    if (st || !net->output_gradient)
        return st;
    tctl_loss_backward(&net->loss, net->pool, net->outputs, b->labels, b->n,
                       (float)(b->loss_scale / (b->divisor * (double)net->loss.labels)),
                       net->output_gradient);
    for (uint32_t i = net->n_operations; i-- > 0;) {
        const tctl_operation *self = &net->operations[i];
        if ((self->flags & TCTL_OP_ALIAS) || !net->computes_gradient[i])
            continue;
        const tctl_op_call call = call_of(net, b, self);
        self->op->backward(&call);
    }
    return TCTL_OK;
}
