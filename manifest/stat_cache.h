/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers digests of files by what stat(2) says of them, so that unchanged files need not be read again.
 *
 * Key: absolute path; token: device, inode, size, mtime and ctime in nanoseconds. A file whose mtime or ctime is
 * not older than the moment its digest was stored is "racy" (it could change again without a visible trace) and
 * is hashed again: git's rule. The cache is one append-only file of checksummed records; a torn tail is ignored;
 * several processes may use it at once (appends under flock, whole records). Rewritten when more than half of it
 * is stale. A cache that can't be used is skipped with one warning: it is never a reason to fail.
 */
#ifndef TCTL_MANIFEST_STAT_CACHE_H
#define TCTL_MANIFEST_STAT_CACHE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/arena.h"

#include "base/error.h"
#include "manifest/digest.h"

typedef struct tctl_stat_cache tctl_stat_cache;

/* Always gives a cache; if the file can't be used, an empty one in memory and the reason in *why (may be NULL). */
tctl_stat_cache *tctl_stat_cache_open(const char *path, tctl_error *why);
/* Thread-safe. */
bool tctl_stat_cache_get(tctl_stat_cache *, const char *path, const struct stat *, tctl_sha256 *ret);
void tctl_stat_cache_put(tctl_stat_cache *, const char *path, const struct stat *, const tctl_sha256 *);
/* Writes what is new and frees the cache; NULL is fine. */
void tctl_stat_cache_close(tctl_stat_cache *);

/* $XDG_CACHE_HOME/trainctl/stat-v1, else ~/.cache/…; NULL if neither exists. From the arena. */
const char *tctl_stat_cache_default_path(tctl_arena *);

#endif
