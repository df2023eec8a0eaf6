/* SPDX-License-Identifier: Apache-2.0 */
/* Its file is called liar.so, but it calls itself something else. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

COMMON_PLUGIN("truthful");
