/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See model.h. Nodes are an array that is moved on insertion and removal; whatever hangs on a node is in the
 * arena and never freed before the model: models are small and change a few times.
 */
#include "host/model.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/size.h"

struct tctl_model {
    tctl_arena *arena;
    tctl_node *nodes; /* [room] */
    uint32_t n, room;
};

static tctl_status fail_memory(tctl_error *err)
{
    return tctl_fail(err, TCTL_ENOMEM, "out of memory for the model's graph");
}

tctl_status tctl_model_create(tctl_model **ret, tctl_error *err)
{
    tctl_model *m = calloc(1, sizeof *m);
    if (!m)
        return tctl_fail_memory(err, sizeof *m);
    m->arena = tctl_arena_create();
    if (!m->arena) {
        free(m);
        return fail_memory(err);
    }
    *ret = m;
    return TCTL_OK;
}

void tctl_model_destroy(tctl_model *m)
{
    if (!m)
        return;
    tctl_arena_destroy(m->arena);
    free(m->nodes);
    free(m);
}

static uint32_t n_nodes(const tctl_model *m)
{
    return m->n;
}

static const tctl_node *node_at(const tctl_model *m, uint32_t i)
{
    return i < m->n ? &m->nodes[i] : NULL;
}

/* ---- copying ----------------------------------------------------------------------------------------- */

static bool copy_text(tctl_model *m, const char *text, const char **ret)
{
    *ret = text ? tctl_arena_copy(m->arena, text, strlen(text)) : NULL;
    return !text || *ret;
}

static bool copy_attr(tctl_model *m, const tctl_attr *from, tctl_attr *to)
{
    *to = *from;
    return copy_text(m, from->name, &to->name) && copy_text(m, from->text, &to->text);
}

static bool copy_node(tctl_model *m, const tctl_node *from, tctl_node *to)
{
    *to = *from;
    if (!copy_text(m, from->name, &to->name) || !copy_text(m, from->op, &to->op))
        return false;
    tctl_attr *attrs = tctl_arena_take_array(m->arena, from->n_attrs, sizeof *attrs);
    if (!attrs)
        return false;
    for (uint32_t i = 0; i < from->n_attrs; i++) {
        if (!copy_attr(m, &from->attrs[i], &attrs[i]))
            return false;
    }
    to->attrs = attrs;
    return true;
}

/* Room for one more node. */
static bool make_room(tctl_model *m)
{
    if (m->n < m->room)
        return true;
    if (m->room > INT32_MAX / 2)
        return false;
    uint32_t room = m->room ? m->room * 2 : 32;
    size_t size;
    tctl_node *nodes = tctl_mul_size(room, sizeof *nodes, &size) ? realloc(m->nodes, size) : NULL;
    if (!nodes)
        return false;
    m->nodes = nodes;
    m->room = room;
    return true;
}

/* ---- the service ------------------------------------------------------------------------------------- */

static tctl_status check_new(const tctl_model *m, uint32_t i, const tctl_node *node, tctl_error *err)
{
    if (!node->name || !*node->name || !node->op || !*node->op)
        return tctl_fail(err, TCTL_EINVAL, "a node needs a name and an operator");
    if (i > m->n)
        return tctl_fail(err, TCTL_EINVAL, "cannot insert node '%s' at %u: the model has %u nodes",
                         node->name, i, m->n);
    for (uint32_t k = 0; k < m->n; k++) {
        if (strcmp(m->nodes[k].name, node->name) == 0)
            return tctl_fail(err, TCTL_EINVAL, "the model already has a node '%s'", node->name);
    }
    if (node->n_inputs > TCTL_NODE_MAX_INPUTS)
        return tctl_fail(err, TCTL_EINVAL, "node '%s' has %u inputs; at most %d are possible", node->name,
                         node->n_inputs, TCTL_NODE_MAX_INPUTS);
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        if (node->inputs[k] < TCTL_MODEL_INPUT || (int64_t)node->inputs[k] >= (int64_t)i)
            return tctl_fail(err, TCTL_EINVAL, "input %d of node '%s' does not stand before it",
                             node->inputs[k], node->name);
    }
    return TCTL_OK;
}

static tctl_status insert(tctl_model *m, uint32_t i, const tctl_node *node, tctl_error *err)
{
    tctl_status st = check_new(m, i, node, err);
    if (st)
        return st;
    tctl_node copy;
    if (!copy_node(m, node, &copy) || !make_room(m))
        return fail_memory(err);
    memmove(&m->nodes[i + 1], &m->nodes[i], (m->n - i) * sizeof *m->nodes);
    m->nodes[i] = copy;
    m->n++;
    for (uint32_t k = i + 1; k < m->n; k++) {
        for (uint32_t j = 0; j < m->nodes[k].n_inputs; j++)
            m->nodes[k].inputs[j] += m->nodes[k].inputs[j] >= (int32_t)i;
    }
    return TCTL_OK;
}

static bool reads(const tctl_node *node, int32_t input)
{
    for (uint32_t j = 0; j < node->n_inputs; j++) {
        if (node->inputs[j] == input)
            return true;
    }
    return false;
}

static void replace_input(tctl_node *node, int32_t from, int32_t to)
{
    for (uint32_t j = 0; j < node->n_inputs; j++) {
        if (node->inputs[j] == from)
            node->inputs[j] = to;
    }
}

static tctl_status redirect(tctl_model *m, uint32_t first, int32_t from, int32_t to, tctl_error *err)
{
    if (from < TCTL_MODEL_INPUT || to < TCTL_MODEL_INPUT)
        return tctl_fail(err, TCTL_EINVAL, "cannot redirect from input %d to %d: neither may be below %d",
                         from, to, TCTL_MODEL_INPUT);
    for (uint32_t k = first; k < m->n; k++) {
        if (reads(&m->nodes[k], from) && (int64_t)to >= (int64_t)k)
            return tctl_fail(err, TCTL_EINVAL,
                             "node '%s' cannot read input %d, which does not stand before it",
                             m->nodes[k].name, to);
    }
    for (uint32_t k = first; k < m->n; k++)
        replace_input(&m->nodes[k], from, to);
    return TCTL_OK;
}

static tctl_status remove_node(tctl_model *m, uint32_t i, tctl_error *err)
{
    if (i >= m->n)
        return tctl_fail(err, TCTL_EINVAL, "cannot remove node %u: the model has %u nodes", i, m->n);
    if (m->nodes[i].n_inputs != 1)
        return tctl_fail(err, TCTL_EINVAL, "cannot remove node '%s': it has %u inputs, not one",
                         m->nodes[i].name, m->nodes[i].n_inputs);
    int32_t input = m->nodes[i].inputs[0];
    memmove(&m->nodes[i], &m->nodes[i + 1], (m->n - i - 1) * sizeof *m->nodes);
    m->n--;
    for (uint32_t k = i; k < m->n; k++) {
        replace_input(&m->nodes[k], (int32_t)i, input);
        for (uint32_t j = 0; j < m->nodes[k].n_inputs; j++)
            m->nodes[k].inputs[j] -= m->nodes[k].inputs[j] > (int32_t)i;
    }
    return TCTL_OK;
}

/* The attributes of the name become one, at the place of the first; a new name goes to the end. */
static tctl_status set(tctl_model *m, uint32_t i, const tctl_attr *attr, tctl_error *err)
{
    if (i >= m->n)
        return tctl_fail(err, TCTL_EINVAL, "cannot set an attribute of node %u: the model has %u nodes", i,
                         m->n);
    if (!attr->name || !*attr->name)
        return tctl_fail(err, TCTL_EINVAL, "an attribute of node '%s' has no name", m->nodes[i].name);
    tctl_node *node = &m->nodes[i];
    tctl_attr copy, *attrs = tctl_arena_take_array(m->arena, (size_t)node->n_attrs + 1, sizeof *attrs);
    if (!attrs || !copy_attr(m, attr, &copy))
        return fail_memory(err);
    uint32_t n = 0;
    bool placed = false;
    for (uint32_t k = 0; k < node->n_attrs; k++) {
        if (strcmp(node->attrs[k].name, attr->name) != 0)
            attrs[n++] = node->attrs[k];
        else if (!placed)
            attrs[n++] = copy;
        placed = placed || strcmp(node->attrs[k].name, attr->name) == 0;
    }
    if (!placed)
        attrs[n++] = copy;
    node->attrs = attrs;
    node->n_attrs = n;
    return TCTL_OK;
}

const tctl_model_service *tctl_model_service_of(void)
{
    static const tctl_model_service service = {
        .struct_size = sizeof service,
        .n_nodes = n_nodes,
        .node = node_at,
        .insert = insert,
        .redirect = redirect,
        .remove = remove_node,
        .set = set,
    };
    return &service;
}

/* ---- from a spec ------------------------------------------------------------------------------------- */

static tctl_status attr_of(const tctl_option *option, const tctl_value *value, tctl_attr *ret,
                           tctl_error *err)
{
    *ret = (tctl_attr){.name = option->name, .type = option->type};
    switch (option->type) {
    case TCTL_BOOL:
    case TCTL_INT:
        ret->i = value->i;
        break;
    case TCTL_SIZE:
        ret->type = TCTL_INT;
        ret->i = value->i;
        break;
    case TCTL_COUNT:
        ret->i = value->i;
        ret->text = value->text;
        break;
    case TCTL_DURATION:
    case TCTL_REAL:
        ret->type = TCTL_REAL;
        ret->r = value->r;
        break;
    case TCTL_TEXT:
    case TCTL_ENUM:
    case TCTL_PATH:
        ret->text = value->text;
        break;
    default:
        return tctl_fail_at(err, TCTL_ESPEC, value->loc,
                            "option '%s' has a type that an operator cannot have", option->name);
    }
    return TCTL_OK;
}

/* Values that an option has; an absent one may have an entry that was never given. */
static uint32_t n_given(const tctl_config_entry *entry)
{
    return entry->n && entry->values[0].given ? entry->n : 0;
}

static tctl_status add_op(tctl_model *m, const tctl_op_spec *op, tctl_error *err)
{
    static const tctl_loc nowhere;
    size_t n = 0;
    uint32_t n_entries = op->config ? op->config->n : 0;
    for (uint32_t i = 0; i < n_entries; i++)
        n += n_given(&op->config->entries[i]);
    tctl_attr *attrs = n <= UINT32_MAX ? tctl_arena_take_array(m->arena, n, sizeof *attrs) : NULL;
    if (!attrs)
        return fail_memory(err);
    tctl_node node = {
        .name = op->name, .op = op->op, .n_inputs = op->n_inputs, .attrs = attrs, .config = op->config};
    memcpy(node.inputs, op->inputs, sizeof node.inputs);
    for (uint32_t i = 0; i < n_entries; i++) {
        const tctl_config_entry *entry = &op->config->entries[i];
        for (uint32_t k = 0; k < n_given(entry); k++) {
            tctl_status st = attr_of(entry->option, &entry->values[k], &attrs[node.n_attrs++], err);
            if (st)
                return st;
        }
    }
    tctl_error why;
    tctl_error_clear(&why);
    tctl_status st = insert(m, m->n, &node, &why);
    if (st == TCTL_EINVAL)
        return tctl_fail_at(err, TCTL_ESPEC, op->config ? op->config->loc : nowhere, "%s", why.message);
    return st ? tctl_fail(err, st, "%s", why.message) : TCTL_OK;
}

tctl_status tctl_model_from_spec(const tctl_spec *spec, tctl_model **ret, tctl_error *err)
{
    tctl_model *m = NULL;
    tctl_status st = tctl_model_create(&m, err);
    for (uint32_t i = 0; m && !st && i < spec->n_ops; i++)
        st = add_op(m, &spec->ops[i], err);
    if (st) {
        tctl_model_destroy(m);
        return st;
    }
    *ret = m;
    return TCTL_OK;
}
