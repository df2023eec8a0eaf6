/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes that can be read at any place: a file, a member of a zip, what is inside a gzip.
 *
 * Going back in something compressed means reading from its start again; every source counts what was read for its
 * sake, so that the caller can stop a file that makes this dear (walk.h).
 */
#ifndef TCTL_MANIFEST_CONTENT_SOURCE_H
#define TCTL_MANIFEST_CONTENT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct tctl_source tctl_source;
struct tctl_source {
    const char *name; /* for messages: "model.pt", "model.pt: member 'archive/data/0'" */
    uint64_t size;
    bool compressed; /* going back is dear */
    /* Exactly n bytes from `offset`; offset + n <= size. */
    tctl_status (*read)(tctl_source *, uint64_t offset, void *into, size_t n, tctl_error *err);
    void (*close)(tctl_source *);
};

/* TCTL_EFORMAT if it reaches behind the end: "'model.pt' ends at byte 812, where 64 bytes from byte 800 should be". */
tctl_status tctl_source_read(tctl_source *, uint64_t offset, void *into, size_t n, tctl_error *err);
void tctl_source_close(tctl_source *); /* NULL is fine; the memory is the arena's */

/* A regular file (TCTL_EINVAL otherwise), opened without waiting and without following a link at its end. */
tctl_status tctl_source_open(tctl_arena *, const char *path, tctl_source **ret, tctl_error *err);
/* Memory of the caller's. */
tctl_status tctl_source_of(tctl_arena *, const char *name, const void *data, size_t size, tctl_source **ret,
                           tctl_error *err);

#endif
