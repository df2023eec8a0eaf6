/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for the option 'buffer', which its table does not declare. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE};

COMMON_PLUGIN("undeclared");
