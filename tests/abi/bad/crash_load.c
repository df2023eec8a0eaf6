/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that crashes when it is loaded. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void die(void)
{
    abort();
}

COMMON_PLUGIN("crash_load");
