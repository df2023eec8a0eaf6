/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the rounding direction in create. */
#include <fenv.h>

#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

static tctl_status fast_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                               tctl_error *err)
{
    (void)fesetround(FE_UPWARD);
    return common_create(host, config, ret, err);
}

#define common_create fast_create
COMMON_PLUGIN("fast_create");
