/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text that a tree's digest is the SHA-256 of (manifest/tree.h has the format), written and read back.
 *
 * Outside git the code of a run is kept as such a listing, so a listing is read from a file that somebody may
 * have changed: nothing in it is trusted.
 */
#ifndef TCTL_MANIFEST_LISTING_H
#define TCTL_MANIFEST_LISTING_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "manifest/tree.h"

/* The first line. */
void tctl_listing_begin(tctl_buf *);
/* One entry; the caller adds them in order of path bytes. */
void tctl_listing_add(tctl_buf *, const tctl_tree_entry *);

/* Entries of a listing, from the arena, sorted and without duplicates. TCTL_EFORMAT, with the entry's number and
 * reason, for anything else: also for paths that are absolute, have an empty, "." or ".." component, or for one
 * entry inside another that is no folder. `name` is for messages. */
tctl_status tctl_listing_parse(tctl_arena *, const char *name, const char *text, size_t size,
                               tctl_tree_entry **ret, size_t *ret_n, tctl_error *err);

#endif
