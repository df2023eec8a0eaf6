/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest of a file or of a tree.
 *
 * A tree's digest is the SHA-256 of the line "trainctl-tree 1" NUL followed by one line per entry, sorted by path
 * bytes: type ('f', 'x' an executable file, 'l' a link, 'd' an empty folder), space, size in decimal, space,
 * SHA-256 in hex of the content (of the target's bytes for a link, '-' for a folder), space, path relative to the
 * root as it is on disk, NUL. Links are recorded as links. FIFOs, sockets and devices are errors by name. The
 * digest of a single file is the plain SHA-256 of its bytes.
 */
#ifndef TCTL_MANIFEST_TREE_H
#define TCTL_MANIFEST_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/pool.h"
#include "manifest/digest.h"
#include "manifest/stat_cache.h"

typedef struct tctl_tree_entry {
    const char *path; /* relative, bytes as on disk; "" for a single file */
    char type;        /* 'f' 'x' 'l' 'd' */
    uint64_t size;
    tctl_sha256 digest;
} tctl_tree_entry;

typedef struct tctl_tree {
    bool is_folder;
    tctl_sha256 digest;
    uint64_t n_files, n_bytes; /* regular files */
    uint64_t n_entries;
    tctl_tree_entry *entries; /* sorted by path bytes */
} tctl_tree;

/* Tells the phases apart, as "stat", "read" and "hash" differ by orders of magnitude. Called at most ten times a second
 * and once at the end, by any thread, but by one at a time. */
typedef struct tctl_tree_progress {
    void *impl;
    void (*update)(void *impl, uint64_t files_seen, uint64_t files_cached, uint64_t files_hashed,
                   uint64_t bytes_hashed, uint64_t bytes_to_hash);
} tctl_tree_progress;

typedef struct tctl_tree_request {
    tctl_pool *pool;                    /* NULL: this thread only */
    tctl_stat_cache *cache;             /* NULL: none */
    const tctl_tree_progress *progress; /* NULL: none */
    const char *const *exclude;         /* relative paths left out, NULL-ended; NULL: none */
} tctl_tree_request;

/* Everything in *ret lives in the arena. A root that is a link is followed. Errors name path and reason: TCTL_EINVAL for
 * FIFOs, sockets and devices, TCTL_ECHANGED for what changed while it was hashed, TCTL_ENOENT, TCTL_EIO. Of several, the
 * one whose path comes first is told, with a note of how many there are. Files of the request's cache are not read if
 * their token is known; new digests are put into it, and written every few seconds. */
tctl_status tctl_tree_hash(const char *path, const tctl_tree_request *, tctl_arena *, tctl_tree *ret,
                           tctl_error *err);

/* Names the first entries that differ between two trees, a line each, for messages: "changed: a/b (was 3 bytes, is 4)",
 * "missing: …", "new: …", "and 7 more". Paths are escaped as in JSON. Nothing if the trees are equal. */
void tctl_tree_explain(const tctl_tree *was, const tctl_tree *is, uint32_t at_most, tctl_buf *ret);

#endif
