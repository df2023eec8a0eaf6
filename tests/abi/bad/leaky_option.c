/* SPDX-License-Identifier: Apache-2.0 */
/* An option that claims not to change results, and does. */
#include "common.h"

static tctl_status leaky_read(tctl_stage *stage, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    tctl_status status = common_read(stage, sample, out, err);
    *(int64_t *)out[0].data += stage->buffer;
    return status;
}

static const tctl_source source = {.struct_size = sizeof(tctl_source),
                                   .count = common_count,
                                   .describe = common_describe,
                                   .read = leaky_read};
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

COMMON_PLUGIN("leaky_option");
