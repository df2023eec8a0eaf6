/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model as a graph of operators: the intermediate representation that specs are turned into, that
 * `graph` stages rewrite, and that trainers build and exporters read.
 *
 * Nodes are in topological order: a node's inputs stand before it. Input -1 is the batch's "image" field.
 * The last node is the loss if its operator says so, else the trainer adds softmax cross-entropy behind it.
 */
#ifndef TRAINCTL_MODEL_H
#define TRAINCTL_MODEL_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_MODEL_ID        "trainctl.model/1"
#define TCTL_MODEL_INPUT     (-1)
#define TCTL_NODE_MAX_INPUTS 8

/* A named setting of a node. The operators' own tables say which ones they read; a `graph` stage may add
 * others, whose names contain a dot. A trainer refuses the ones that it does not know (TCTL_EUNSUPPORTED), except
 * that it may ignore "memory.*". Names with a meaning so far:
 *   amp.dtype         ENUM f32 | bf16 | f16: operands are rounded to it, sums stay f32. Changes results.
 *   memory.recompute  BOOL: the activation is computed again in the backward pass. Changes nothing.
 *   train.freeze      BOOL: the node's parameters are not updated. Changes results. */
typedef struct tctl_attr {
    const char *name;
    int32_t type; /* TCTL_BOOL and TCTL_INT use i, TCTL_REAL r, TCTL_TEXT, TCTL_ENUM and TCTL_PATH text */
    int32_t reserved;
    int64_t i;
    double r;
    const char *text;
} tctl_attr;

typedef struct tctl_node {
    const char *name; /* unique; names the parameters ("conv1" has "conv1.weight") and the random streams */
    const char *op;
    uint32_t n_inputs, n_attrs;
    int32_t inputs[TCTL_NODE_MAX_INPUTS]; /* indices of nodes, or TCTL_MODEL_INPUT */
    const tctl_attr *attrs;
    const tctl_config *config; /* where the spec wrote it, for errors; NULL for an inserted node */
} tctl_node;

typedef struct tctl_model tctl_model;

/* Service TCTL_MODEL_ID. Pointers that the readers return are valid until the model changes. [main] */
typedef struct tctl_model_service {
    uint32_t struct_size, reserved;
    uint32_t (*n_nodes)(const tctl_model *);
    const tctl_node *(*node)(const tctl_model *, uint32_t i);
    /* Inserts a node before position i (n_nodes: at the end), copying all it is given. Later nodes' inputs are
     * renumbered; those that read input `inputs[0]` go on doing so (see `redirect`). TCTL_EINVAL for a name
     * that exists or an input that does not stand before i. */
    tctl_status (*insert)(tctl_model *, uint32_t i, const tctl_node *node, tctl_error *);
    /* Makes every node from position `first` on that reads `from` read `to` instead. */
    tctl_status (*redirect)(tctl_model *, uint32_t first, int32_t from, int32_t to, tctl_error *);
    /* Removes a node with one input; its readers read that input. TCTL_EINVAL with more inputs. */
    tctl_status (*remove)(tctl_model *, uint32_t i, tctl_error *);
    /* Sets or replaces an attribute. */
    tctl_status (*set)(tctl_model *, uint32_t i, const tctl_attr *attr, tctl_error *);
} tctl_model_service;

/* The attribute of that name, or NULL. */
static inline const tctl_attr *tctl_node_attr(const tctl_node *node, const char *name)
{
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        if (strcmp(node->attrs[i].name, name) == 0)
            return &node->attrs[i];
    }
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
