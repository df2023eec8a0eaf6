/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch.save since 1.6: a zip with <stem>/data.pkl, <stem>/data/<key> for each storage, and small files that say how it
 * was written. The stem is the name that the file had, so it does not count; neither do the version, the alignment, the
 * byte order (which is obeyed) and the serialization id, which is a digest over an unordered set.
 *
 * Every member's CRC is checked, also of those that do not count: torch.load does not look at them.
 */
#include <stdlib.h>
#include <string.h>

#include "manifest/content/torch.h"

typedef struct archive {
    tctl_listing *listing;
    tctl_zip *zip;
    const tctl_zip_entry *entries;
    size_t n;
    const char *name, *stem;
    size_t stem_size;
    tctl_sha256 *digests; /* [n] */
} archive;

/* What stands behind "<stem>/"; NULL for a member that is not below it. */
static const char *below(const tctl_zip_entry *e, const char *stem, size_t stem_size)
{
    return strncmp(e->name, stem, stem_size) == 0 && e->name[stem_size] == '/' ? e->name + stem_size + 1
                                                                               : NULL;
}

static const tctl_zip_entry *find(const tctl_zip_entry *entries, size_t n, const char *stem, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const char *rest = below(&entries[i], stem, strlen(stem));
        if (rest != NULL && strcmp(rest, name) == 0)
            return &entries[i];
    }
    return NULL;
}

tctl_status tctl_torch_stem(tctl_arena *arena, const tctl_zip_entry *entries, size_t n, const char **ret,
                            tctl_error *err)
{
    static const char end[] = "/data.pkl";
    *ret = NULL;
    for (size_t i = 0, tried = 0; i < n && tried < 8; i++) {
        size_t size = strlen(entries[i].name);
        if (size < sizeof end || strcmp(entries[i].name + size - (sizeof end - 1), end) != 0)
            continue;
        tried++; /* each costs a look at all names */
        char *stem = tctl_arena_copy(arena, entries[i].name, size - (sizeof end - 1));
        if (stem == NULL)
            return tctl_fail_memory(err, size);
        if (find(entries, n, stem, "version") != NULL) {
            *ret = stem;
            return TCTL_OK;
        }
    }
    return TCTL_OK;
}

static tctl_status check_members(archive *a, tctl_error *err)
{
    for (size_t i = 0; i < a->n; i++) {
        tctl_status st = tctl_zip_check(a->zip, &a->entries[i], &a->digests[i], err);
        if (st != TCTL_OK)
            return st;
        if (i > 0 && strcmp(a->entries[i].name, a->entries[i - 1].name) == 0)
            return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: member '%s' is there twice", a->name,
                             a->entries[i].name);
    }
    return TCTL_OK;
}

static tctl_status find_storages(archive *a, tctl_torch *t, tctl_error *err)
{
    t->storages = tctl_arena_take_array(a->listing->walk->arena, a->n + 1, sizeof *t->storages);
    if (t->storages == NULL)
        return tctl_fail_memory(err, a->n * sizeof *t->storages);
    for (size_t i = 0; i < a->n; i++) { /* sorted by name, so by key */
        const char *rest = below(&a->entries[i], a->stem, a->stem_size);
        if (rest == NULL || strncmp(rest, "data/", 5) != 0)
            continue;
        tctl_storage *s = &t->storages[t->n_storages++];
        *s = (tctl_storage){
            .key = rest + 5, .bytes = a->entries[i].size, .sha256 = a->digests[i], .has_digest = true};
        tctl_status st = tctl_zip_member(a->zip, &a->entries[i], &s->source, err);
        if (st != TCTL_OK)
            return st;
    }
    return TCTL_OK;
}

static tctl_status read_byte_order(archive *a, tctl_torch *t, tctl_error *err)
{
    const tctl_zip_entry *e = find(a->entries, a->n, a->stem, "byteorder");
    tctl_source *s = NULL;
    char text[8] = "";
    if (e == NULL || e->size >= sizeof text)
        return TCTL_OK;
    tctl_status st = tctl_zip_member(a->zip, e, &s, err);
    if (st == TCTL_OK)
        st = tctl_source_read(s, 0, text, (size_t)e->size, err);
    t->big_endian = strcmp(text, "big") == 0;
    return st;
}

/* All members of the archive that are neither tree nor storage nor about the container: TorchScript's code, and what
 * users add. If the pickle could not be read, all of them, as bytes. */
static tctl_status list_others(archive *a, bool all, tctl_error *err)
{
    static const char *const ignored[] = {
        "version", "byteorder", ".format_version", ".storage_alignment", ".data/serialization_id", NULL};
    tctl_status st = TCTL_OK;
    for (size_t i = 0; i < a->n && st == TCTL_OK; i++) {
        const tctl_zip_entry *e = &a->entries[i];
        const char *rest = below(e, a->stem, a->stem_size), *format = NULL, *name;
        tctl_source *s = NULL;
        bool skipped =
            rest != NULL && !all && (strcmp(rest, "data.pkl") == 0 || strncmp(rest, "data/", 5) == 0);
        for (size_t k = 0; rest != NULL && ignored[k] != NULL; k++)
            skipped = skipped || strcmp(rest, ignored[k]) == 0;
        if (skipped)
            continue;
        name = tctl_arena_format(a->listing->walk->arena, "archive:%s", rest == NULL ? e->name : rest);
        st = name == NULL ? tctl_fail_memory(err, 0) : tctl_zip_member(a->zip, e, &s, err);
        if (st == TCTL_OK)
            st = tctl_list_member(a->listing, name, s, &a->digests[i], &format, err);
    }
    return st;
}

static tctl_status list_values(archive *a, tctl_torch *t, tctl_error *err)
{
    const tctl_zip_entry *e = find(a->entries, a->n, a->stem, "data.pkl");
    tctl_source *s = NULL;
    tctl_pickled *root = NULL;
    uint64_t at = 0;
    tctl_status st = tctl_zip_member(a->zip, e, &s, err);
    if (st == TCTL_OK)
        st = tctl_pickle_read(a->listing->walk->arena, s, &at, &root, NULL, err);
    if (st == TCTL_EUNSUPPORTED)
        return list_others(a, true, err);
    if (st == TCTL_OK)
        st = tctl_torch_list_tree(t, root, err);
    return st == TCTL_OK ? list_others(a, false, err) : st;
}

tctl_status tctl_list_torch_zip(tctl_listing *l, tctl_zip *zip, const char *name, const char *stem,
                                tctl_error *err)
{
    archive a = {.listing = l, .zip = zip, .name = name, .stem = stem, .stem_size = strlen(stem)};
    tctl_torch t = {.listing = l, .name = name, .path = TCTL_BUF_INIT};
    a.entries = tctl_zip_entries(zip, &a.n);
    a.digests = tctl_arena_take_array(l->walk->arena, a.n, sizeof *a.digests);
    if (a.digests == NULL)
        return tctl_fail_memory(err, a.n * sizeof *a.digests);
    tctl_status st = check_members(&a, err);
    if (st == TCTL_OK)
        st = find_storages(&a, &t, err);
    if (st == TCTL_OK)
        st = read_byte_order(&a, &t, err);
    if (st == TCTL_OK)
        st = list_values(&a, &t, err);
    tctl_buf_release(&t.path);
    return st;
}
