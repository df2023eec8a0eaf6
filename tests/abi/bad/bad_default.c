/* SPDX-License-Identifier: Apache-2.0 */
/* An option whose default is outside its own range. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {
    {.name = "scale",
     .type = TCTL_INT,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "300",
     .int_min = 1,
     .int_max = 100,
     .doc = "factor of every value"},
    COMMON_BUFFER,
};

COMMON_PLUGIN("bad_default");
