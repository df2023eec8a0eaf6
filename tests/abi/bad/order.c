/* SPDX-License-Identifier: Apache-2.0 */
/* A source that is right when it is read in order, and only then: it goes on from the last sample. */
#include "common.h"

static tctl_status order_read(tctl_stage *stage, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    tctl_status status = common_read(stage, sample, out, err);
    if (sample < (uint64_t)stage->buffer)
        ((int64_t *)out[0].data)[3] = 0;
    stage->buffer = (int64_t)sample;
    return status;
}

static const tctl_source source = {.struct_size = sizeof(tctl_source),
                                   .count = common_count,
                                   .describe = common_describe,
                                   .read = order_read};
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE};

static tctl_status order_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                tctl_error *err)
{
    tctl_stage *stage = malloc(sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->scale = host->cfg_int(config, "scale");
    stage->buffer = 0;
    *ret = stage;
    return TCTL_OK;
}

#define common_create order_create
COMMON_PLUGIN("order");
