/* SPDX-License-Identifier: Apache-2.0 */
/* The model graph: built from a spec's operators, renumbered by insertion and removal, refused when wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host/model.h"

static const tctl_model_service *s;

static void add(tctl_model *m, uint32_t i, const char *name, uint32_t n_inputs, int32_t a, int32_t b)
{
    tctl_error err;
    const tctl_node node = {.name = name, .op = "op", .n_inputs = n_inputs, .inputs = {a, b}};
    assert_int_equal(s->insert(m, i, &node, &err), TCTL_OK);
}

/* The attribute, which must be there. */
static const tctl_attr *attr(const tctl_node *node, const char *name)
{
    static const tctl_attr none[2];
    const tctl_attr *found = tctl_node_attr(node, name);
    assert_non_null(found);
    return found ? found : none;
}

/* "a(-1) b(0) c(1,0)": names and inputs in order. */
static void assert_graph(const tctl_model *m, const char *expected)
{
    char text[512] = "";
    for (uint32_t i = 0; i < s->n_nodes(m); i++) {
        const tctl_node *node = s->node(m, i);
        size_t at = strlen(text);
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s(", i ? " " : "", node->name);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s%d", k ? "," : "", node->inputs[k]);
        snprintf(text + at, sizeof text - at, ")");
    }
    assert_string_equal(text, expected);
}

static tctl_model *residual(void)
{
    tctl_model *m = NULL;
    assert_int_equal(tctl_model_create(&m, NULL), TCTL_OK);
    add(m, 0, "conv", 1, TCTL_MODEL_INPUT, 0);
    add(m, 1, "norm", 1, 0, 0);
    add(m, 2, "add", 2, 1, 0);
    add(m, 3, "relu", 1, 2, 0);
    return m;
}

static void an_inserted_node_renumbers_later_inputs_only(void **state)
{
    (void)state;
    tctl_model *m = residual();
    add(m, 1, "cast", 1, 0, 0);
    assert_graph(m, "conv(-1) cast(0) norm(0) add(2,0) relu(3)");
    assert_int_equal(s->redirect(m, 2, 0, 1, NULL), TCTL_OK);
    assert_graph(m, "conv(-1) cast(0) norm(1) add(2,1) relu(3)");
    add(m, 5, "head", 1, 4, 0);
    assert_graph(m, "conv(-1) cast(0) norm(1) add(2,1) relu(3) head(4)");
    tctl_model_destroy(m);
}

static void readers_of_a_removed_node_read_its_input(void **state)
{
    (void)state;
    tctl_model *m = residual();
    assert_int_equal(s->remove(m, 1, NULL), TCTL_OK);
    assert_graph(m, "conv(-1) add(0,0) relu(1)");
    assert_int_equal(s->remove(m, 0, NULL), TCTL_OK);
    assert_graph(m, "add(-1,-1) relu(0)");
    tctl_model_destroy(m);
}

static void a_wrong_change_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    tctl_model *m = residual();
    tctl_error err;
    tctl_node node = {.name = "norm", .op = "op", .n_inputs = 1, .inputs = {0}};
    assert_int_equal(s->insert(m, 1, &node, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "the model already has a node 'norm'");
    node.name = "late";
    node.inputs[0] = 1;
    assert_int_equal(s->insert(m, 1, &node, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "input 1 of node 'late' does not stand before it");
    node.inputs[0] = -2;
    assert_int_equal(s->insert(m, 1, &node, &err), TCTL_EINVAL);
    assert_int_equal(s->insert(m, 5, &node, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "cannot insert node 'late' at 5: the model has 4 nodes");
    assert_int_equal(s->remove(m, 2, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "cannot remove node 'add': it has 2 inputs, not one");
    assert_int_equal(s->remove(m, 4, &err), TCTL_EINVAL);
    assert_int_equal(s->redirect(m, 0, 0, 2, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "node 'norm' cannot read input 2, which does not stand before it");
    assert_graph(m, "conv(-1) norm(0) add(1,0) relu(2)");
    tctl_model_destroy(m);
}

static void attributes_are_replaced_or_added(void **state)
{
    (void)state;
    tctl_model *m = residual();
    const tctl_attr width = {.name = "out", .type = TCTL_INT, .i = 8},
                    wider = {.name = "out", .type = TCTL_INT, .i = 9};
    char word[] = "bf16";
    const tctl_attr cast = {.name = "amp.dtype", .type = TCTL_TEXT, .text = word};
    assert_int_equal(s->set(m, 0, &width, NULL), TCTL_OK);
    assert_int_equal(s->set(m, 0, &cast, NULL), TCTL_OK);
    assert_int_equal(s->set(m, 0, &wider, NULL), TCTL_OK);
    word[0] = 'x'; /* the model has its own copy */
    const tctl_node *node = s->node(m, 0);
    assert_int_equal(node->n_attrs, 2);
    assert_int_equal(attr(node, "out")->i, 9);
    assert_string_equal(attr(node, "amp.dtype")->text, "bf16");
    assert_null(tctl_node_attr(node, "kernel"));
    tctl_error err;
    assert_int_equal(s->set(m, 7, &width, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "cannot set an attribute of node 7: the model has 4 nodes");
    tctl_model_destroy(m);
}

/* ---- from a spec ------------------------------------------------------------------------------------- */

static const tctl_option conv_options[] = {
    {.name = "out", .type = TCTL_INT},      {.name = "bias", .type = TCTL_BOOL},
    {.name = "gain", .type = TCTL_REAL},    {.name = "mode", .type = TCTL_ENUM},
    {.name = "absent", .type = TCTL_INT},   {.name = "pads", .type = TCTL_INT, .flags = TCTL_OPT_REPEATED},
    {.name = "inner", .type = TCTL_PLUGIN},
};

static void given_options_become_attributes(void **state)
{
    (void)state;
    tctl_value out = {.given = 2, .i = 32}, bias = {.given = 1, .i = 0}, gain = {.given = 1, .r = 0.5},
               mode = {.given = 2, .text = "same"}, pads[] = {{.given = 2, .i = 1}, {.given = 2, .i = 2}};
    tctl_config_entry entries[] = {{&conv_options[0], 1, &out},  {&conv_options[1], 1, &bias},
                                   {&conv_options[2], 1, &gain}, {&conv_options[3], 1, &mode},
                                   {&conv_options[4], 0, NULL},  {&conv_options[5], 2, pads}};
    tctl_config config = {.n = 6, .entries = entries};
    tctl_op_spec ops[] = {{.name = "conv1", .op = "conv", .config = &config, .n_inputs = 1, .inputs = {-1}},
                          {.name = "add1", .op = "add", .n_inputs = 2, .inputs = {0, -1}}};
    const tctl_spec spec = {.n_ops = 2, .ops = ops};
    tctl_model *m = NULL;
    assert_int_equal(tctl_model_from_spec(&spec, &m, NULL), TCTL_OK);
    assert_graph(m, "conv1(-1) add1(0,-1)");
    const tctl_node *node = s->node(m, 0);
    assert_string_equal(node->op, "conv");
    assert_ptr_equal(node->config, &config);
    assert_int_equal(node->n_attrs, 6);
    assert_int_equal(attr(node, "out")->i, 32);
    assert_int_equal(attr(node, "bias")->i, 0);
    assert_true(attr(node, "gain")->r == 0.5);
    assert_string_equal(attr(node, "mode")->text, "same");
    assert_null(tctl_node_attr(node, "absent"));
    assert_int_equal(attr(node, "pads")[0].i, 1);
    assert_int_equal(attr(node, "pads")[1].i, 2);
    tctl_model_destroy(m);
}

static void a_wrong_spec_is_refused_with_a_position(void **state)
{
    (void)state;
    tctl_config config = {.loc = {.file = "exp.yaml", .line = 7, .col = 5}};
    tctl_op_spec ops[] = {{.name = "a", .op = "relu", .config = &config, .n_inputs = 1, .inputs = {-1}},
                          {.name = "a", .op = "relu", .config = &config, .n_inputs = 1, .inputs = {0}}};
    const tctl_spec spec = {.n_ops = 2, .ops = ops};
    tctl_model *m = NULL;
    tctl_error err;
    assert_int_equal(tctl_model_from_spec(&spec, &m, &err), TCTL_ESPEC);
    assert_null(m);
    assert_string_equal(err.message, "the model already has a node 'a'");
    assert_string_equal(err.loc.file, "exp.yaml");
    assert_int_equal(err.loc.line, 7);
    ops[1].name = "b";
    tctl_value inner = {.given = 2, .loc = {.file = "exp.yaml", .line = 8, .col = 3}};
    tctl_config_entry entry = {&conv_options[6], 1, &inner};
    config.n = 1;
    config.entries = &entry;
    assert_int_equal(tctl_model_from_spec(&spec, &m, &err), TCTL_ESPEC);
    assert_string_equal(err.message, "option 'inner' has a type that an operator cannot have");
    assert_int_equal(err.loc.line, 8);
}

static void a_large_model_keeps_its_order(void **state)
{
    (void)state;
    tctl_model *m = NULL;
    assert_int_equal(tctl_model_create(&m, NULL), TCTL_OK);
    char name[16];
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "n%u", i);
        add(m, i, name, 1, (int32_t)i - 1, 0);
    }
    assert_int_equal(s->n_nodes(m), 300);
    for (uint32_t i = 0; i < 300; i++)
        assert_int_equal(s->node(m, i)->inputs[0], (int32_t)i - 1);
    assert_null(s->node(m, 300));
    tctl_model_destroy(m);
    tctl_model_destroy(NULL);
}

int main(void)
{
    s = tctl_model_service_of();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inserted_node_renumbers_later_inputs_only),
        cmocka_unit_test(readers_of_a_removed_node_read_its_input),
        cmocka_unit_test(a_wrong_change_is_refused_and_changes_nothing),
        cmocka_unit_test(attributes_are_replaced_or_added),
        cmocka_unit_test(given_options_become_attributes),
        cmocka_unit_test(a_wrong_spec_is_refused_with_a_position),
        cmocka_unit_test(a_large_model_keeps_its_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
