/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the stat cache, and a hash table over a run of them. Only for stat_cache.c and stat_cache_file.c.
 *
 * The table is flat and holds offsets: loading a file allocates twice, however many records there are.
 */
#ifndef TCTL_MANIFEST_STAT_INDEX_H
#define TCTL_MANIFEST_STAT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "manifest/digest.h"

/* A record, little-endian, its length a multiple of 8: u64 check (XXH3-64, seed 0, of all that follows), u32 length of
 * the record, u32 length of the path, u64 inode, u64 size, i64 mtime, i64 ctime (nanoseconds), the digest's 32 bytes,
 * the path, zero bytes. */
enum { TCTL_STAT_FIXED = 80, TCTL_STAT_MAX_PATH = 65535 };
#define TCTL_STAT_MAGIC "TCTLSTC1"
enum { TCTL_STAT_HEADER = 16 }; /* the magic and a random u64 that tells one file from its successor */

typedef struct tctl_stat_token {
    uint64_t inode, size;
    int64_t mtime, ctime;
} tctl_stat_token;

/* Bytes of a record for a path of this length. */
size_t tctl_stat_record_bytes(size_t path_length);
void tctl_stat_record_write(uint8_t *record, const char *path, size_t path_length, const tctl_stat_token *,
                            const tctl_sha256 *);
bool tctl_stat_record_matches(const uint8_t *record, const tctl_stat_token *);

/* The record at `at` of `size` bytes: its length, 0 if it is incomplete (a torn tail), -1 if it is damaged. */
int64_t tctl_stat_record_check(const uint8_t *data, size_t size, size_t at);

typedef struct tctl_stat_slot {
    uint32_t tag; /* of the path's hash */
    uint32_t at;  /* offset of the record / 8, plus 1; 0: the slot is empty */
} tctl_stat_slot;

typedef struct tctl_stat_index {
    tctl_stat_slot *slots;
    size_t n_slots; /* a power of two, or 0 */
    size_t n;       /* paths */
} tctl_stat_index;

void tctl_stat_index_release(tctl_stat_index *);
/* Room for n paths; false if memory is out. `data` is what the offsets in the table are of. */
bool tctl_stat_index_reserve(tctl_stat_index *, const uint8_t *data, size_t n);
/* Puts the record at `at` in place of an earlier one for the same path; true if there was one. Needs room. */
bool tctl_stat_index_add(tctl_stat_index *, const uint8_t *data, size_t at);
/* Offset of the record for a path, or SIZE_MAX. */
size_t tctl_stat_index_find(const tctl_stat_index *, const uint8_t *data, const char *path,
                            size_t path_length);

#endif
