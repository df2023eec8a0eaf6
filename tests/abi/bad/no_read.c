/* SPDX-License-Identifier: Apache-2.0 */
/* A source that cannot read. */
#include "common.h"

static const tctl_source source = {
    .struct_size = sizeof(tctl_source), .count = common_count, .describe = common_describe};
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

COMMON_PLUGIN("no_read");
