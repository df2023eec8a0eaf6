/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run store: .trainctl/runs/<name>-<random>/, plain files.
 *
 * A run directory is reserved by mkdir and never shared. `state.json` is replaced atomically. Whoever supervises a
 * run holds an flock on its `lock` file, which the kernel drops however that process ends; a run that is not at an
 * end and that nobody holds shows as "died". Where the file system has no flock, the recorded supervisor (pid,
 * start time, boot id) is looked for instead. Runs are ordered by the start time in their state, then by id.
 */
#ifndef TCTL_MANIFEST_STORE_H
#define TCTL_MANIFEST_STORE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

/* States of a run. */
#define TCTL_STATE_PREPARING   "preparing"
#define TCTL_STATE_RUNNING     "running"
#define TCTL_STATE_DONE        "done"
#define TCTL_STATE_FAILED      "failed"
#define TCTL_STATE_DIED        "died"
#define TCTL_STATE_INTERRUPTED "interrupted"

typedef struct tctl_run {
    const char *id;   /* <name>-<random> */
    const char *path; /* absolute */
    json_t *state; /* content of state.json: state, reason, exit_code, started, finished, supervisor; callers
                       * may set more members, which tctl_run_set_state writes */
    int lock;      /* held by the supervisor; -1 */
} tctl_run;

#define TCTL_RUN_NONE                                                                                        \
    {                                                                                                        \
        NULL, NULL, NULL, -1                                                                                 \
    }

/* Drops the state and the lock; the strings are the arena's. Fine for TCTL_RUN_NONE and twice. */
void tctl_run_release(tctl_run *);

/* The store for who works in `folder`: $TRAINCTL_STORE, else the nearest .trainctl at or above it, else one at the
 * root of the git working tree around it, else <folder>/.trainctl; made with a .gitignore of "*". All commands ask
 * with the working directory, so that `run` and `verify last` mean the same store. From the arena. */
tctl_status tctl_store_locate(tctl_arena *, const char *folder, bool create, const char **ret,
                              tctl_error *err);

/* A new run directory <store>/runs/<name>-<random>; state "preparing", and this process supervises it. Bytes of
 * `name` that are awkward in a file name become '-'. */
tctl_status tctl_run_create(tctl_arena *, const char *store, const char *name, tctl_run *ret,
                            tctl_error *err);

/* Replaces state.json: state, and `reason`, exit code, result where given (NULL, -1: not). */
tctl_status tctl_run_set_state(tctl_run *, const char *state, const char *reason, int exit_code,
                               tctl_error *err);

/* False for "preparing" and "running". */
bool tctl_state_is_final(const char *state);

/* "done", or what else `state` holds. Never NULL. */
const char *tctl_run_state(const tctl_run *);
/* Nanoseconds since 1970, 0 if not recorded. */
uint64_t tctl_run_started(const tctl_run *);

/* By id, unique prefix, "last", "last~N" or a path to a run directory. */
tctl_status tctl_run_find(tctl_arena *, const char *store, const char *which, tctl_run *ret, tctl_error *err);

/* All, oldest first, each to be released. Directories that are no runs are passed over. */
tctl_status tctl_run_list(tctl_arena *, const char *store, tctl_run **ret, uint32_t *ret_n, tctl_error *err);

#endif
