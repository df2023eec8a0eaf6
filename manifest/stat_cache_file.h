/* SPDX-License-Identifier: Apache-2.0 */
/* The stat cache's file: loading, appending, rewriting. Only for stat_cache.c. */
#ifndef TCTL_MANIFEST_STAT_CACHE_FILE_H
#define TCTL_MANIFEST_STAT_CACHE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "manifest/stat_index.h"

/* What a file held when it was read. */
typedef struct tctl_stat_image {
    uint8_t *data;  /* the file from its first byte; NULL: nothing was read */
    size_t size;    /* bytes that are good: the header and whole records */
    size_t n_stale; /* records that a later one replaces */
    uint64_t id;    /* from the header; 0: there was none */
    tctl_stat_index index;
} tctl_stat_image;

void tctl_stat_image_release(tctl_stat_image *);

/* Reads the file behind `fd` and indexes it. A torn tail is left out silently. TCTL_EFORMAT for damage: what stands
 * before it is in *ret all the same. */
tctl_status tctl_stat_image_read(int fd, const char *path, tctl_stat_image *ret, tctl_error *err);

/* Appends whole records to the file at `path`, under its lock; cuts off a torn tail first. A file that is no stat cache
 * is renamed to `path`.damaged. `known` is what this process
 * has read of it (spares reading that again). With `rewrite`, the file is replaced by one without stale records. */
tctl_status tctl_stat_file_append(const char *path, const tctl_stat_image *known, const uint8_t *records,
                                  size_t size, bool rewrite, tctl_error *err);

#endif
