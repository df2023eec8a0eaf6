/* SPDX-License-Identifier: Apache-2.0 */
/* Does not look whether the host could give it memory. */
#include "common.h"
#include "trainctl/host/services.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

static tctl_status careless_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                   tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    char *bytes = memory->allocate(host, 1 << 16);
    *(volatile char *)bytes = 1;
    memory->release(host, bytes);
    return common_create(host, config, ret, err);
}

#define common_create careless_create
COMMON_PLUGIN("careless");
