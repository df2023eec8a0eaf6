/* SPDX-License-Identifier: Apache-2.0 */
/* Between compare.c, which opens files and compares bytes, and compare_leaves.c. Internal to content/. */
#ifndef TCTL_MANIFEST_CONTENT_COMPARE_LEAVES_H
#define TCTL_MANIFEST_CONTENT_COMPARE_LEAVES_H

#include "manifest/content/walk.h"

/* The first leaf, in the order of `a`, that is not the same in `b`: as tctl_content_compare has it. NULL in *ret if
 * there is none. */
tctl_status tctl_compare_leaves(tctl_walk *a, tctl_walk *b, const char *format, json_t **ret,
                                tctl_error *err);

#endif
