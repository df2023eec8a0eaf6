/* SPDX-License-Identifier: Apache-2.0 */
/* Small models for the engine's tests: a list of operators, as the model service hands it to a network. */
#ifndef TCTL_TESTS_ENGINE_TOY_H
#define TCTL_TESTS_ENGINE_TOY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/network.h"
#include "numbers.h"

enum { TOY_MAX_OPS = 24 };

/* Zero means: not given, so the operator's default. `from` and `from2` count operators from 1; 0: the one before, -1: the input. */
typedef struct toy_op {
    const char *op;
    int out, kernel, stride, pad, dilation, groups, no_bias, not_affine;
    double p;
    int from, from2, from3;
    double by;
    int tanh_form, heads, causal, vocabulary;
    int labels; /* of a sample, one per position: said by the first operator; 0: one */
} toy_op;

struct tctl_model {
    tctl_node nodes[TOY_MAX_OPS];
    tctl_attr attrs[TOY_MAX_OPS][10];
    char names[TOY_MAX_OPS][32];
    uint32_t n;
};

static inline uint32_t toy_n_nodes(const tctl_model *m)
{
    return m->n;
}

static inline const tctl_node *toy_node(const tctl_model *m, uint32_t i)
{
    return &m->nodes[i];
}

static const tctl_model_service toy_models = {
    .struct_size = sizeof(tctl_model_service), .n_nodes = toy_n_nodes, .node = toy_node};

static inline void toy_int(tctl_model *m, uint32_t i, const char *name, int value)
{
    if (value)
        m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = name, .type = TCTL_INT, .i = value};
}

/* Nodes are named after operator and place: "conv0". */
static inline void toy_build(tctl_model *m, const toy_op *ops, uint32_t n)
{
    memset(m, 0, sizeof *m);
    m->n = n;
    for (uint32_t i = 0; i < n; i++) {
        const toy_op *o = &ops[i];
        snprintf(m->names[i], sizeof m->names[i], "%s%u", o->op, i);
        m->nodes[i] = (tctl_node){.name = m->names[i], .op = o->op, .n_inputs = 1, .attrs = m->attrs[i]};
        m->nodes[i].inputs[0] = o->from < 0 ? TCTL_MODEL_INPUT : o->from ? o->from - 1 : (int32_t)i - 1;
        if (o->from2) {
            m->nodes[i].inputs[1] = o->from2 < 0 ? TCTL_MODEL_INPUT : o->from2 - 1;
            m->nodes[i].n_inputs = 2;
        }
        if (o->from3) {
            m->nodes[i].inputs[2] = o->from3 - 1;
            m->nodes[i].n_inputs = 3;
        }
        toy_int(m, i, "heads", o->heads);
        toy_int(m, i, "vocabulary", o->vocabulary);
        if (o->causal)
            m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = "causal", .type = TCTL_BOOL, .i = 1};
        if (o->tanh_form)
            m->attrs[i][m->nodes[i].n_attrs++] =
                (tctl_attr){.name = "form", .type = TCTL_ENUM, .text = "tanh"};
        if (o->by != 0)
            m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = "by", .type = TCTL_REAL, .r = o->by};
        toy_int(m, i, "out", o->out);
        toy_int(m, i, "kernel", o->kernel);
        toy_int(m, i, "stride", o->stride);
        toy_int(m, i, "pad", o->pad);
        toy_int(m, i, "dilation", o->dilation);
        toy_int(m, i, "groups", o->groups);
        if (o->no_bias)
            m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = "bias", .type = TCTL_BOOL, .i = 0};
        if (o->not_affine)
            m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = "affine", .type = TCTL_BOOL, .i = 0};
        if (o->p > 0)
            m->attrs[i][m->nodes[i].n_attrs++] = (tctl_attr){.name = "p", .type = TCTL_REAL, .r = o->p};
    }
}

/* One problem: a model, a batch, and what is asked of it. */
typedef struct toy {
    const char *name;
    int height, width, channels; /* of a sample; features (or positions with token numbers) if height is 0 */
    int batch;
    double smoothing;
    toy_op ops[TOY_MAX_OPS];
} toy;

static inline uint32_t toy_count(const toy *t)
{
    uint32_t n = 0;
    while (n < TOY_MAX_OPS && t->ops[n].op)
        n++;
    return n;
}

/* Token numbers of the input are below it; 0: the input is floats. */
static inline int toy_tokens(const toy *t)
{
    int least = 0;
    for (uint32_t i = 0; i < toy_count(t); i++) {
        if (t->ops[i].vocabulary && (least == 0 || t->ops[i].vocabulary < least))
            least = t->ops[i].vocabulary;
    }
    return least;
}

static inline tctl_field toy_field(const toy *t)
{
    if (toy_tokens(t))
        return (tctl_field){.name = "tokens", .dtype = TCTL_I64, .rank = 1, .dims = {t->channels}};
    if (t->height == 0)
        return (tctl_field){.name = "image", .dtype = TCTL_F32, .rank = 1, .dims = {t->channels}};
    return (tctl_field){
        .name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {t->height, t->width, t->channels}};
}

enum { TOY_SEED = 1029 };

static inline tctl_status toy_create(const toy *t, tctl_pool *pool, tctl_network **ret, tctl_error *err)
{
    static tctl_model model;
    toy_build(&model, t->ops, toy_count(t));
    const tctl_field field = toy_field(t);
    const tctl_network_request request = {.model = &model,
                                          .models = &toy_models,
                                          .input = &field,
                                          .max_batch = (uint32_t)t->batch,
                                          .label_smoothing = t->smoothing,
                                          .n_labels = (uint32_t)t->ops[0].labels,
                                          .seed = TOY_SEED,
                                          .pool = pool};
    return tctl_network_create(&request, ret, err);
}

/* A batch of numbers that depend on the sample's global index only. */
typedef struct toy_batch {
    tctl_network_batch b;
    float *x;
    int64_t *labels, *tokens;
    uint64_t *indices;
} toy_batch;

static inline toy_batch toy_make_batch(const toy *t, int n, uint64_t first, int classes)
{
    size_t size = (size_t)(t->height ? t->height * t->width * t->channels : t->channels);
    const int labels = t->ops[0].labels ? t->ops[0].labels : 1;
    toy_batch r = {.x = random_floats((size_t)n * size, 0),
                   .labels = calloc((size_t)(n * labels), sizeof(int64_t)),
                   .tokens = calloc((size_t)n * size, sizeof(int64_t)),
                   .indices = calloc((size_t)n, sizeof(uint64_t))};
    if (!r.labels || !r.indices || !r.tokens)
        abort();
    for (int i = 0; i < n; i++) {
        fill_floats(r.x + (size_t)i * size, size, 77 + first + (uint64_t)i);
        for (int k = 0; k < labels; k++)
            r.labels[i * labels + k] =
                (int64_t)(((first + (uint64_t)i) * 7 + (uint64_t)k) % (uint64_t)classes);
        uint64_t number = 99 + first + (uint64_t)i;
        for (size_t k = 0; toy_tokens(t) && k < size; k++) { /* small numbers are frequent */
            const uint64_t below = next_number(&number) % (uint64_t)toy_tokens(t) + 1;
            r.tokens[(size_t)i * size + k] = (int64_t)(next_number(&number) % below);
        }
        r.indices[i] = first + (uint64_t)i;
    }
    r.b = (tctl_network_batch){.x = r.x,
                               .tokens = r.tokens,
                               .labels = r.labels,
                               .indices = r.indices,
                               .n = (uint32_t)n,
                               .step = 3,
                               .divisor = n,
                               .loss_scale = 1};
    return r;
}

static inline void toy_free_batch(toy_batch *b)
{
    free(b->x);
    free(b->labels);
    free(b->tokens);
    free(b->indices);
}

#endif
