/* SPDX-License-Identifier: Apache-2.0 */
/* The native trainer and its stages: they get what trainctl/ext/hooks.h promises. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/native_world.h"
#include "trainctl/ext/graph.h"

/* ---- stages ------------------------------------------------------------------------------------------ */

static struct {
    uint64_t batches, taken, n_steps, steps_per_epoch, last_step;
    double divisor;
    float before;
    char order[256];
} probe;

static void note(const char *moment)
{
    if (strlen(probe.order) < 120)
        snprintf(probe.order + strlen(probe.order), sizeof probe.order - strlen(probe.order), "%s ", moment);
}

static tctl_status hold_begin(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)s;
    (void)err;
    memset(&probe, 0, sizeof probe);
    t->accumulate = 2;
    return TCTL_OK;
}

static bool hold_vetoes; /* the first batch of the second group */

static tctl_status hold_decide(tctl_stage *s, tctl_training *t, int32_t *action, tctl_error *err)
{
    (void)s;
    (void)err;
    if (t->micro_batch == 0)
        *action = hold_vetoes && t->position.step == 1 ? TCTL_STEP_SKIP : TCTL_STEP_HOLD;
    return TCTL_OK;
}

static tctl_status hold_done(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)s;
    (void)err;
    probe.batches++;
    probe.taken = t->updates;
    probe.n_steps = t->position.n_steps;
    probe.steps_per_epoch = t->position.steps_per_epoch;
    probe.last_step = t->position.step;
    probe.divisor = t->divisor;
    return TCTL_OK;
}

static const tctl_hooks hold = {.struct_size = sizeof hold,
                                .run_begin = hold_begin,
                                .gradients_ready = hold_decide,
                                .step_done = hold_done};
static const tctl_extension hold_extensions[] = {{TCTL_HOOKS_ID, &hold}};
static const tctl_plugin hold_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "hold",
                                        .extensions = hold_extensions};

enum { MODEL_FLOATS = 5 + 5 * 9 + 80 * CLASSES + CLASSES };

/* The sums of the two halves are joined otherwise than within a batch, so the last bits may differ.
 * 270 samples: 4 whole batches of 64 and one of 14; as micro-batches of 32: 8, and one of 14 alone. */
static void two_micro_batches_are_one_batch(void **state)
{
    (void)state;
    static unsigned char whole[ROOM];
    setting s = usual;
    s.norm = false;
    s.batch = "64";
    must_train(&s);
    size_t n = seen.n_model;
    memcpy(whole, seen.model, n);
    s.batch = "32";
    s.stage = &hold_plugin;
    must_train(&s);
    assert_int_equal(probe.batches, 27);
    assert_int_equal(probe.taken, 15);
    assert_int_equal(probe.n_steps, 15);
    assert_int_equal(probe.steps_per_epoch, 5);
    assert_int_equal(probe.last_step, 14);
    assert_true(probe.divisor == 14);
    assert_int_equal(seen.n_model, n);
    for (size_t at = n - MODEL_FLOATS * sizeof(float); at < n; at += sizeof(float)) {
        float a, b;
        memcpy(&a, whole + at, sizeof a);
        memcpy(&b, seen.model + at, sizeof b);
        assert_true(fabsf(a - b) <= 1e-5f);
    }
}

static void a_veto_drops_its_whole_group(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &hold_plugin;
    hold_vetoes = true;
    tctl_error err;
    tctl_status st = train(&s, &err);
    hold_vetoes = false;
    assert_int_equal(st, TCTL_OK);
    assert_int_equal(probe.batches, 27);
    assert_int_equal(probe.taken, 14);
    assert_int_equal(probe.last_step, 14);
}

static tctl_status veto(tctl_stage *s, tctl_training *t, int32_t *action, tctl_error *err)
{
    (void)s;
    (void)err;
    if (t->position.step == 0)
        probe.before = t->param[0];
    assert_true(t->param[0] == probe.before);
    *action = TCTL_STEP_SKIP;
    return TCTL_OK;
}

static const tctl_hooks vetoes = {
    .struct_size = sizeof vetoes, .gradients_ready = veto, .step_done = hold_done};
static const tctl_extension veto_extensions[] = {{TCTL_HOOKS_ID, &vetoes}};
static const tctl_plugin veto_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "veto",
                                        .extensions = veto_extensions};

static void a_vetoed_step_changes_no_parameter(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &veto_plugin;
    memset(&probe, 0, sizeof probe);
    must_train(&s);
    assert_int_equal(probe.batches, 27);
    assert_int_equal(probe.taken, 0);
    assert_int_equal(probe.last_step, 26);
}

static tctl_status scale_loss(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)s;
    (void)err;
    t->loss_scale = 1024;
    return TCTL_OK;
}

static const tctl_hooks scales = {.struct_size = sizeof scales, .batch_ready = scale_loss};
static const tctl_extension scale_extensions[] = {{TCTL_HOOKS_ID, &scales}};
static const tctl_plugin scale_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "scale",
                                         .extensions = scale_extensions};

static void a_loss_scale_leaves_the_bits_alone(void **state)
{
    (void)state;
    static unsigned char plain[ROOM];
    setting s = usual;
    must_train(&s);
    size_t n = seen.n_model;
    memcpy(plain, seen.model, n);
    s.stage = &scale_plugin;
    must_train(&s);
    assert_int_equal(seen.n_model, n);
    assert_memory_equal(seen.model, plain, n);
}

#define MOMENT(name)                                                                                         \
    static tctl_status at_##name(tctl_stage *s, tctl_training *t, tctl_error *err)                           \
    {                                                                                                        \
        (void)s;                                                                                             \
        (void)t;                                                                                             \
        (void)err;                                                                                           \
        note(#name);                                                                                         \
        return TCTL_OK;                                                                                      \
    }
MOMENT(run_begin)
MOMENT(epoch_begin)
MOMENT(batch_ready)
MOMENT(loss_ready)
MOMENT(step_done)
MOMENT(epoch_end)
MOMENT(run_end)

static tctl_status at_gradients_ready(tctl_stage *s, tctl_training *t, int32_t *action, tctl_error *err)
{
    (void)s;
    (void)t;
    (void)action;
    (void)err;
    note("gradients_ready");
    return TCTL_OK;
}

static const tctl_hooks all = {.struct_size = sizeof all,
                               .run_begin = at_run_begin,
                               .epoch_begin = at_epoch_begin,
                               .batch_ready = at_batch_ready,
                               .loss_ready = at_loss_ready,
                               .gradients_ready = at_gradients_ready,
                               .step_done = at_step_done,
                               .epoch_end = at_epoch_end,
                               .run_end = at_run_end};
static const tctl_extension all_extensions[] = {{TCTL_HOOKS_ID, &all}};
static const tctl_plugin all_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "all",
                                       .extensions = all_extensions};

static void moments_come_in_their_order(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &all_plugin;
    s.batch = "270";
    s.epochs = "1";
    memset(&probe, 0, sizeof probe);
    must_train(&s);
    assert_string_equal(
        probe.order,
        "run_begin epoch_begin batch_ready loss_ready gradients_ready step_done epoch_end run_end ");
}

/* ---- stages that rewrite the model ------------------------------------------------------------------ */

/* Puts a second batch-norm behind the convolution, or asks for what cannot be. */
static bool rewrite_wrongly;
static const char *wish; /* an attribute that is set as well; NULL: none */

static tctl_status rewrite(tctl_stage *s, tctl_model *m, const tctl_model_service *models, tctl_error *err)
{
    (void)s;
    const tctl_node extra = {
        .name = rewrite_wrongly ? "conv1" : "extra1", .op = "batchnorm", .n_inputs = 1, .inputs = {0}};
    const tctl_attr attr = {.name = wish, .type = TCTL_TEXT, .text = "bf16"};
    if (wish && models->set(m, 0, &attr, err))
        return TCTL_EINVAL;
    tctl_status st = models->insert(m, 1, &extra, err);
    return st ? st : models->redirect(m, 2, 0, 1, err);
}

static const tctl_graph graph = {.struct_size = sizeof graph, .rewrite = rewrite};
static const tctl_extension graph_extensions[] = {{TCTL_GRAPH_ID, &graph}};
static const tctl_plugin graph_plugin = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "graph",
                                         .extensions = graph_extensions};

static void a_rewritten_model_is_what_is_trained(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &graph_plugin;
    must_train(&s);
    assert_non_null(strstr(
        seen.names, "gradient/conv1.bias gradient/extra1.weight gradient/extra1.bias gradient/norm1.w"));
    assert_true(seen.test_accuracy > 0.95);
}

static void a_rewrite_that_fails_names_the_stage(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &graph_plugin;
    tctl_error err;
    rewrite_wrongly = true;
    tctl_status st = train(&s, &err);
    rewrite_wrongly = false;
    assert_int_equal(st, TCTL_EINVAL);
    assert_string_equal(err.message, "the model already has a node 'conv1'");
    assert_string_equal(err.notes[0], "while stage 'probe' rewrote the model");
}

static void a_wish_that_is_not_understood_is_refused(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &graph_plugin;
    tctl_error err;
    wish = "amp.dtype";
    tctl_status st = train(&s, &err);
    wish = "memory.recompute";
    tctl_status harmless = train(&s, NULL);
    wish = NULL;
    assert_int_equal(st, TCTL_EUNSUPPORTED);
    assert_string_equal(
        err.message, "the native trainer does not know 'amp.dtype', which a stage asks for at node 'conv1'");
    assert_int_equal(harmless, TCTL_OK);
}

static const tctl_plugin useless_plugin = {TCTL_PLUGIN_HEADER, .name = "useless"};

static void a_stage_that_cannot_serve_is_refused(void **state)
{
    (void)state;
    setting s = usual;
    s.stage = &useless_plugin;
    tctl_error err;
    assert_int_equal(train(&s, &err), TCTL_EUNSUPPORTED);
    assert_string_equal(err.message, "stage 'probe' cannot serve the native trainer: it has neither "
                                     "'trainctl.hooks/1' nor 'trainctl.graph/1'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_micro_batches_are_one_batch),
        cmocka_unit_test(a_veto_drops_its_whole_group),
        cmocka_unit_test(a_vetoed_step_changes_no_parameter),
        cmocka_unit_test(a_loss_scale_leaves_the_bits_alone),
        cmocka_unit_test(moments_come_in_their_order),
        cmocka_unit_test(a_rewritten_model_is_what_is_trained),
        cmocka_unit_test(a_rewrite_that_fails_names_the_stage),
        cmocka_unit_test(a_wish_that_is_not_understood_is_refused),
        cmocka_unit_test(a_stage_that_cannot_serve_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
