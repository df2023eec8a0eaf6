/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What torch.save wrote: a value tree, and the storages that its tensors are views of. Internal to content/.
 *
 * The two containers (a zip since torch 1.6, a row of pickles before) give the same listing for the same values. Where
 * a tensor lay (cpu, cuda:0), the storage's keys, which may be heap addresses, and how it is strided do not count;
 * which tensors share a storage does: storages are numbered as they first appear.
 */
#ifndef TCTL_MANIFEST_CONTENT_TORCH_H
#define TCTL_MANIFEST_CONTENT_TORCH_H

#include "manifest/content/pickle.h"
#include "manifest/content/zip.h"

typedef struct tctl_storage {
    const char *key;
    tctl_source *source;
    uint64_t offset, bytes;
    tctl_sha256 sha256; /* of all its bytes, if has_digest */
    bool has_digest, seen;
    uint32_t number; /* if seen */
} tctl_storage;

/* A saved file as its tree sees it. */
typedef struct tctl_torch {
    tctl_listing *listing;
    const char *name; /* of the file, for messages */
    bool big_endian;
    tctl_storage *storages; /* sorted by key */
    size_t n_storages;
    uint32_t n_seen;
    tctl_buf path; /* of the value that is listed */
    uint32_t depth;
} tctl_torch;

tctl_status tctl_torch_list_tree(tctl_torch *, const tctl_pickled *root, tctl_error *err);
/* qsort's order of storages. */
int tctl_storage_order(const void *, const void *);
/* "torch FloatStorage": type and bytes of an element; false for a name that is none. *ret_word: what is swapped. */
bool tctl_torch_type(const char *global, const char **ret_dtype, uint32_t *ret_bytes, uint32_t *ret_word);
/* ('storage', type, key, location, elements): NULL in *ret_key if the id is no such thing. */
void tctl_torch_id(const tctl_pickled *persistent, const char **ret_type, const char **ret_key,
                   uint64_t *ret_n);

/* The folder that all of torch's members lie in, without '/'; NULL in *ret if this is none of torch's archives. */
tctl_status tctl_torch_stem(tctl_arena *, const tctl_zip_entry *, size_t n, const char **ret,
                            tctl_error *err);
/* `name` is the file's. */
tctl_status tctl_list_torch_zip(tctl_listing *, tctl_zip *, const char *name, const char *stem,
                                tctl_error *err);

#endif
