/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who looks after a run: a process named so that a later one with the same pid is not taken for it.
 */
#ifndef TCTL_MANIFEST_SUPERVISOR_H
#define TCTL_MANIFEST_SUPERVISOR_H

#include <jansson.h>
#include <stdbool.h>

/* {"pid","start_time" (clock ticks since boot),"boot_id"} of this process. A new reference; NULL: no memory. */
json_t *tctl_supervisor_self(void);
/* True if that process runs on this machine; false if it does not, or if it can't be told. */
bool tctl_supervisor_alive(const json_t *supervisor);

#endif
