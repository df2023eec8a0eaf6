/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the working directory. */
#include <unistd.h>

#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void change(void)
{
    if (chdir("/") != 0)
        abort();
}

COMMON_PLUGIN("folder");
