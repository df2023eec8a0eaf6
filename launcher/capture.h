/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that goes into a run, captured before it begins: data, code, machine.
 */
#ifndef TCTL_LAUNCHER_CAPTURE_H
#define TCTL_LAUNCHER_CAPTURE_H

#include <jansson.h>
#include <stdbool.h>

#include "launcher/inputs.h"
#include "manifest/store.h"

typedef struct tctl_capture {
    tctl_inputs inputs;
    tctl_stat_cache *cache;
    json_t *code, *environment;
} tctl_capture;

/* `no_vcs`: code is not looked at beyond the spec. Release it in any case. */
tctl_status tctl_capture_make(tctl_arena *, const tctl_spec *, const tctl_run *, const char *store,
                              bool no_vcs, tctl_view *, tctl_capture *ret, tctl_error *err);
/* The same inputs once more: TCTL_ECHANGED or TCTL_ENOENT if one is not what it was. */
tctl_status tctl_capture_recheck(tctl_arena *, const tctl_capture *, tctl_error *err);
void tctl_capture_release(tctl_capture *);

/* The names of secrets, NULL-ended, from the arena. NULL if memory is out. */
const char *const *tctl_secret_names(tctl_arena *, const tctl_spec *);

#endif
