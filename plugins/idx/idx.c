/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source `idx`: images and labels in IDX files (MNIST, Fashion-MNIST, EMNIST), plain or gzip.
 *
 * `create` reads and checks both files whole; `read` copies from memory. Fields: `image` u8 [H,W,1] and, if
 * labels are given, `label` i64 [].
 */
#include "idx_file.h"
#include "idx_format.h"

#include "trainctl/ext/source.h"
#include "trainctl/host/services.h"
#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

struct tctl_stage {
    const tctl_host *host;
    const tctl_memory *memory;
    unsigned char *image_file, *label_file; /* NULL once decompressed */
    idx_array images, labels;
    int has_labels;
};

static tctl_status fail_format(const tctl_host *host, const char *path, const idx_problem *problem,
                               tctl_error *err)
{
    if (problem->out_of_memory)
        return host->fail(err, TCTL_ENOMEM, "cannot read '%s': %s", path, problem->reason);
    return host->fail(err, TCTL_EFORMAT, "'%s' is damaged at %s %llu: %s", path,
                      problem->in_gzip ? "decompressed offset" : "offset",
                      (unsigned long long)problem->offset, problem->reason);
}

/* The host's memory for idx_decode. */
typedef struct memory_of_host {
    const tctl_host *host;
    const tctl_memory *memory;
} memory_of_host;

static void *allocate(const void *owner, size_t size_bytes)
{
    const memory_of_host *m = owner;
    return m->memory->allocate(m->host, size_bytes);
}

static void release(const void *owner, void *bytes)
{
    const memory_of_host *m = owner;
    m->memory->release(m->host, bytes);
}

/* Reads and decodes the file that `option` names. A file that had to be decompressed is released at once. */
static tctl_status load(const tctl_host *host, const tctl_config *config, const tctl_memory *memory,
                        const char *option, uint32_t magic, unsigned char **file, idx_array *array,
                        tctl_error *err)
{
    const char *path = host->cfg_text(config, option);
    size_t size = 0;
    tctl_status status = idx_file_read(host, config, memory, option, path, file, &size, err);
    if (status != TCTL_OK)
        return status;
    const memory_of_host owner = {host, memory};
    const idx_memory from_host = {&owner, allocate, release};
    idx_problem problem;
    if (!idx_decode(*file, size, magic, &from_host, array, &problem))
        return fail_format(host, path, &problem, err);
    if (array->bytes) {
        memory->release(host, *file);
        *file = NULL;
    }
    return TCTL_OK;
}

static void idx_destroy(tctl_stage *stage)
{
    if (!stage)
        return;
    const tctl_host *host = stage->host;
    const tctl_memory *memory = stage->memory;
    memory->release(host, stage->image_file);
    memory->release(host, stage->label_file);
    memory->release(host, stage->images.bytes);
    memory->release(host, stage->labels.bytes);
    memory->release(host, stage);
}

static tctl_status load_both(const tctl_host *host, const tctl_config *config, tctl_stage *stage,
                             tctl_error *err)
{
    tctl_status status =
        load(host, config, stage->memory, "images", IDX_IMAGES, &stage->image_file, &stage->images, err);
    stage->has_labels = host->cfg_given(config, "labels");
    if (status != TCTL_OK || !stage->has_labels)
        return status;
    status = load(host, config, stage->memory, "labels", IDX_LABELS, &stage->label_file, &stage->labels, err);
    if (status != TCTL_OK)
        return status;
    if (stage->images.count != stage->labels.count)
        return host->fail(err, TCTL_EFORMAT, "'%s' at offset 4: %u labels, but '%s' has %u images",
                          host->cfg_text(config, "labels"), stage->labels.count,
                          host->cfg_text(config, "images"), stage->images.count);
    return TCTL_OK;
}

/* Leaves the first `limit` samples. */
static tctl_status apply_limit(const tctl_host *host, const tctl_config *config, tctl_stage *stage,
                               tctl_error *err)
{
    int64_t limit = host->cfg_given(config, "limit") ? host->cfg_int(config, "limit") : stage->images.count;
    if (limit > (int64_t)stage->images.count)
        return host->fail_option(err, config, "limit", "'limit' is %lld, but there are only %u samples",
                                 (long long)limit, stage->images.count);
    stage->images.count = (uint32_t)limit;
    return TCTL_OK;
}

static tctl_status idx_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                              tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    if (!memory)
        return host->fail(err, TCTL_EUNSUPPORTED, "the host has no service '%s'", TCTL_MEMORY_ID);
    tctl_stage *stage = memory->allocate(host, sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->host = host;
    stage->memory = memory;
    tctl_status status = load_both(host, config, stage, err);
    if (status == TCTL_OK)
        status = apply_limit(host, config, stage, err);
    if (status != TCTL_OK) {
        idx_destroy(stage);
        return status;
    }
    *ret = stage;
    return TCTL_OK;
}

static uint64_t idx_count(tctl_stage *stage)
{
    return stage->images.count;
}

static uint32_t idx_describe(tctl_stage *stage, tctl_field *fields, uint32_t cap)
{
    const tctl_field all[2] = {
        {"image", TCTL_U8, 0, 3, 0, {stage->images.height, stage->images.width, 1, 0, 0, 0}},
        {"label", TCTL_I64, 0, 0, 0, {0, 0, 0, 0, 0, 0}},
    };
    uint32_t n = stage->has_labels ? 2 : 1;
    for (uint32_t i = 0; i < n && i < cap; i++)
        fields[i] = all[i];
    return n;
}

static tctl_status idx_read(tctl_stage *stage, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    size_t size = (size_t)stage->images.height * stage->images.width;
    memcpy(out[0].data, stage->images.values + sample * size, size);
    if (stage->has_labels) {
        int64_t label = stage->labels.values[sample];
        memcpy(out[1].data, &label, sizeof label);
    }
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"images", TCTL_PATH, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED, NULL, 0, 0, 0, 0, NULL,
     NULL, "IDX file of images (magic 0x00000803), plain or gzip", "0.1.0"},
    {"labels", TCTL_PATH, TCTL_OPT_SEMANTIC | TCTL_OPT_HASHED, NULL, 0, 0, 0, 0, NULL, NULL,
     "IDX file of as many labels (magic 0x00000801), plain or gzip; without it samples have no label",
     "0.1.0"},
    {"limit", TCTL_INT, TCTL_OPT_SEMANTIC, NULL, 1, 4294967295, 0, 0, NULL, "samples",
     "use only the first so many samples", "0.1.0"},
};

static const tctl_source source = {sizeof source, 0, idx_count, idx_describe, idx_read};

static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "idx",
    "0.1.0",
    "Apache-2.0",
    "images and labels in IDX files, as MNIST and Fashion-MNIST come",
    options,
    extensions,
    idx_create,
    idx_destroy,
};
