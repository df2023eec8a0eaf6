/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libzip over a source. See zip.h.
 *
 * libzip does not say where a member lies; the first place that it reads when it opens one is the member's header, and
 * that is what messages name.
 */
#include "manifest/content/zip.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { MAX_ENTRIES = 1 << 20 };

struct tctl_zip {
    tctl_walk *walk;
    tctl_source *from;
    uint64_t at;         /* libzip's position in it */
    uint64_t first_read; /* since `watch`; UINT64_MAX: nothing yet */
    tctl_error why;      /* of the source, when reading it failed */
    zip_error_t error;
    zip_t *archive;
    tctl_zip_entry *entries;
    size_t n_entries;
    const tctl_zip_entry *open;
    zip_file_t *file;
    uint64_t file_at; /* position in the open member */
};

typedef struct member_source {
    tctl_source base;
    tctl_zip *zip;
    const tctl_zip_entry *entry;
} member_source;

/* ---- libzip reads from a source ---------------------------------------------------------------------------- */

static zip_int64_t read_block(tctl_zip *z, void *into, zip_uint64_t n)
{
    uint64_t rest = z->from->size - z->at;
    size_t take = n < rest ? (size_t)n : (size_t)rest;
    if (z->first_read == UINT64_MAX)
        z->first_read = z->at;
    if (tctl_source_read(z->from, z->at, into, take, &z->why) != TCTL_OK) {
        zip_error_set(&z->error, ZIP_ER_READ, 0);
        return -1;
    }
    z->at += take;
    return (zip_int64_t)take;
}

static zip_int64_t fill_stat(const tctl_zip *z, void *data, zip_uint64_t n)
{
    zip_stat_t *st = data;
    if (n < sizeof *st)
        return -1;
    zip_stat_init(st);
    st->size = z->from->size;
    st->valid = ZIP_STAT_SIZE;
    return (zip_int64_t)sizeof *st;
}

static zip_int64_t seek_to(tctl_zip *z, void *data, zip_uint64_t n)
{
    zip_int64_t to = zip_source_seek_compute_offset(z->at, z->from->size, data, n, &z->error);
    if (to < 0)
        return -1;
    z->at = (uint64_t)to;
    return 0;
}

static zip_int64_t serve(void *impl, void *data, zip_uint64_t n, zip_source_cmd_t command)
{
    tctl_zip *z = impl;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_SUPPORTS, -1);
    case ZIP_SOURCE_OPEN:
        z->at = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_block(z, data, n);
    case ZIP_SOURCE_SEEK:
        return seek_to(z, data, n);
    case ZIP_SOURCE_TELL:
        return (zip_int64_t)z->at;
    case ZIP_SOURCE_STAT:
        return fill_stat(z, data, n);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&z->error, data, n);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        zip_error_set(&z->error, ZIP_ER_OPNOTSUPP, 0);
        return -1;
    }
}

/* A code of libzip's as ours. */
static tctl_status fail_zip(tctl_zip *z, const zip_error_t *e, const char *entry, tctl_error *err)
{
    int code = zip_error_code_zip(e);
    char place[512] = "";
    if (z->why.code != TCTL_OK) { /* the source has said more */
        *err = z->why;
        return z->why.code;
    }
    if (entry != NULL && z->first_read != UINT64_MAX)
        snprintf(place, sizeof place, ": member '%.300s', at byte %" PRIu64, entry, z->first_read);
    else if (entry != NULL)
        snprintf(place, sizeof place, ": member '%.300s'", entry);
    switch (code) {
    case ZIP_ER_MEMORY:
        return tctl_fail_memory(err, 0);
    case ZIP_ER_NOZIP:
        return tctl_fail(
            err, TCTL_EFORMAT,
            "'%s' is cut short or damaged: it begins as a zip archive and has no directory at its end, at "
            "byte %" PRIu64,
            z->from->name, z->from->size);
    case ZIP_ER_CRC:
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' is damaged%s: its bytes do not have the CRC-32 that was written",
                         z->from->name, place);
    case ZIP_ER_COMPNOTSUPP:
    case ZIP_ER_ENCRNOTSUPP:
    case ZIP_ER_NOPASSWD:
    case ZIP_ER_WRONGPASSWD:
        return tctl_fail(err, TCTL_EUNSUPPORTED,
                         "'%s'%s: compressed or encrypted in a way that is not read here", z->from->name,
                         place);
    default:
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged%s: %s", z->from->name, place,
                         code == ZIP_ER_INCONS || code == ZIP_ER_EOF || code == ZIP_ER_READ
                             ? "its parts contradict each other"
                             : zip_error_strerror((zip_error_t *)(uintptr_t)e));
    }
}

/* ---- the directory ----------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const tctl_zip_entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static tctl_status read_entry(tctl_zip *z, zip_uint64_t i, tctl_zip_entry *ret, tctl_error *err)
{
    zip_stat_t st;
    zip_stat_init(&st);
    const char *name = zip_get_name(z->archive, i, ZIP_FL_ENC_RAW);
    if (name == NULL || zip_stat_index(z->archive, i, ZIP_FL_ENC_RAW, &st) != 0 ||
        !(st.valid & ZIP_STAT_SIZE))
        return fail_zip(z, zip_get_error(z->archive), name, err);
    *ret = (tctl_zip_entry){.name = tctl_arena_copy(z->walk->arena, name, strlen(name)),
                            .index = i,
                            .size = st.size,
                            .compressed = (st.valid & ZIP_STAT_COMP_METHOD) && st.comp_method != ZIP_CM_STORE,
                            .encrypted = (st.valid & ZIP_STAT_ENCRYPTION_METHOD) &&
                                         st.encryption_method != ZIP_EM_NONE};
    return ret->name == NULL ? tctl_fail_memory(err, strlen(name)) : TCTL_OK;
}

static tctl_status read_directory(tctl_zip *z, tctl_error *err)
{
    zip_int64_t n = zip_get_num_entries(z->archive, 0);
    if (n > MAX_ENTRIES)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has %" PRId64 " members", z->from->name, (int64_t)n);
    z->entries = tctl_arena_take_array(z->walk->arena, n > 0 ? (size_t)n : 1, sizeof *z->entries);
    if (z->entries == NULL)
        return tctl_fail_memory(err, (size_t)n * sizeof *z->entries);
    for (zip_int64_t i = 0; i < n; i++) {
        tctl_status st = read_entry(z, (zip_uint64_t)i, &z->entries[i], err);
        if (st != TCTL_OK)
            return st;
    }
    z->n_entries = (size_t)(n > 0 ? n : 0);
    qsort(z->entries, z->n_entries, sizeof *z->entries, by_name);
    return TCTL_OK;
}

static void close_zip(void *what)
{
    tctl_zip *z = what;
    if (z->file != NULL)
        zip_fclose(z->file);
    if (z->archive != NULL)
        zip_discard(z->archive);
    zip_error_fini(&z->error);
}

tctl_status tctl_zip_open(tctl_walk *walk, tctl_source *from, tctl_zip **ret, tctl_error *err)
{
    tctl_zip *z = tctl_arena_take(walk->arena, sizeof *z);
    if (z == NULL)
        return tctl_fail_memory(err, sizeof *z);
    *z = (tctl_zip){.walk = walk, .from = from, .first_read = UINT64_MAX};
    zip_error_init(&z->error);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_function_create(serve, z, &error);
    if (source != NULL)
        z->archive = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
    tctl_status st = z->archive == NULL ? fail_zip(z, &error, NULL, err) : TCTL_OK;
    if (z->archive == NULL && source != NULL)
        zip_source_free(source);
    zip_error_fini(&error);
    if (st == TCTL_OK)
        st = tctl_walk_close_later(walk, close_zip, z, err);
    if (st != TCTL_OK) {
        close_zip(z);
        return st;
    }
    st = read_directory(z, err);
    if (st == TCTL_OK)
        *ret = z;
    return st;
}

const tctl_zip_entry *tctl_zip_entries(const tctl_zip *z, size_t *ret_n)
{
    *ret_n = z->n_entries;
    return z->entries;
}

/* ---- members ------------------------------------------------------------------------------------------------ */

static void close_member(tctl_zip *z)
{
    if (z->file != NULL)
        zip_fclose(z->file);
    z->file = NULL;
    z->open = NULL;
}

static tctl_status open_member(tctl_zip *z, const tctl_zip_entry *e, tctl_error *err)
{
    close_member(z);
    if (e->encrypted)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s': member '%s' is encrypted", z->from->name, e->name);
    z->first_read = UINT64_MAX;
    z->file = zip_fopen_index(z->archive, e->index, 0);
    if (z->file == NULL)
        return fail_zip(z, zip_get_error(z->archive), e->name, err);
    z->open = e;
    z->file_at = 0;
    return TCTL_OK;
}

/* At most n bytes; 0 at the end. */
static tctl_status read_some(tctl_zip *z, void *into, size_t n, size_t *ret, tctl_error *err)
{
    tctl_status st = tctl_walk_spend(z->walk, n, err);
    if (st != TCTL_OK)
        return st;
    zip_int64_t got = zip_fread(z->file, into, n);
    if (got < 0)
        return fail_zip(z, zip_file_get_error(z->file), z->open->name, err);
    z->walk->bytes_left += n - (size_t)got;
    z->file_at += (uint64_t)got;
    *ret = (size_t)got;
    return TCTL_OK;
}

tctl_status tctl_zip_check(tctl_zip *z, const tctl_zip_entry *e, tctl_sha256 *ret, tctl_error *err)
{
    tctl_walk *w = z->walk;
    size_t got = 1;
    tctl_status st = open_member(z, e, err);
    tctl_hasher_finish(w->payload);
    while (st == TCTL_OK && got > 0) {
        st = read_some(z, w->scratch, TCTL_SCRATCH_BYTES, &got, err);
        if (st == TCTL_OK)
            tctl_hasher_add(w->payload, w->scratch, got);
    }
    if (st == TCTL_OK && z->file_at != e->size)
        st = tctl_fail(err, TCTL_EFORMAT,
                       "'%s' is damaged: member '%s', at byte %" PRIu64 ": it has %" PRIu64
                       " bytes, not %" PRIu64,
                       z->from->name, e->name, z->first_read, z->file_at, e->size);
    if (st == TCTL_OK)
        *ret = tctl_hasher_finish(w->payload);
    close_member(z);
    return st;
}

/* Reading on is free in a compressed member; going back starts it again. */
static tctl_status move_to(tctl_zip *z, const tctl_zip_entry *e, uint64_t offset, tctl_error *err)
{
    tctl_status st = TCTL_OK;
    if (z->open != e || (e->compressed && offset < z->file_at))
        st = open_member(z, e, err);
    if (st == TCTL_OK && !e->compressed && offset != z->file_at) {
        if (zip_fseek(z->file, (zip_int64_t)offset, SEEK_SET) != 0)
            return fail_zip(z, zip_file_get_error(z->file), e->name, err);
        z->file_at = offset;
    }
    char skipped[4096];
    while (st == TCTL_OK && z->file_at < offset) {
        size_t got = 0,
               want = offset - z->file_at < sizeof skipped ? (size_t)(offset - z->file_at) : sizeof skipped;
        st = read_some(z, skipped, want, &got, err);
        if (st == TCTL_OK && got == 0)
            st = tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: member '%s' ends early", z->from->name,
                           e->name);
    }
    return st;
}

static tctl_status read_member(tctl_source *s, uint64_t offset, void *into, size_t n, tctl_error *err)
{
    const member_source *m = (const member_source *)s;
    tctl_status st = move_to(m->zip, m->entry, offset, err);
    for (size_t done = 0, got = 0; st == TCTL_OK && done < n; done += got) {
        st = read_some(m->zip, (char *)into + done, n - done, &got, err);
        if (st == TCTL_OK && got == 0)
            st = tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: it ends early", s->name);
    }
    return st;
}

tctl_status tctl_zip_member(tctl_zip *z, const tctl_zip_entry *e, tctl_source **ret, tctl_error *err)
{
    member_source *m = tctl_arena_take(z->walk->arena, sizeof *m);
    const char *name = tctl_arena_format(z->walk->arena, "%s: %s", z->from->name, e->name);
    if (m == NULL || name == NULL)
        return tctl_fail_memory(err, sizeof *m);
    *m = (member_source){{name, e->size, e->compressed, read_member, NULL}, z, e};
    *ret = &m->base;
    return TCTL_OK;
}
