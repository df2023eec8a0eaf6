/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers digests of files by what stat(2) says of them, so that unchanged files need not be read again.
 *
 * Key: absolute path; token: inode, size, mtime and ctime in nanoseconds. The device is not in it: its number changes
 * with a reboot on network and virtual file systems, and nothing that inode and ctime miss would show in it.
 *
 * A file that was changed so shortly before it was looked at that it could change again without a visible trace is
 * "racy" (git's word) and is not remembered. Coarse clocks: timestamps of local file systems are as fine as the
 * kernel's tick, and where they have no fraction of a second they are taken to be good to two seconds.
 *
 * The cache is one append-only file of checksummed records; a torn tail is ignored; several processes may use it at
 * once (appends under flock, whole records). Rewritten by atomic replacement when more than half of it is stale. A
 * cache that can't be used is skipped with one warning: it is never a reason to fail. Format: docs/hashing.md.
 */
#ifndef TCTL_MANIFEST_STAT_CACHE_H
#define TCTL_MANIFEST_STAT_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"

#include "base/error.h"
#include "manifest/digest.h"

typedef struct tctl_stat_cache tctl_stat_cache;

/* Always gives a cache, unless memory is out (NULL: all functions here take that for "no cache"). If the file can't be
 * read, or can't be written, or is damaged, *why (may be NULL; cleared first) holds the reason, for one warning; the
 * cache then has what could be read and keeps the rest in memory. `path` NULL: memory only. */
tctl_stat_cache *tctl_stat_cache_open(const char *path, tctl_error *why);

/* Both thread-safe. */
bool tctl_stat_cache_get(tctl_stat_cache *, const char *path, const struct stat *, tctl_sha256 *ret);
/* For a digest of what the file held between a stat(2) that gave this token and another one that gave the same.
 * `looked` is tctl_stat_cache_now() of before the first; without it the cache's opening counts, so that files which
 * are younger than the cache are not remembered. */
void tctl_stat_cache_put(tctl_stat_cache *, const char *path, const struct stat *, const tctl_sha256 *);
void tctl_stat_cache_put_at(tctl_stat_cache *, const char *path, const struct stat *, int64_t looked,
                            const tctl_sha256 *);
/* Nanoseconds since 1970 by the clock that file systems take their timestamps from. */
int64_t tctl_stat_cache_now(void);

/* Appends what is new to the file; TCTL_OK and nothing done for a cache in memory. TCTL_EBUSY if another process holds
 * the file for longer than a second. */
tctl_status tctl_stat_cache_flush(tctl_stat_cache *, tctl_error *err);
/* Flushes as far as that is possible and frees the cache. */
void tctl_stat_cache_close(tctl_stat_cache *);

/* $XDG_CACHE_HOME/trainctl/stat-v1, else ~/.cache/…; NULL if neither is set. From the arena. */
const char *tctl_stat_cache_default_path(tctl_arena *);

#endif
