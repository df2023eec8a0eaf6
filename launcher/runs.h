/* SPDX-License-Identifier: Apache-2.0 */
/* Finding runs from the command line, and saying what they are. */
#ifndef TCTL_LAUNCHER_RUNS_H
#define TCTL_LAUNCHER_RUNS_H

#include "launcher/command.h"
#include "manifest/store.h"

/* The store that the working directory belongs to. Returns an exit code. */
int tctl_runs_store(const tctl_command_line *, const char **ret);
/* The run that an argument names; release it. Returns an exit code. */
int tctl_runs_find(const tctl_command_line *, const char *which, tctl_run *ret);

/* "2026-01-31 09:15:02Z", from the arena. */
const char *tctl_runs_when(tctl_arena *, uint64_t nanoseconds);
/* "test_accuracy 91.63 %" of a state's or manifest's "metrics"; "" if there is none. From the arena. */
const char *tctl_runs_metric(tctl_arena *, const json_t *metrics);
/* The first 12 digits of a hex digest, "-" without one. From the arena. */
const char *tctl_runs_short(tctl_arena *, const json_t *digest);

#endif
