/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the locale of the process. */
#include <locale.h>

#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void change(void)
{
    (void)setlocale(LC_ALL, "C.UTF-8");
}

COMMON_PLUGIN("locale");
