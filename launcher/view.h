/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the person who watches sees of a run: progress, the curve, the child's own words.
 *
 * All of it goes to standard error. On a terminal one progress line is redrawn in place; elsewhere only lines that
 * stay are printed.
 */
#ifndef TCTL_LAUNCHER_VIEW_H
#define TCTL_LAUNCHER_VIEW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tctl_view tctl_view;

/* `quiet`: nothing but what tctl_view_say is given. NULL if memory is out. */
tctl_view *tctl_view_create(bool quiet, bool colour);
void tctl_view_destroy(tctl_view *); /* clears the progress line; NULL is fine */

/* Bytes of the child's standard output and error, as they come. */
void tctl_view_output(tctl_view *, const char *data, size_t size);
/* One event of the worker (host/worker.h). */
void tctl_view_event(tctl_view *, const json_t *event);
/* Redraws "what done/total unit" at most 20 times a second. */
void tctl_view_progress(tctl_view *, const char *what, uint64_t done, uint64_t total, const char *unit);
/* A whole line of the launcher's own. Without a view nothing is said. */
void tctl_view_say(tctl_view *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
