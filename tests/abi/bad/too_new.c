/* SPDX-License-Identifier: Apache-2.0 */
/* Built against headers of a later minor version. */
#define TCTL_TEST_MINOR 3
#include "common.h"

#undef TCTL_ABI_MINOR
#define TCTL_ABI_MINOR TCTL_TEST_MINOR

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

COMMON_PLUGIN("too_new");
