/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins that are tables only, and a finder for them: enough to read specs, nothing to run.
 */
#ifndef TESTS_CONFIG_FAKE_H
#define TESTS_CONFIG_FAKE_H

#include <string.h>

#include "config/spec.h"
#include "trainctl/draft/envelope.h"
#include "trainctl/draft/exporter.h"
#include "trainctl/ext/graph.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/state.h"
#include "trainctl/ext/transform.h"

#define FAKE_OPTIONS(table) .options = (table), .n_options = TCTL_COUNT_OF(table)

static const int fake_vtable = 0;

/* ---- the trainer ---------------------------------------------------------------------------------- */

static const char *const fake_optimizer_id[] = {TCTL_OPTIMIZER_ID, NULL};
static const char *const fake_schedule_id[] = {TCTL_SCHEDULE_ID, NULL};

static const tctl_option fake_conv_options[] = {
    {.name = "out",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .int_min = 1,
     .int_max = 65536,
     .doc = "number of output channels"},
    {.name = "kernel",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "3",
     .int_min = 1,
     .int_max = 64,
     .doc = "height and width of the kernel"},
    {.name = "pad",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0",
     .int_max = 64,
     .doc = "zeros around the image"},
    {.name = "bias",
     .type = TCTL_BOOL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "true",
     .doc = "add a learned constant per channel"},
};

static const tctl_option fake_dropout_options[] = {
    {.name = "rate",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0.5",
     .real_max = 1,
     .doc = "share of the values that is dropped"},
};

static const tctl_op_schema fake_ops[] = {
    {.op = "conv", .doc = "convolution", FAKE_OPTIONS(fake_conv_options), .min_inputs = 1, .max_inputs = 1},
    {.op = "dropout", .doc = "dropout", FAKE_OPTIONS(fake_dropout_options), .min_inputs = 1, .max_inputs = 1},
    {.op = "relu", .doc = "rectifier", .min_inputs = 1, .max_inputs = 1},
    {.op = "add", .doc = "sum", .min_inputs = 2, .max_inputs = 8},
    {.op = "linear", .doc = "dense layer", FAKE_OPTIONS(fake_conv_options), .min_inputs = 1, .max_inputs = 1},
};

static const tctl_trainer fake_trainer = {
    .struct_size = sizeof fake_trainer,
    .op_schema_size = sizeof fake_ops[0],
    .n_ops = TCTL_COUNT_OF(fake_ops),
    .ops = fake_ops,
};

static const tctl_option fake_native_options[] = {
    {.name = "epochs",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED,
     .int_min = 1,
     .int_max = 100000,
     .doc = "passes over the training data"},
    {.name = "batch",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "128",
     .int_min = 1,
     .int_max = 65536,
     .unit = "samples",
     .doc = "samples per step"},
    {.name = "optimizer",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "sgd",
     .choices = fake_optimizer_id,
     .doc = "what turns gradients into updates"},
    {.name = "schedule",
     .type = TCTL_PLUGIN,
     .flags = TCTL_OPT_SEMANTIC,
     .choices = fake_schedule_id,
     .doc = "the learning rate of a step"},
    {.name = "report",
     .type = TCTL_DURATION,
     .default_yaml = "10 s",
     .real_min = 1,
     .real_max = 3600,
     .doc = "time between two lines of progress"},
};

/* ---- the others ----------------------------------------------------------------------------------- */

static const tctl_option fake_sgd_options[] = {
    {.name = "lr",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0.1",
     .real_max = 1e308,
     .doc = "learning rate at the peak of the schedule"},
    {.name = "momentum",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0",
     .real_max = 1,
     .doc = "share of the last update that is kept"},
    {.name = "nesterov",
     .type = TCTL_BOOL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "false",
     .doc = "look ahead along the momentum"},
};

static const tctl_option fake_onecycle_options[] = {
    {.name = "warmup",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0.3",
     .real_max = 1,
     .doc = "share of the steps in which the rate rises"},
};

static const tctl_option fake_idx_options[] = {
    {.name = "images",
     .type = TCTL_PATH,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED | TCTL_OPT_HASHED,
     .doc = "IDX file of images"},
    {.name = "labels",
     .type = TCTL_PATH,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED,
     .doc = "IDX file of labels"},
    {.name = "verify", .type = TCTL_BOOL, .default_yaml = "true", .doc = "check the file before reading it"},
};

static const tctl_option fake_normalize_options[] = {
    {.name = "mean",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED,
     .default_yaml = "[0.5]",
     .real_min = -1000,
     .real_max = 1000,
     .doc = "mean per channel"},
};

static const char *const fake_dtypes[] = {"bf16", "fp16", NULL};
static const char *const fake_units[] = {"steps", "epochs", NULL};

static const tctl_option fake_amp_options[] = {
    {.name = "dtype",
     .type = TCTL_ENUM,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "bf16",
     .choices = fake_dtypes,
     .doc = "the small type"},
};

static const tctl_option fake_checkpoint_options[] = {
    {.name = "every",
     .type = TCTL_COUNT,
     .flags = TCTL_OPT_REQUIRED,
     .int_min = 1,
     .int_max = 1000000,
     .choices = fake_units,
     .doc = "how often"},
    {.name = "keep",
     .type = TCTL_INT,
     .default_yaml = "2",
     .int_min = 1,
     .int_max = 1000,
     .doc = "how many are kept"},
    {.name = "token", .type = TCTL_TEXT, .flags = TCTL_OPT_SECRET, .doc = "of the store"},
    {.name = "room", .type = TCTL_SIZE, .default_yaml = "1 GiB", .doc = "space that they may take"},
};

#define FAKE_PLUGIN(id, effect, conduct, extensions_table, ...)                                              \
    {                                                                                                        \
        .struct_size = sizeof(tctl_plugin), .abi_major = 1, .option_size = sizeof(tctl_option),              \
        .bits = (effect), .flags = (conduct), .name = (id), .version = "1.2.0", .license = "Apache-2.0",     \
        .summary = "fake", .extensions = (extensions_table),                                                 \
        .n_extensions = TCTL_COUNT_OF(extensions_table), __VA_ARGS__                                         \
    }

static const tctl_extension fake_as_trainer[] = {{TCTL_TRAINER_ID, &fake_trainer}};
static const tctl_extension fake_as_optimizer[] = {{TCTL_OPTIMIZER_ID, &fake_vtable}};
static const tctl_extension fake_as_schedule[] = {{TCTL_SCHEDULE_ID, &fake_vtable}};
static const tctl_extension fake_as_source[] = {{TCTL_SOURCE_ID, &fake_vtable}};
static const tctl_extension fake_as_transform[] = {{TCTL_TRANSFORM_ID, &fake_vtable}};
static const tctl_extension fake_as_exporter[] = {{TCTL_EXPORTER_ID, &fake_vtable}};
static const tctl_extension fake_as_hooks[] = {{TCTL_HOOKS_ID, &fake_vtable}};
static const tctl_extension fake_as_saved_hooks[] = {{TCTL_HOOKS_ID, &fake_vtable},
                                                     {TCTL_STATE_ID, &fake_vtable}};
static const tctl_extension fake_as_all[] = {
    {TCTL_GRAPH_ID, &fake_vtable}, {TCTL_HOOKS_ID, &fake_vtable}, {TCTL_ENVELOPE_ID, &fake_vtable}};

static const tctl_plugin fake_plugins[] = {
    FAKE_PLUGIN("native", TCTL_BITS_RECIPE, 0, fake_as_trainer, FAKE_OPTIONS(fake_native_options)),
    FAKE_PLUGIN("sgd", TCTL_BITS_RECIPE, 0, fake_as_optimizer, FAKE_OPTIONS(fake_sgd_options)),
    FAKE_PLUGIN("onecycle", TCTL_BITS_RECIPE, 0, fake_as_schedule, FAKE_OPTIONS(fake_onecycle_options)),
    FAKE_PLUGIN("idx", TCTL_BITS_RECIPE, 0, fake_as_source, FAKE_OPTIONS(fake_idx_options)),
    FAKE_PLUGIN("flip", TCTL_BITS_RECIPE, 0, fake_as_transform, .n_options = 0),
    FAKE_PLUGIN("normalize", TCTL_BITS_RECIPE, 0, fake_as_transform, FAKE_OPTIONS(fake_normalize_options)),
    FAKE_PLUGIN("amp", TCTL_BITS_RECIPE, 0, fake_as_all, FAKE_OPTIONS(fake_amp_options)),
    FAKE_PLUGIN("checkpoint", TCTL_BITS_SAME, TCTL_PLUGIN_REMEMBERS, fake_as_saved_hooks,
                FAKE_OPTIONS(fake_checkpoint_options)),
    FAKE_PLUGIN("average", TCTL_BITS_RECIPE, TCTL_PLUGIN_REMEMBERS, fake_as_hooks, .n_options = 0),
    FAKE_PLUGIN("quantize", TCTL_BITS_RECIPE, 0, fake_as_exporter, .n_options = 0),
};

static inline tctl_status fake_find(void *impl, const char *use, const char *folder, const tctl_plugin **ret,
                                    tctl_error *err)
{
    const char *names[TCTL_COUNT_OF(fake_plugins)];
    (void)impl;
    (void)folder;
    for (size_t i = 0; i < TCTL_COUNT_OF(fake_plugins); i++) {
        names[i] = fake_plugins[i].name;
        if (strcmp(use, names[i]) == 0) {
            *ret = &fake_plugins[i];
            return TCTL_OK;
        }
    }
    tctl_fail(err, TCTL_ENOENT, "there is no plugin '%.60s'", use);
    const char *near = tctl_suggest(use, names, TCTL_COUNT_OF(fake_plugins));
    if (near)
        tctl_hint(err, "did you mean '%s'?", near);
    return TCTL_ENOENT;
}

static const tctl_plugin_finder fake_finder = {NULL, fake_find};

#endif
