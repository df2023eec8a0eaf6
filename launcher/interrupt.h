/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Ctrl-C does to a run while no child is running: hashing data, sealing.
 *
 * The handler writes the prepared state.json (temporary file, rename) and ends the program; it calls nothing that is
 * not async-signal-safe. While tctl_supervise runs, the signals are blocked and read there.
 */
#ifndef TCTL_LAUNCHER_INTERRUPT_H
#define TCTL_LAUNCHER_INTERRUPT_H

#include "manifest/store.h"

/* SIGINT, SIGTERM and SIGHUP mark this run as interrupted from now on. Also after its state has changed. */
tctl_status tctl_interrupt_arm(const tctl_run *, tctl_error *err);
/* The default again. */
void tctl_interrupt_disarm(void);

#endif
