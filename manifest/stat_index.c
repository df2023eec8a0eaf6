/* SPDX-License-Identifier: Apache-2.0 */
/* See stat_index.h. Linear probing; the table is at most half full. */
#include "manifest/stat_index.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/bytes.h"

size_t tctl_stat_record_bytes(size_t path_length)
{
    return (TCTL_STAT_FIXED + path_length + 7) & ~(size_t)7;
}

void tctl_stat_record_write(uint8_t *record, const char *path, size_t path_length,
                            const tctl_stat_token *token, const tctl_sha256 *digest)
{
    size_t size = tctl_stat_record_bytes(path_length);
    tctl_put_u32(record + 8, (uint32_t)size);
    tctl_put_u32(record + 12, (uint32_t)path_length);
    tctl_put_u64(record + 16, token->inode);
    tctl_put_u64(record + 24, token->size);
    tctl_put_u64(record + 32, (uint64_t)token->mtime);
    tctl_put_u64(record + 40, (uint64_t)token->ctime);
    memcpy(record + 48, digest->bytes, sizeof digest->bytes);
    memcpy(record + TCTL_STAT_FIXED, path, path_length);
    memset(record + TCTL_STAT_FIXED + path_length, 0, size - TCTL_STAT_FIXED - path_length);
    tctl_put_u64(record, XXH3_64bits(record + 8, size - 8));
}

bool tctl_stat_record_matches(const uint8_t *record, const tctl_stat_token *token)
{
    return tctl_get_u64(record + 16) == token->inode && tctl_get_u64(record + 24) == token->size &&
           tctl_get_u64(record + 32) == (uint64_t)token->mtime &&
           tctl_get_u64(record + 40) == (uint64_t)token->ctime;
}

static bool all_zero(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != 0)
            return false;
    }
    return true;
}

int64_t tctl_stat_record_check(const uint8_t *data, size_t size, size_t at)
{
    size_t left = size - at;
    const uint8_t *record = data + at;
    if (left < TCTL_STAT_FIXED)
        return 0;
    size_t length = tctl_get_u32(record + 8), path_length = tctl_get_u32(record + 12);
    /* After a power cut a file may end in zeros that were to be records: torn, not damaged. */
    if (length == 0 && all_zero(record, left))
        return 0;
    if (path_length < 1 || path_length > TCTL_STAT_MAX_PATH || length != tctl_stat_record_bytes(path_length))
        return -1;
    if (length > left)
        return 0;
    if (tctl_get_u64(record) != XXH3_64bits(record + 8, length - 8))
        return -1;
    /* A path ends at its first zero byte, so one inside would make two keys of one. */
    return memchr(record + TCTL_STAT_FIXED, 0, path_length) ? -1 : (int64_t)length;
}

void tctl_stat_index_release(tctl_stat_index *index)
{
    free(index->slots);
    *index = (tctl_stat_index){NULL, 0, 0};
}

/* The slot of the path, or the empty one where it belongs. */
static tctl_stat_slot *probe(const tctl_stat_index *index, const uint8_t *data, uint64_t hash,
                             const char *path, size_t path_length)
{
    size_t mask = index->n_slots - 1;
    uint32_t tag = (uint32_t)(hash >> 32);
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        tctl_stat_slot *slot = &index->slots[i];
        if (slot->at == 0)
            return slot;
        if (slot->tag != tag)
            continue;
        const uint8_t *record = data + ((size_t)slot->at - 1) * 8;
        if (tctl_get_u32(record + 12) == path_length &&
            memcmp(record + TCTL_STAT_FIXED, path, path_length) == 0)
            return slot;
    }
}

bool tctl_stat_index_reserve(tctl_stat_index *index, const uint8_t *data, size_t n)
{
    size_t n_slots = 64;
    while (n_slots / 2 < n)
        n_slots *= 2;
    if (n_slots <= index->n_slots)
        return true;
    tctl_stat_index larger = {calloc(n_slots, sizeof *larger.slots), n_slots, 0};
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < index->n_slots; i++) {
        if (index->slots[i].at)
            tctl_stat_index_add(&larger, data, ((size_t)index->slots[i].at - 1) * 8);
    }
    tctl_stat_index_release(index);
    *index = larger;
    return true;
}

bool tctl_stat_index_add(tctl_stat_index *index, const uint8_t *data, size_t at)
{
    const uint8_t *record = data + at;
    const char *path = (const char *)record + TCTL_STAT_FIXED;
    size_t path_length = tctl_get_u32(record + 12);
    uint64_t hash = XXH3_64bits(path, path_length);
    tctl_stat_slot *slot = probe(index, data, hash, path, path_length);
    bool replaced = slot->at != 0;
    slot->tag = (uint32_t)(hash >> 32);
    slot->at = (uint32_t)(at / 8 + 1);
    index->n += !replaced;
    return replaced;
}

size_t tctl_stat_index_find(const tctl_stat_index *index, const uint8_t *data, const char *path,
                            size_t path_length)
{
    if (index->n == 0)
        return SIZE_MAX;
    tctl_stat_slot *slot = probe(index, data, XXH3_64bits(path, path_length), path, path_length);
    return slot->at ? ((size_t)slot->at - 1) * 8 : SIZE_MAX;
}
