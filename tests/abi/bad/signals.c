/* SPDX-License-Identifier: Apache-2.0 */
/* Ignores SIGPIPE, as some network libraries do. */
#include <signal.h>

#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void change(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
}

COMMON_PLUGIN("signals");
