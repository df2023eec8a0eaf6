/* SPDX-License-Identifier: Apache-2.0 */
/* Innocent itself, but needs libfast_library.so, which is not. */
#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

extern int fast_library_answer(void);
__attribute__((used)) static int (*const keep)(void) = fast_library_answer;

COMMON_PLUGIN("fast_dependency");
