/* SPDX-License-Identifier: Apache-2.0 */
/* See recipes.h: from an operator's words to a node, by the operator's own option table. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "bench/bits_network/recipes.h"
#include "bench/bits_network/words.h"
#include "engine/network.h"

static const tctl_op_schema *find_schema(const char *op)
{
    for (uint32_t i = 0; i < TCTL_NETWORK_OPS; i++) {
        if (strcmp(tctl_network_op_table[i].op, op) == 0)
            return &tctl_network_op_table[i];
    }
    return NULL;
}

static int32_t find_node(const tctl_model *m, const char *name)
{
    for (uint32_t i = 0; i < m->n; i++) {
        if (strcmp(m->names[i], name) == 0)
            return (int32_t)i;
    }
    return -1;
}

static tctl_attr attr_of(const tctl_option *option, const char *value, char text[16])
{
    tctl_attr attr = {.name = option->name, .type = option->type};
    if (option->type == TCTL_REAL)
        attr.r = bits_real_of(value);
    else if (option->type == TCTL_INT)
        attr.i = bits_int_of(value);
    else if (option->type == TCTL_BOOL)
        attr.i = strcmp(value, "true") == 0;
    else {
        snprintf(text, 16, "%s", value);
        attr.text = text;
    }
    return attr;
}

static void add_node(tctl_model *m, const char *line)
{
    const bits_words words = bits_words_read(line);
    const tctl_op_schema *schema = find_schema(words.first);
    TCTL_BUG_IF(!schema || m->n == BITS_MAX_OPS);
    const uint32_t at = m->n;
    const char *name = bits_words_value(&words, "name", 0);
    if (name)
        snprintf(m->names[at], sizeof m->names[at], "%s", name);
    else
        snprintf(m->names[at], sizeof m->names[at], "%s%u", words.first, at);
    tctl_node *node = &m->nodes[at];
    *node = (tctl_node){.name = m->names[at], .op = schema->op, .attrs = m->attrs[at]};
    for (uint32_t i = 0; i < words.n; i++) {
        if (strcmp(words.names[i], "name") == 0)
            continue;
        if (strcmp(words.names[i], "from") == 0) {
            const int32_t from = find_node(m, words.values[i]);
            TCTL_BUG_IF(from < 0 || node->n_inputs == TCTL_NODE_MAX_INPUTS);
            node->inputs[node->n_inputs++] = from;
            continue;
        }
        const tctl_option *option = bits_option_find(schema->options, schema->n_options, words.names[i]);
        TCTL_BUG_IF(!option || node->n_attrs == TCTL_COUNT_OF(m->attrs[at]));
        m->attrs[at][node->n_attrs++] = attr_of(option, words.values[i], m->texts[at]);
    }
    if (node->n_inputs == 0)
        node->inputs[node->n_inputs++] = (int32_t)at - 1;
    m->n++;
}

void bits_model_make(const bits_recipe *recipe, tctl_model *ret)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < BITS_MAX_OPS && recipe->model[i]; i++)
        add_node(ret, recipe->model[i]);
}

static uint32_t n_nodes(const tctl_model *m)
{
    return m->n;
}

static const tctl_node *node_at(const tctl_model *m, uint32_t i)
{
    return &m->nodes[i];
}

/* No stage here rewrites the graph. */
const tctl_model_service bits_models = {
    .struct_size = sizeof(tctl_model_service), .n_nodes = n_nodes, .node = node_at};
