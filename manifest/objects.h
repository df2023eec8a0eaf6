/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content-addressed objects in the run store: <store>/objects/ab/cdef…, named by the SHA-256 of their bytes.
 *
 * An object is a plain, read-only file that appears under its name complete (temporary file, rename), is never
 * changed, and is shared by all runs. Several processes may add at once. The first few of a set are made durable one
 * by one, which costs milliseconds each; beyond those the whole file system is synced once, which may cost seconds
 * where others write. An object that a power cut left short all the same is seen by its size and written again.
 */
#ifndef TCTL_MANIFEST_OBJECTS_H
#define TCTL_MANIFEST_OBJECTS_H

#include <stdint.h>

#include "base/error.h"
#include "manifest/digest.h"

/* A set of objects that is being kept. Begin with {.store = …}. */
typedef struct tctl_object_set {
    const char *store;
    uint64_t written; /* objects that were not there yet */
} tctl_object_set;

/* Keeps these bytes. */
tctl_status tctl_object_put(tctl_object_set *, const void *data, size_t size, tctl_sha256 *ret,
                            tctl_error *err);

/* Keeps what is read from fd (a regular file, from its current position). `known`, if not NULL, is the digest that
 * these `size` bytes are believed to have: an object that is there already under it is not written again, and
 * nothing is read. *ret, *ret_size: what was kept. `name` is for messages. */
tctl_status tctl_object_put_fd(tctl_object_set *, int fd, const char *name, const tctl_sha256 *known,
                               uint64_t size, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err);

/* Makes the set durable. */
tctl_status tctl_object_set_sync(const tctl_object_set *, tctl_error *err);

/* Opens an object for reading. Its bytes are not checked. TCTL_ENOENT if it is gone. */
tctl_status tctl_object_open(const char *store, const tctl_sha256 *digest, int *ret, tctl_error *err);

#endif
