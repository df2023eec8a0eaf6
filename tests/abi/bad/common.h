/* SPDX-License-Identifier: Apache-2.0 */
/* What the bad plugins share: a source of 64 samples that is right, and a descriptor around it. Each file breaks one
 * thing. */
#ifndef TCTL_TESTS_ABI_COMMON_H
#define TCTL_TESTS_ABI_COMMON_H

#include <stdlib.h>

#include "trainctl/ext/source.h"
#include "trainctl/plugin.h"

struct tctl_stage {
    int64_t scale;
    int64_t buffer;
};

static inline uint64_t common_count(tctl_stage *stage)
{
    (void)stage;
    return 64;
}

static inline uint32_t common_describe(tctl_stage *stage, tctl_field *fields, uint32_t cap)
{
    static const tctl_field field = {.name = "value", .dtype = TCTL_I64, .rank = 1, .dims = {4}};
    (void)stage;
    if (cap >= 1)
        fields[0] = field;
    return 1;
}

static inline tctl_status common_read(tctl_stage *stage, uint64_t sample, const tctl_tensor *out,
                                      tctl_error *err)
{
    (void)err;
    int64_t *values = out[0].data;
    for (int64_t i = 0; i < 4; i++)
        values[i] = ((int64_t)sample * 4 + i) * stage->scale;
    return TCTL_OK;
}

static inline tctl_status common_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                        tctl_error *err)
{
    tctl_stage *stage = malloc(sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->scale = host->cfg_int(config, "scale");
    stage->buffer = host->cfg_int(config, "buffer");
    *ret = stage;
    return TCTL_OK;
}

static inline void common_destroy(tctl_stage *stage)
{
    free(stage);
}

#define COMMON_SCALE                                                                                         \
    {                                                                                                        \
        .name = "scale", .type = TCTL_INT, .flags = TCTL_OPT_SEMANTIC, .default_yaml = "3", .int_min = 1,    \
        .int_max = 100, .doc = "factor of every value", .since = "1.0"                                       \
    }
#define COMMON_BUFFER                                                                                        \
    {                                                                                                        \
        .name = "buffer", .type = TCTL_INT, .default_yaml = "2", .int_min = 0, .int_max = 8,                 \
        .doc = "samples read ahead", .since = "1.0"                                                          \
    }
#define COMMON_SOURCE                                                                                        \
    {                                                                                                        \
        .struct_size = sizeof(tctl_source), .count = common_count, .describe = common_describe,              \
        .read = common_read                                                                                  \
    }
#define COMMON_WORDS                                                                                         \
    .bits = TCTL_BITS_RECIPE, .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS, .version = "1.0.0",              \
    .license = "Apache-2.0", .summary = "a plugin for tests"
/* The usual descriptor; needs `options` and `extensions` in sight. */
#define COMMON_PLUGIN(plugin_name)                                                                           \
    const tctl_plugin trainctl_plugin_v1 = {                                                                 \
        .struct_size = sizeof(tctl_plugin),                                                                  \
        .abi_major = TCTL_ABI_MAJOR,                                                                         \
        .abi_minor = TCTL_ABI_MINOR,                                                                         \
        .option_size = sizeof(tctl_option),                                                                  \
        .n_options = TCTL_COUNT_OF(options),                                                                 \
        .n_extensions = TCTL_COUNT_OF(extensions),                                                           \
        COMMON_WORDS,                                                                                        \
        .name = plugin_name,                                                                                 \
        .options = options,                                                                                  \
        .extensions = extensions,                                                                            \
        .create = common_create,                                                                             \
        .destroy = common_destroy,                                                                           \
    }

#endif
