/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One child from start to end.
 *
 * The child leads its own process group and dies with us; so does whatever it starts, however it hides (guard.h). Its
 * standard input is empty: what a run reads is recorded, and a terminal is not. Its standard output and error go into
 * one log file and through the view; what it writes to descriptor 3 are events; it inherits no other descriptor. The
 * first SIGINT, SIGTERM or SIGHUP to us is passed on to its group as SIGTERM and we wait; the second one, or the end of
 * the grace time, is SIGKILL. When we return nothing of it is left, and no zombie.
 *
 * Not thread-safe: one child at a time, from the main thread.
 */
#ifndef TCTL_LAUNCHER_SUPERVISE_H
#define TCTL_LAUNCHER_SUPERVISE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "launcher/envelope.h"
#include "launcher/view.h"

typedef struct tctl_child {
    const char *const *argv; /* argv[0] is a path; NULL-ended */
    const char *folder;      /* working directory */
    const char *log_path;    /* made, or appended to */
    const tctl_envelope *envelope;
    bool events; /* give it descriptor 3 */
    double grace_seconds;
    double limit_seconds; /* killed after that; 0: never */
    tctl_view *view;
} tctl_child;

typedef struct tctl_child_end {
    int exit_code;        /* as a shell would say: 128 + signal if one killed it */
    int signal;           /* that killed it; 0 */
    int stopped_by;       /* the signal that asked us to stop; 0 */
    bool over_limit;      /* killed because limit_seconds were over */
    bool log_disk_full;   /* not all of its output could be logged */
    const char *phase;    /* of the last phase event, "create"; NULL: none. From the arena */
    const char *plugin;   /* who that phase was about: a path, or "conv1 (plugin 'x')"; NULL */
    json_t *last_metrics; /* of the last event that has some; NULL */
    json_t *left;         /* names of the processes that it left running and that were ended; NULL: none */
    bool unguarded;       /* somebody killed the guardian */
    double seconds;
    uint64_t peak_bytes; /* resident set of the largest process */
} tctl_child_end;

/* Fails only if the child could not be started or waited for. */
tctl_status tctl_supervise(tctl_arena *, const tctl_child *, tctl_child_end *ret, tctl_error *err);
void tctl_child_release(tctl_child_end *);

/* "killed by SIGKILL (out of memory?)", "exit status 3"; NULL for a good end. From the arena. */
const char *tctl_child_reason(tctl_arena *, const tctl_child_end *);

#endif
