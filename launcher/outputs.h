/* SPDX-License-Identifier: Apache-2.0 */
/* What a child left in its output folder, as the manifest has it. */
#ifndef TCTL_LAUNCHER_OUTPUTS_H
#define TCTL_LAUNCHER_OUTPUTS_H

#include <jansson.h>

#include "config/spec.h"
#include "launcher/view.h"

/*
 * The list of tctl_outputs_json for the declared outputs (all that is in `out`, if the spec declares none), with the
 * contents of a command's files (docs/outputs.md); a trainer's are compared by their bytes, which its contract promises.
 * *ret_damage: why an output is no result, or NULL; *ret_path is then its path. *ret is a new reference.
 */
tctl_status tctl_outputs_collect(tctl_arena *, const tctl_spec *, const char *out, tctl_view *, json_t **ret,
                                 const char **ret_damage, const char **ret_path, tctl_error *err);

#endif
