/* SPDX-License-Identifier: Apache-2.0 */
/* Crashes in create. */
#define common_create unused_create
#include "common.h"
#undef common_create

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

static tctl_status common_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                 tctl_error *err)
{
    (void)host, (void)config, (void)ret, (void)err;
    abort();
}

COMMON_PLUGIN("crash_create");
