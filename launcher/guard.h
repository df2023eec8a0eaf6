/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guardian: a small process between us and the child, so that nothing that the child starts outlives the run, not
 * even when we are killed with SIGKILL.
 *
 * It leads a session of its own, which no terminal and no signal to our group reaches, and is the subreaper of all that
 * the child leaves: whoever forks twice and calls setsid still becomes its child. When the child has ended it waits
 * a moment for the rest to end by itself, asks (SIGTERM), and kills. When our end of the socket closes, which happens
 * however we die, it kills all of them at once. It keeps our descriptors open, so that the run's lock is held until
 * then. Killing both it and us leaves grandchildren behind; nothing but a namespace would help.
 */
#ifndef TCTL_LAUNCHER_GUARD_H
#define TCTL_LAUNCHER_GUARD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "launcher/supervise.h"

/* What the guardian says, one message a packet. */
enum {
    TCTL_GUARD_STARTED = 1, /* the child runs */
    TCTL_GUARD_FAILED = 2,  /* it could not be started; value: errno */
    TCTL_GUARD_LEFT = 3,    /* a process that had to be ended; name */
    TCTL_GUARD_ENDED = 4    /* all is over; value: the child's wait status */
};
typedef struct tctl_guard_message {
    int32_t kind, value;
    uint64_t peak_bytes;
    char name[24];
} tctl_guard_message;

/* What it is told, one byte each. */
enum { TCTL_GUARD_ASK = 'a', TCTL_GUARD_KILL = 'k' };

/* What the child's descriptors are made from. All above TCTL_WORKER_EVENTS_FD; they stay the caller's. */
typedef struct tctl_guard_fds {
    int null, output, events;
} tctl_guard_fds;

/* Starts the guardian, which starts the child. *ret_fd is our end of the socket: O_CLOEXEC, not blocking. */
tctl_status tctl_guard_start(const tctl_child *, const tctl_guard_fds *, const sigset_t *child_mask,
                             pid_t *ret_pid, int *ret_fd, tctl_error *err);

/* Kills every child of this process, and what becomes one by that, until there is none. For when the guardian is gone. */
void tctl_guard_kill_children(void);

#endif
