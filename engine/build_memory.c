/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where everything lies. Parameters, gradients and buffers are flat arrays. Outputs, gradients of outputs, and what
 * operators save for their backward share one block, planned by when each is needed: moments are the operations'
 * forwards 0..n-1, the loss n, and the backwards n+1..2n in reverse. An operator may write over its input, and over
 * the gradient that it reads, if nobody else needs them.
 */
#include <stdlib.h>

#include "base/size.h"
#include "engine/build.h"
#include "engine/plan.h"

enum { ELEMENTS = 16, NONE = -1 }; /* a cache line of floats */

/* What is known of an operation's output. */
typedef struct value {
    uint32_t readers; /* operations that compute from it, and the loss */
    int32_t storage;  /* span of the output */
    int32_t gradient; /* span of its gradient, or NONE */
    int32_t saved;    /* span of what is saved, or NONE */
} value;

typedef struct layout {
    tctl_network *net;
    value *values;    /* [n_operations] */
    tctl_span *spans; /* [3 * n_operations] */
    int32_t n_spans, n;
} layout;

static float *allocate_floats(size_t n)
{
    size_t bytes;
    if (!tctl_mul_size((n + ELEMENTS - 1) / ELEMENTS, ELEMENTS * sizeof(float), &bytes))
        return NULL;
    float *p = aligned_alloc(64, bytes ? bytes : 64);
    if (p)
        memset(p, 0, bytes ? bytes : 64);
    return p;
}

/* ---- parameters ---------------------------------------------------------------------------------------- */

static void place_tensors(const tctl_parameter *from, uint32_t n, tctl_parameter *to, uint64_t *offset)
{
    for (uint32_t i = 0; i < n; i++) {
        to[i] = from[i];
        to[i].offset = *offset;
        *offset += (from[i].count + ELEMENTS - 1) / ELEMENTS * ELEMENTS;
    }
}

static tctl_status allocate_parameters(tctl_network *net, tctl_error *err)
{
    tctl_network_memory *m = &net->memory;
    size_t most = net->n_operations * (size_t)TCTL_OP_MAX_PARAMETERS;
    tctl_parameter *parameters = tctl_arena_take_array(net->arena, most, sizeof *parameters);
    tctl_parameter *buffers = tctl_arena_take_array(net->arena, most, sizeof *buffers);
    if (!parameters || !buffers)
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for the list of parameters");
    for (uint32_t i = 0; i < net->n_operations; i++) {
        const tctl_operation *self = &net->operations[i];
        place_tensors(self->parameters, self->n_parameters, parameters + m->n_parameters, &m->n_elements);
        place_tensors(self->buffers, self->n_buffers, buffers + m->n_buffers, &m->n_buffer_elements);
        m->n_parameters += self->n_parameters;
        m->n_buffers += self->n_buffers;
    }
    m->parameters = parameters;
    m->buffers = buffers;
    m->param = allocate_floats(m->n_elements);
    m->grad = allocate_floats(m->n_elements);
    m->buffer = allocate_floats(m->n_buffer_elements);
    m->parameter_bytes = (2 * m->n_elements + m->n_buffer_elements) * sizeof(float);
    return m->param && m->grad && m->buffer ? TCTL_OK : tctl_fail_memory(err, m->parameter_bytes);
}

static void bind_parameters(tctl_network *net)
{
    const tctl_network_memory *m = &net->memory;
    uint32_t parameter = 0, buffer = 0;
    for (uint32_t i = 0; i < net->n_operations; i++) {
        tctl_operation *self = &net->operations[i];
        for (uint32_t k = 0; k < self->n_parameters; k++, parameter++) {
            self->param[k] = m->param + m->parameters[parameter].offset;
            self->grad[k] = m->grad + m->parameters[parameter].offset;
        }
        for (uint32_t k = 0; k < self->n_buffers; k++, buffer++)
            self->buffer[k] = m->buffer + m->buffers[buffer].offset;
    }
}

/* ---- who shares ---------------------------------------------------------------------------------------- */

static int32_t forward_moment(int32_t i)
{
    return i;
}

static int32_t backward_moment(const layout *l, int32_t i)
{
    return 2 * l->n + 1 - i;
}

static int32_t new_span(layout *l, size_t bytes, int32_t moment)
{
    l->spans[l->n_spans] = (tctl_span){.bytes = bytes, .from = moment, .to = moment};
    return l->n_spans++;
}

static void need(tctl_span *span, int32_t moment)
{
    if (moment < span->from)
        span->from = moment;
    if (moment > span->to)
        span->to = moment;
}

static bool is_alias(const layout *l, int32_t i)
{
    return l->net->operations[i].flags & TCTL_OP_ALIAS;
}

static void count_readers(layout *l)
{
    for (int32_t i = 0; i < l->n; i++) {
        for (uint32_t j = 0; !is_alias(l, i) && j < l->net->operations[i].n_inputs; j++) {
            if (l->net->operations[i].sources[j] >= 0)
                l->values[l->net->operations[i].sources[j]].readers++;
        }
    }
    if (tctl_build_last_source(l->net) >= 0)
        l->values[tctl_build_last_source(l->net)].readers++;
}

static size_t output_bytes(const layout *l, int32_t i)
{
    return (size_t)tctl_shape_count(&l->net->operations[i].out) * l->net->max_batch * sizeof(float);
}

/* Outputs: an operator works in place if it can, and if its input has no other reader and no writer that needs it. */
static void plan_output(layout *l, int32_t i)
{
    const tctl_operation *self = &l->net->operations[i];
    const int32_t source = self->sources[0];
    const bool in_place = (self->flags & TCTL_OP_IN_PLACE) && source >= 0 && l->values[source].readers == 1 &&
                          !(l->net->operations[source].flags & TCTL_OP_KEEPS_OUTPUT);
    const size_t bytes = self->flags & TCTL_OP_DEFERRED ? 0 : output_bytes(l, i);
    l->values[i].storage = in_place ? l->values[source].storage : new_span(l, bytes, forward_moment(i));
    for (uint32_t j = 0; j < self->n_inputs; j++) {
        if (self->sources[j] < 0)
            continue;
        tctl_span *input = &l->spans[l->values[self->sources[j]].storage];
        need(input, forward_moment(i));
        if (self->flags & TCTL_OP_KEEPS_INPUT)
            need(input, backward_moment(l, i));
    }
    need(&l->spans[l->values[i].storage],
         self->flags & TCTL_OP_KEEPS_OUTPUT ? backward_moment(l, i) : forward_moment(i));
}

static void plan_saved(layout *l, int32_t i)
{
    const tctl_operation *self = &l->net->operations[i];
    l->values[i].saved = NONE;
    if (self->saved_bytes == 0)
        return;
    l->values[i].saved = new_span(l, self->saved_bytes, forward_moment(i));
    need(&l->spans[l->values[i].saved], backward_moment(l, i));
    if (self->flags & TCTL_OP_SUMMED)
        need(&l->spans[l->values[i].saved], forward_moment(self->sources[0]));
}

/* What a piece of the lender's gradient is made from is there until the borrower's backward. */
static void need_lender(layout *l, int32_t lender, int32_t moment)
{
    const value *v = &l->values[lender];
    need(&l->spans[l->values[l->net->operations[lender].sources[0]].storage], moment);
    need(&l->spans[v->gradient], moment);
    need(&l->spans[v->saved], moment);
    if (l->net->operations[lender].flags & TCTL_OP_KEEPS_OUTPUT)
        need(&l->spans[v->storage], moment);
}

/* Gradients, from the last operation to the first: each is written by the readers' backwards and read by its own. */
static void plan_gradient(layout *l, int32_t i)
{
    tctl_operation *self = &l->net->operations[i];
    if (!l->net->computes_gradient[i])
        return;
    if (self->lender) {
        need_lender(l, (int32_t)(self->lender - l->net->operations), backward_moment(l, i));
    } else {
        if (l->values[i].gradient == NONE) /* the last operation; its writer is the loss */
            l->values[i].gradient = new_span(l, output_bytes(l, i), l->n);
        need(&l->spans[l->values[i].gradient], backward_moment(l, i));
    }
    for (uint32_t j = 0; j < self->n_inputs; j++) {
        const int32_t source = self->sources[j];
        if (source < 0 || !l->net->computes_gradient[source] || (self->flags & TCTL_OP_LENDS))
            continue;
        value *v = &l->values[source];
        self->add_dx[j] = v->gradient != NONE;
        if (v->gradient == NONE) {
            bool in_place = j == 0 && (self->flags & TCTL_OP_GRADIENT_IN_PLACE) && v->readers == 1;
            v->gradient = in_place ? l->values[i].gradient
                                   : new_span(l, output_bytes(l, source), backward_moment(l, i));
        }
        need(&l->spans[v->gradient], backward_moment(l, i));
    }
}

static void plan_values(layout *l)
{
    const int32_t last = tctl_build_last_source(l->net);
    count_readers(l);
    for (int32_t i = 0; i < l->n; i++) {
        l->values[i].gradient = NONE;
        if (is_alias(l, i))
            continue;
        plan_output(l, i);
        plan_saved(l, i);
    }
    for (int32_t i = l->n - 1; i >= 0; i--) {
        if (!is_alias(l, i))
            plan_gradient(l, i);
    }
    if (last >= 0) /* the caller may look at the outputs until the next call */
        need(&l->spans[l->values[last].storage], backward_moment(l, 0));
}

/* ---- pointers ------------------------------------------------------------------------------------------ */

static float *at(const layout *l, int32_t span)
{
    return span == NONE ? NULL : l->net->activations + l->spans[span].offset / sizeof(float);
}

static void bind_values(const layout *l)
{
    const int32_t last = tctl_build_last_source(l->net);
    for (int32_t i = 0; i < l->n; i++) {
        tctl_operation *self = &l->net->operations[i];
        if (is_alias(l, i))
            continue;
        self->y = at(l, l->values[i].storage);
        self->dy = at(l, l->values[i].gradient);
        self->saved = at(l, l->values[i].saved);
        for (uint32_t j = 0; j < self->n_inputs; j++) {
            const int32_t source = self->sources[j];
            if (source < 0)
                continue;
            self->x[j] = at(l, l->values[self->before ? self->before->sources[0] : source].storage);
            self->dx[j] = at(l, l->values[source].gradient);
        }
    }
    l->net->outputs = last < 0 ? NULL : at(l, l->values[last].storage);
    l->net->output_gradient = last < 0 ? NULL : at(l, l->values[last].gradient);
}

static tctl_status allocate_scratch(tctl_network *net, tctl_error *err)
{
    for (uint32_t i = 0; i < net->n_operations; i++) {
        const tctl_operation *self = &net->operations[i];
        if (self->shared_floats > net->shared_floats)
            net->shared_floats = self->shared_floats;
        if (self->scratch_floats > net->scratch_stride)
            net->scratch_stride = self->scratch_floats;
    }
    net->shared_floats = (net->shared_floats + ELEMENTS - 1) / ELEMENTS * ELEMENTS;
    net->scratch_stride = (net->scratch_stride + ELEMENTS - 1) / ELEMENTS * ELEMENTS;
    size_t floats = net->shared_floats + net->scratch_stride * tctl_pool_threads(net->pool);
    net->scratch = allocate_floats(floats);
    const size_t labels = (size_t)net->max_batch * (size_t)net->loss.labels;
    net->loss.losses = allocate_floats(labels);
    net->loss.right = calloc(labels, 1);
    if (net->token_dtype)
        net->tokens = calloc((size_t)net->max_batch * (size_t)net->positions, sizeof *net->tokens);
    net->memory.activation_bytes += floats * sizeof(float);
    return net->scratch && net->loss.losses && net->loss.right && (net->tokens || !net->token_dtype)
               ? TCTL_OK
               : tctl_fail_memory(err, floats * sizeof(float));
}

tctl_status tctl_build_memory(tctl_network *net, tctl_error *err)
{
    layout l = {.net = net, .n = (int32_t)net->n_operations};
    tctl_status st = allocate_parameters(net, err);
    if (st)
        return st;
    bind_parameters(net);
    l.values = tctl_arena_take_array(net->arena, net->n_operations, sizeof *l.values);
    l.spans = tctl_arena_take_array(net->arena, 3 * (size_t)net->n_operations, sizeof *l.spans);
    if (!l.values || !l.spans)
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for the plan of the network's memory");
    plan_values(&l);
    size_t bytes = tctl_plan_spans(l.spans, l.n_spans);
    net->memory.activation_bytes = bytes;
    net->activations = allocate_floats(bytes / sizeof(float));
    if (!net->activations)
        return tctl_fail_memory(err, bytes);
    bind_values(&l);
    return allocate_scratch(net, err);
}
