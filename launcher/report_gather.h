/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of the interposer's report, gathered by key: what many processes say alike is there once. */
#ifndef TCTL_LAUNCHER_REPORT_GATHER_H
#define TCTL_LAUNCHER_REPORT_GATHER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct tctl_gathered {
    json_t *programs, *events, *objects; /* by key */
    json_t *open;                        /* id: {"program","left"}: begins without an end */
    json_int_t processes, malformed;
    bool cut; /* there was more than is kept */
} tctl_gathered;

/* Takes one line, without its newline; what is not understood is counted as malformed. */
void tctl_gather_line(tctl_gathered *, const char *text, size_t size);

/* object[key] += more, as far as a double counts. */
void tctl_gather_add(json_t *object, const char *key, json_int_t more);

/* The values of a map, in order of its keys: the order in which processes happened to write does not show. A new
 * reference; NULL if memory is out. */
json_t *tctl_gather_sorted(json_t *map);

#endif
