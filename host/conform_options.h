/* SPDX-License-Identifier: Apache-2.0 */
/* Which other values the conformance suite gives to an option that claims not to change results. */
#ifndef TCTL_HOST_CONFORM_OPTIONS_H
#define TCTL_HOST_CONFORM_OPTIONS_H

#include "base/arena.h"
#include "base/error.h"
#include "trainctl/plugin.h"

/* "name=value" texts for option number i; none for semantic options and for types without a small set of telling
 * values (TEXT, PATH, PLUGIN). From the arena. */
tctl_status tctl_conform_values(tctl_arena *, const tctl_plugin *, uint32_t i, const char *const **ret,
                                uint32_t *ret_n, tctl_error *err);

#endif
