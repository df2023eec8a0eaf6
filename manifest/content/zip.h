/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a zip archive, by libzip, over any source. Internal to content/.
 *
 * A zip is checked while it is opened: the central directory against the local headers. The CRC of a member is checked
 * by tctl_zip_check, which reads all of it; reading parts of it later checks nothing.
 */
#ifndef TCTL_MANIFEST_CONTENT_ZIP_H
#define TCTL_MANIFEST_CONTENT_ZIP_H

#include "manifest/content/walk.h"

typedef struct tctl_zip_entry {
    const char *name; /* bytes as they are in the archive */
    uint64_t index;   /* libzip's */
    uint64_t size;    /* uncompressed */
    bool compressed, encrypted;
} tctl_zip_entry;

typedef struct tctl_zip tctl_zip;

/* Closed with the walk. */
tctl_status tctl_zip_open(tctl_walk *, tctl_source *, tctl_zip **ret, tctl_error *err);
/* Sorted by name; equal names in the archive's order. */
const tctl_zip_entry *tctl_zip_entries(const tctl_zip *, size_t *ret_n);
/* Reads all of the entry: CRC and size are right, and *ret is the SHA-256 of what is in it. */
tctl_status tctl_zip_check(tctl_zip *, const tctl_zip_entry *, tctl_sha256 *ret, tctl_error *err);
/* What is in an entry; of all members of a zip one is open at a time. */
tctl_status tctl_zip_member(tctl_zip *, const tctl_zip_entry *, tctl_source **ret, tctl_error *err);

#endif
