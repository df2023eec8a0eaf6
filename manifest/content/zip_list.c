/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zip archive as a listing: members sorted by name, what is in them and not how they are packed. Times, attributes,
 * compression and the order in the archive do not count. numpy's .npz is a zip of .npy, torch.save's file is a zip
 * with a pickle in it, which torch_zip.c lists.
 */
#include <string.h>

#include "manifest/content/torch.h"
#include "manifest/content/zip.h"

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static tctl_status list_entry(tctl_listing *l, tctl_zip *z, const tctl_zip_entry *e, bool *all_npy,
                              tctl_error *err)
{
    tctl_sha256 digest;
    tctl_source *member = NULL;
    const char *format = NULL;
    if (ends_with(e->name, "/") && e->size == 0) {
        *all_npy = false;
        return tctl_list_value(l, e->name, "folder", err);
    }
    tctl_status st = tctl_zip_check(z, e, &digest, err);
    if (st == TCTL_OK)
        st = tctl_zip_member(z, e, &member, err);
    if (st == TCTL_OK)
        st = tctl_list_member(l, e->name, member, &digest, &format, err);
    *all_npy = *all_npy && format != NULL && strcmp(format, "npy") == 0 && ends_with(e->name, ".npy");
    return st;
}

tctl_status tctl_list_zip(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    tctl_zip *z = NULL;
    size_t n = 0;
    tctl_status st = tctl_zip_open(l->walk, s, &z, err);
    if (st != TCTL_OK)
        return st;
    const tctl_zip_entry *entries = tctl_zip_entries(z, &n);
    const char *stem = NULL;
    st = tctl_torch_stem(l->walk->arena, entries, n, &stem, err);
    if (st == TCTL_OK && stem != NULL) {
        *ret_format = "torch";
        return tctl_list_torch_zip(l, z, s->name, stem, err);
    }
    bool all_npy = n > 0;
    for (size_t i = 0; i < n && st == TCTL_OK; i++)
        st = list_entry(l, z, &entries[i], &all_npy, err);
    *ret_format = all_npy ? "npz" : "zip";
    return st;
}
