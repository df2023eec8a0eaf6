/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a plugin, each with one thing wrong: what is said names it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "host/lint.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/trainer.h"

static uint64_t count(tctl_stage *s)
{
    (void)s;
    return 1;
}

static uint32_t describe(tctl_stage *s, tctl_field *fields, uint32_t cap)
{
    (void)s, (void)fields, (void)cap;
    return 1;
}

static tctl_status read_sample(tctl_stage *s, uint64_t i, const tctl_tensor *out, tctl_error *err)
{
    (void)s, (void)i, (void)out, (void)err;
    return TCTL_OK;
}

static tctl_status create(const tctl_host *h, const tctl_config *c, tctl_stage **ret, tctl_error *err)
{
    (void)h, (void)c, (void)ret, (void)err;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    (void)s;
}

static void update(tctl_stage *s, const tctl_update *u)
{
    (void)s, (void)u;
}

static tctl_status run(tctl_stage *s, const tctl_job *job, tctl_error *err)
{
    (void)s, (void)job, (void)err;
    return TCTL_OK;
}

static const char *const words[] = {"fast", "slow", NULL};
static const char *const twice[] = {"fast", "slow", "fast", NULL};
static const char *const none[] = {NULL};

/* A plugin whose every part can be changed. */
static tctl_source source;
static tctl_optimizer optimizer;
static tctl_trainer trainer;
static tctl_op_schema op;
static tctl_option options[2];
static tctl_extension extensions[2];
static tctl_plugin plugin;

static int set_up(void **state)
{
    (void)state;
    source = (tctl_source){
        .struct_size = sizeof source, .count = count, .describe = describe, .read = read_sample};
    optimizer = (tctl_optimizer){.struct_size = sizeof optimizer, .update = update};
    op = (tctl_op_schema){.op = "conv", .doc = "a convolution", .min_inputs = 1, .max_inputs = 1};
    trainer = (tctl_trainer){
        .struct_size = sizeof trainer, .op_schema_size = sizeof op, .n_ops = 1, .ops = &op, .run = run};
    options[0] =
        (tctl_option){.name = "lr", .type = TCTL_REAL, .default_yaml = "0.1", .real_max = 1, .doc = "a rate"};
    options[1] = (tctl_option){.name = "mode", .type = TCTL_ENUM, .choices = words, .doc = "a word"};
    extensions[0] = (tctl_extension){TCTL_SOURCE_ID, &source};
    extensions[1] = (tctl_extension){TCTL_OPTIMIZER_ID, &optimizer};
    plugin = (tctl_plugin){TCTL_PLUGIN_HEADER,       .n_options = 2,        .n_extensions = 2,
                           .bits = TCTL_BITS_RECIPE, .name = "x",           .version = "1",
                           .license = "MIT",         .summary = "a plugin", .options = options,
                           .extensions = extensions, .create = create,      .destroy = destroy};
    return 0;
}

/* Lints, expects the words, and puts everything back. */
static void assert_says(const char *expected)
{
    tctl_error err;
    tctl_error_clear(&err);
    assert_int_equal(tctl_plugin_lint(&plugin, "plugin 'x'", &err), TCTL_EPLUGIN);
    if (!strstr(err.message, expected))
        fail_msg("'%s' does not say '%s'", err.message, expected);
    set_up(NULL);
}

static void what_is_right_passes(void **state)
{
    (void)state;
    tctl_error err;
    tctl_error_clear(&err);
    if (tctl_plugin_lint(&plugin, "plugin 'x'", &err))
        fail_msg("%s", err.message);
}

static void versions_and_sizes(void **state)
{
    (void)state;
    plugin.abi_major = 2;
    assert_says("plugin 'x' needs ABI 2.0; this trainctl offers 1.0");
    plugin.abi_minor = 9;
    assert_says("plugin 'x' needs ABI 1.9; this trainctl offers 1.0");
    plugin.struct_size = 40;
    assert_says("has a descriptor of 40 bytes; ABI 1.0 has at least 104");
    plugin.option_size = 80;
    assert_says("has options of 80 bytes; ABI 1.0 has at least 88");
}

static void words_and_flags(void **state)
{
    (void)state;
    plugin.name = "Upper";
    assert_says("calls itself 'Upper'; a name is 1 to 64 lower-case letters");
    plugin.license = "";
    assert_says("has no licence");
    plugin.summary = "caf\xe9";
    assert_says("has a summary that is not UTF-8");
    plugin.bits = 0;
    assert_says("does not say its effect on bits");
    plugin.claims = 1u << 20;
    assert_says("makes unknown claims 0x100000");
    plugin.flags = 8;
    assert_says("has unknown flags 0x8");
    plugin.destroy = NULL;
    assert_says("has no 'destroy' function");
}

static void function_tables(void **state)
{
    (void)state;
    plugin.n_extensions = 0;
    assert_says("provides nothing");
    extensions[1].vtable = NULL;
    assert_says("extension number 1 has no functions");
    extensions[1] = extensions[0];
    assert_says("provides 'trainctl.source/1' twice");
    source.struct_size = 8;
    assert_says("'trainctl.source/1' has a struct_size of 8, ABI 1.0 has 32");
    source.count = NULL;
    assert_says("'trainctl.source/1' lacks the function 'count'");
    optimizer.n_slots = 9;
    assert_says("has 9 slots, at most 4 are possible");
    optimizer.n_slots = 1;
    assert_says("has no name for slot 0");
    extensions[0] = (tctl_extension){TCTL_TRAINER_ID, &trainer};
    op.max_inputs = 99;
    assert_says("operator 'conv' takes 1 to 99 inputs");
    extensions[0] = (tctl_extension){TCTL_TRAINER_ID, &trainer};
    op.options = options;
    op.n_options = 1;
    options[0].doc = NULL;
    assert_says("option 'lr' has no doc");
}

static void options_name_and_text(void **state)
{
    (void)state;
    options[1].name = NULL;
    assert_says("plugin 'x': option number 1 has no name");
    options[1].name = "Mode";
    assert_says("option 'Mode' has a bad name");
    options[1].name = "use";
    assert_says("option 'use' has a name that specs use for something else");
    options[1] = options[0];
    assert_says("option 'lr' is declared twice");
    options[0].doc = "ends.";
    assert_says("option 'lr' has a doc that ends in a full stop");
    options[0].type = 77;
    assert_says("option 'lr' has the unknown type 77");
    options[0].flags = TCTL_OPT_REQUIRED;
    assert_says("option 'lr' is required and has a default");
    options[0].flags = TCTL_OPT_HASHED;
    assert_says("option 'lr' is TCTL_OPT_HASHED but no path");
    options[0].flags = TCTL_OPT_SECRET | TCTL_OPT_SEMANTIC;
    assert_says("option 'lr' is a secret that changes results");
}

static void options_bounds_and_choices(void **state)
{
    (void)state;
    options[0].real_min = 2;
    assert_says("option 'lr' has a minimum 2 above its maximum 1");
    options[0].real_max = (double)INFINITY;
    assert_says("option 'lr' has bounds that are not finite");
    options[0].int_max = 3;
    assert_says("option 'lr' has integer bounds, which only INT, COUNT and SIZE have");
    options[0].choices = words;
    assert_says("option 'lr' has choices, which only ENUM, COUNT and PLUGIN have");
    options[1].choices = none;
    assert_says("option 'mode' has no choices: an ENUM needs its words");
    options[1].choices = twice;
    assert_says("option 'mode' has the choice 'fast' twice");
}

static void defaults_are_read_as_a_user_s_text(void **state)
{
    (void)state;
    options[0].default_yaml = "1e400";
    assert_says("option 'lr' has a default that is not valid: ");
    options[0].default_yaml = "2";
    assert_says("option 'lr' has a default that is not valid: 'lr' must be a number from 0 to 1, got '2'");
    options[1].default_yaml = "fest";
    assert_says("option 'mode' has a default that is not valid: ");
    options[1].default_yaml = "[";
    assert_says("option 'mode' has a default that is not valid: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_right_passes, set_up),
        cmocka_unit_test_setup(versions_and_sizes, set_up),
        cmocka_unit_test_setup(words_and_flags, set_up),
        cmocka_unit_test_setup(function_tables, set_up),
        cmocka_unit_test_setup(options_name_and_text, set_up),
        cmocka_unit_test_setup(options_bounds_and_choices, set_up),
        cmocka_unit_test_setup(defaults_are_read_as_a_user_s_text, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
