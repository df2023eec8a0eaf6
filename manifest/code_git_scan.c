/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files of a working tree with digests and blobs.
 *
 * A file that git knows to be unchanged (its stat matches the index) keeps its index entry's blob and is read only
 * for its SHA-256, if the cache lacks that. All others become blobs of their bytes as they are: no filter is run.
 * Invariant: blob and digest of an entry are of the same bytes, but for `lfs` entries, whose blob is the pointer.
 */
#include <stdlib.h>
#include <string.h>

#include "manifest/code_internal.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

typedef struct scan {
    tctl_code_ctx *ctx;
    tctl_code_level *level;
    tctl_code_filters filters;
    uint64_t sparse; /* files that a sparse checkout leaves out */
} scan;

static tctl_status add(scan *s, const char *path, char type, const tctl_code_content *c, bool hashed,
                       bool lfs, tctl_error *err)
{
    tctl_code_file *file = tctl_code_add_file(s->ctx);
    if (!file)
        return tctl_fail_memory(err, sizeof *file);
    *file = (tctl_code_file){.path = path,
                             .type = type,
                             .hashed = hashed,
                             .lfs = lfs,
                             .size = c->size,
                             .digest = c->digest,
                             .id = c->id};
    return TCTL_OK;
}

/* A file whose blob is `entry`'s: only its digest is wanted. */
static tctl_status add_unchanged(scan *s, const char *path, char type, const git_index_entry *entry,
                                 const struct stat *st, tctl_error *err)
{
    tctl_code_content c = {.id = entry->id, .size = (uint64_t)st->st_size};
    tctl_error why = {0};
    bool hashed = !tctl_code_late(s->ctx);
    if (hashed && tctl_code_digest(s->ctx, path, st, &c.digest, &c.size, &why) != TCTL_OK) {
        tctl_code_note(s->ctx, "no digest: %s", why.message);
        hashed = false;
    }
    s->ctx->undigested = s->ctx->undigested || !hashed;
    return add(s, path, type, &c, hashed, false, err);
}

/* A file whose bytes have to be looked at. `known`: the blob that it may still be. Sets the change's `binary`. */
static tctl_status add_content(scan *s, const char *path, char type, const git_oid *known,
                               const struct stat *st, tctl_code_change *change, tctl_error *err)
{
    if (!tctl_code_admit(s->ctx, path, st))
        return TCTL_OK;
    tctl_code_content c;
    tctl_error why = {0};
    tctl_status status = tctl_code_git_put(s->ctx, s->level, path, st, known, &c, &why);
    if (status == TCTL_ENOMEM)
        return tctl_fail(err, status, "%s", why.message);
    if (status != TCTL_OK) {
        tctl_code_note(s->ctx, "%s", why.message);
        tctl_code_skip(s->ctx, path, (uint64_t)st->st_size, NULL, "it could not be read");
        return TCTL_OK;
    }
    if (known && git_oid_equal(known, &c.id)) { /* git holds it: it does not count */
        s->ctx->new_files--;
        s->ctx->new_bytes -= (uint64_t)st->st_size;
        if (change && strcmp(change->status, "modified") == 0)
            change->status = "mode"; /* libgit2 does not always hash what has another mode */
    }
    if (change)
        change->binary = c.binary;
    return add(s, path, type, &c, true, false, err);
}

/* If the blob is a Git LFS pointer and the file is what it points to, adds it as such and sets *ret. A file that git
 * knows to be unchanged is believed if its size is right; another is read. */
static tctl_status add_lfs(scan *s, const char *path, char type, const git_index_entry *entry,
                           const struct stat *st, bool unchanged, bool *ret, tctl_error *err)
{
    tctl_code_ctx *ctx = s->ctx;
    git_blob *blob = NULL;
    tctl_code_content c = {.id = entry->id};
    bool pointer =
        git_blob_lookup(&blob, s->level->repo, &entry->id) == 0 &&
        tctl_lfs_parse(git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), &c.digest, &c.size);
    git_blob_free(blob);
    *ret = false;
    if (!pointer || !S_ISREG(st->st_mode) || c.size != (uint64_t)st->st_size)
        return TCTL_OK;
    tctl_sha256 actual = c.digest;
    uint64_t size = c.size;
    if (!unchanged &&
        (tctl_code_late(ctx) || tctl_code_digest(ctx, path, st, &actual, &size, NULL) != TCTL_OK))
        return TCTL_OK;
    if (size != c.size || !tctl_sha256_equal(&actual, &c.digest))
        return TCTL_OK;
    *ret = true;
    char hex[TCTL_SHA256_HEX];
    json_t *json = json_object();
    tctl_sha256_hex(&c.digest, hex);
    tctl_code_set(ctx, json, "path", tctl_path_to_json(path));
    tctl_code_set(ctx, json, "sha256", json_string(hex));
    tctl_code_set(ctx, json, "size", tctl_json_count(c.size));
    tctl_code_append(ctx, ctx->lfs, json);
    return add(s, path, type, &c, true, true, err);
}

static tctl_code_change *find_unstaged(scan *s, const char *path)
{
    size_t low = s->level->first_unstaged, high = s->ctx->n_changes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(s->ctx->changes[middle].path, path);
        if (order == 0)
            return &s->ctx->changes[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static void count_filter(scan *s, const char *name)
{
    json_t *filters = s->ctx->filters;
    json_int_t n = json_integer_value(json_object_get(filters, name));
    json_t *key = tctl_path_to_json(name); /* a driver's name is any bytes */
    tctl_code_set(s->ctx, filters, key ? json_string_value(key) : "", json_integer(n + 1));
    json_decref(key);
}

/* True if the bytes on disk are surely those of the blob, given that git says "unchanged". */
static bool bytes_are_the_blobs(scan *s, int filter, const git_index_entry *entry, const struct stat *st)
{
    size_t size;
    git_object_t type;
    if (filter == TCTL_FILTER_NONE)
        return true;
    /* Converting line endings only ever removes or adds bytes. */
    return filter == TCTL_FILTER_TEXT && git_odb_read_header(&size, &type, s->level->odb, &entry->id) == 0 &&
           size == (size_t)st->st_size;
}

static char type_of_tracked(const scan *s, const git_index_entry *entry, const struct stat *st,
                            const tctl_code_change *change)
{
    char type = tctl_code_type(st);
    if (type == 'l' || type == 0)
        return type;
    if (entry->mode == GIT_FILEMODE_LINK && !change) /* core.symlinks is off: the file holds the target */
        return 'l';
    if (!s->level->filemode)
        return entry->mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 'x' : 'f';
    return type;
}

static tctl_status add_link(scan *s, const git_index_entry *entry, tctl_error *err)
{
    const char *path = tctl_arena_copy(s->ctx->arena, entry->path, strlen(entry->path));
    if (!path)
        return tctl_fail_memory(err, strlen(entry->path));
    s->level->links[s->level->n_links++] = (struct tctl_code_link){.path = path, .id = entry->id};
    return TCTL_OK;
}

/* Room for all submodules of the index. */
static tctl_status take_links(tctl_code_ctx *ctx, tctl_code_level *level, tctl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < git_index_entrycount(level->index); i++)
        n += git_index_get_byindex(level->index, i)->mode == GIT_FILEMODE_COMMIT;
    level->links = tctl_arena_take_array(ctx->arena, n + 1, sizeof *level->links);
    return level->links ? TCTL_OK : tctl_fail_memory(err, n);
}

static tctl_status scan_present(scan *s, const char *path, const git_index_entry *entry,
                                const struct stat *st, tctl_code_change *change, tctl_error *err)
{
    char type = type_of_tracked(s, entry, st, change);
    if (!type) {
        tctl_code_skip(s->ctx, path, 0, NULL, "neither a file, nor a folder, nor a link");
        return TCTL_OK;
    }
    /* What the flags say git does not look at, we do. */
    bool unsure = change || git_index_entry_is_conflict(entry) || (entry->flags & GIT_INDEX_ENTRY_VALID) ||
                  (entry->flags_extended & (GIT_INDEX_ENTRY_INTENT_TO_ADD | GIT_INDEX_ENTRY_SKIP_WORKTREE));
    const char *name = NULL;
    int filter = type == 'l' ? TCTL_FILTER_NONE : tctl_code_filter(&s->filters, s->ctx, entry->path, &name);
    if (name)
        count_filter(s, name);
    if (filter == TCTL_FILTER_LFS) {
        bool done;
        tctl_status status = add_lfs(s, path, type, entry, st, !unsure, &done, err);
        if (status != TCTL_OK || done) {
            if (done && change && strcmp(change->status, "modified") == 0)
                change->dropped = true; /* the index is merely stale, and no filter was run to see it */
            return status;
        }
    }
    if (!unsure && bytes_are_the_blobs(s, filter, entry, st))
        return add_unchanged(s, path, type, entry, st, err);
    return add_content(s, path, type, &entry->id, st, change, err);
}

static tctl_status scan_entry(scan *s, const git_index_entry *entry, tctl_error *err)
{
    const char *path = tctl_arena_format(s->ctx->arena, "%s%s", s->level->prefix, entry->path);
    if (!path)
        return tctl_fail_memory(err, strlen(entry->path));
    if (tctl_code_excluded(s->ctx, path))
        return TCTL_OK;
    if (entry->mode == GIT_FILEMODE_COMMIT)
        return add_link(s, entry, err);
    const char *disk = tctl_code_disk_path(s->ctx, path);
    struct stat st;
    tctl_code_change *change = find_unstaged(s, path);
    if (!disk)
        return tctl_fail_memory(err, strlen(path));
    if (lstat(disk, &st) == 0)
        /* A folder in a file's place: what is in it is untracked and comes by that way. */
        return S_ISDIR(st.st_mode) ? TCTL_OK : scan_present(s, path, entry, &st, change, err);
    if (entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) {
        s->sparse++;
        if (change)
            change->dropped = true;
    }
    return TCTL_OK;
}

/* A repository that this one does not know: its files are taken in as if it had no .git. */
static tctl_status scan_nested(scan *s, const char *path, tctl_error *err)
{
    const char *folder = tctl_arena_copy(s->ctx->arena, path, strlen(path) - 1); /* without the '/' */
    const char *disk = folder ? tctl_code_disk_path(s->ctx, folder) : NULL;
    if (!disk)
        return tctl_fail_memory(err, strlen(path));
    tctl_code_note(
        s->ctx, "'%s' is a repository of its own, but no submodule: its files were captured as plain files",
        folder);
    git_repository *nested = NULL;
    if (git_repository_open(&nested, disk) != 0)
        nested = NULL;
    size_t first = s->ctx->n_files;
    tctl_status status = tctl_code_walk(s->ctx, folder, nested, err);
    git_repository_free(nested);
    for (size_t i = first; status == TCTL_OK && i < s->ctx->n_files; i++) {
        struct stat st;
        tctl_code_file *file = &s->ctx->files[i];
        tctl_code_content c;
        const char *at = tctl_code_disk_path(s->ctx, file->path);
        if (!at || lstat(at, &st) != 0)
            return tctl_fail(err, TCTL_EIO, "'%s' vanished meanwhile", file->path);
        status = tctl_code_git_put(s->ctx, s->level, file->path, &st, NULL, &c, err);
        if (status == TCTL_OK) {
            file->id = c.id;
            file->digest = c.digest;
            file->size = c.size;
        }
    }
    return status;
}

static tctl_status scan_untracked(scan *s, size_t i, tctl_error *err)
{
    tctl_code_change *change = &s->ctx->changes[i];
    const char *path = change->path;
    size_t n = strlen(path);
    if (tctl_code_excluded(s->ctx, path)) {
        change->dropped = true;
        return TCTL_OK;
    }
    if (n > 0 && path[n - 1] == '/')
        return scan_nested(s, path, err);
    const char *disk = tctl_code_disk_path(s->ctx, path);
    struct stat st;
    if (!disk)
        return tctl_fail_memory(err, n);
    if (lstat(disk, &st) != 0)
        return TCTL_OK;
    char type = tctl_code_type(&st);
    if (!type) {
        tctl_code_skip(s->ctx, path, 0, NULL, "neither a file, nor a folder, nor a link");
        return TCTL_OK;
    }
    if (type == 'x' && !s->level->filemode)
        type = 'f';
    return add_content(s, path, type, NULL, &st, change, err);
}

/* A deleted file whose blob turns up in an untracked one was moved. */
static void join_renames(scan *s, size_t first_untracked)
{
    tctl_code_ctx *ctx = s->ctx;
    size_t n_changes = ctx->n_changes - s->level->first_unstaged, n_files = ctx->n_files - first_untracked;
    if (n_files == 0 || n_changes > 1000000 / n_files)
        return;
    for (size_t i = s->level->first_unstaged; i < ctx->n_changes; i++) {
        tctl_code_change *gone = &ctx->changes[i];
        if (strcmp(gone->status, "deleted") != 0 || gone->dropped)
            continue;
        for (size_t f = first_untracked; f < ctx->n_files; f++) {
            tctl_code_change *found = find_unstaged(s, ctx->files[f].path);
            if (!git_oid_equal(&ctx->files[f].id, &gone->id) || !found ||
                strcmp(found->status, "untracked") != 0)
                continue;
            found->status = "renamed";
            found->old_path = gone->path;
            found->old_mode = gone->old_mode;
            gone->dropped = true;
            break;
        }
    }
}

tctl_status tctl_code_git_scan(tctl_code_ctx *ctx, tctl_code_level *level, tctl_error *err)
{
    scan s = {.ctx = ctx, .level = level, .filters = tctl_code_filters_of(ctx, level->repo, level->index)};
    tctl_status status = take_links(ctx, level, err);
    level->first_file = ctx->n_files;
    const char *last = "";
    for (size_t i = 0; status == TCTL_OK && i < git_index_entrycount(level->index); i++) {
        const git_index_entry *entry = git_index_get_byindex(level->index, i);
        if (strcmp(entry->path, last) != 0) /* a conflict has up to three entries */
            status = scan_entry(&s, entry, err);
        last = entry->path;
    }
    size_t first_untracked = ctx->n_files;
    for (size_t i = level->first_unstaged; status == TCTL_OK && i < ctx->n_changes; i++) {
        if (strcmp(ctx->changes[i].status, "untracked") == 0)
            status = scan_untracked(&s, i, err);
    }
    if (status == TCTL_OK)
        join_renames(&s, first_untracked);
    if (s.sparse > 0)
        tctl_code_note(ctx, "a sparse checkout leaves out %llu files", (unsigned long long)s.sparse);
    level->end_file = ctx->n_files;
    return status;
}
