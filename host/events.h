/* SPDX-License-Identifier: Apache-2.0 */
/* Event lines from the worker to the launcher (host/worker.h). Nobody has to listen. [any] */
#ifndef TCTL_HOST_EVENTS_H
#define TCTL_HOST_EVENTS_H

#include <stdbool.h>

/* `line` is JSON without a newline, at most PIPE_BUF bytes so that lines of several threads do not mix. Waits up to a
 * second for a slow reader if `important`, else drops the line. fd -1: nobody listens. */
void tctl_event_send(int fd, const char *line, bool important);

/* {"phase": phase, "plugin": who}; important. */
void tctl_event_phase(int fd, const char *phase, const char *who);

#endif
