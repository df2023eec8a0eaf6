/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capturing the code of a run: which way, and the object that says what was found.
 *
 * Invariant: whatever is wrong with a repository, the run goes on; a note says what was wrong, and the files are
 * kept as objects instead.
 */
#include "manifest/code.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "manifest/code_internal.h"
#include "manifest/listing.h"
#include "manifest/manifest.h"
#include "manifest/objects.h"
#include "manifest/path_json.h"

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tctl_code_file *)a)->path, ((const tctl_code_file *)b)->path);
}

/* The listing of ctx->files, which it sorts. */
static void make_listing(tctl_code_ctx *ctx, tctl_buf *ret)
{
    if (ctx->n_files > 1)
        qsort(ctx->files, ctx->n_files, sizeof *ctx->files, by_path);
    tctl_listing_begin(ret);
    for (size_t i = 0; i < ctx->n_files; i++) {
        const tctl_code_file *file = &ctx->files[i];
        tctl_tree_entry entry = {
            .path = file->path, .type = file->type, .size = file->size, .digest = file->digest};
        tctl_listing_add(ret, &entry);
    }
}

static tctl_status put_link(tctl_object_set *set, const char *disk, tctl_sha256 *ret, uint64_t *ret_size,
                            tctl_error *err)
{
    char target[PATH_MAX];
    ssize_t n = readlink(disk, target, sizeof target);
    if (n < 0)
        return tctl_fail_errno(err, errno, "cannot read link '%s'", disk);
    *ret_size = (uint64_t)n;
    return tctl_object_put(set, target, (size_t)n, ret, err);
}

/* Makes the file an object; what was put is what it is from now on, should it have changed meanwhile. */
static tctl_status put_object(tctl_code_ctx *ctx, tctl_object_set *set, tctl_code_file *file, tctl_error *err)
{
    const char *disk = tctl_code_disk_path(ctx, file->path);
    if (!disk)
        return tctl_fail_memory(err, strlen(file->path));
    if (file->type == 'l')
        return put_link(set, disk, &file->digest, &file->size, err);
    int fd = open(disk, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", disk);
    tctl_status status = tctl_object_put_fd(set, fd, disk, file->hashed ? &file->digest : NULL, file->size,
                                            &file->digest, &file->size, err);
    close(fd);
    file->hashed = file->hashed || status == TCTL_OK;
    return status;
}

/* Keeps ctx->files as objects and a listing of them. */
static tctl_status keep_objects(tctl_code_ctx *ctx, json_t *code, tctl_error *err)
{
    tctl_buf listing = TCTL_BUF_INIT;
    tctl_object_set set = {.store = ctx->request->store};
    tctl_status status = TCTL_OK;
    tctl_sha256 digest;
    size_t kept = 0;
    for (size_t i = 0; status == TCTL_OK && i < ctx->n_files; i++) {
        tctl_code_file *file = &ctx->files[i];
        if (tctl_code_late(ctx)) {
            tctl_code_skip(ctx, file->path, file->size, file->hashed ? &file->digest : NULL, "time limit");
            continue;
        }
        status = put_object(ctx, &set, file, err);
        ctx->files[kept++] = *file;
    }
    if (status != TCTL_OK)
        return status;
    ctx->n_files = kept;
    ctx->undigested = false;
    make_listing(ctx, &listing);
    if (!tctl_buf_text(&listing))
        status = tctl_fail_memory(err, listing.size);
    if (status == TCTL_OK)
        status = tctl_object_put(&set, listing.data, listing.size, &digest, err);
    if (status == TCTL_OK)
        status = tctl_object_set_sync(&set, err);
    tctl_buf_release(&listing);
    if (status != TCTL_OK)
        return status;
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(&digest, hex);
    json_t *object = json_object();
    tctl_code_set(ctx, object, "objects", json_string(hex));
    tctl_code_set(ctx, code, "kept", object);
    tctl_code_set(ctx, code, "digest", json_string(hex)); /* of the same text */
    return TCTL_OK;
}

static tctl_status set_digest(tctl_code_ctx *ctx, json_t *code, tctl_error *err)
{
    if (ctx->undigested) {
        tctl_code_set(ctx, code, "digest", json_null());
        return TCTL_OK;
    }
    tctl_buf listing = TCTL_BUF_INIT;
    make_listing(ctx, &listing);
    if (!tctl_buf_text(&listing)) {
        tctl_buf_release(&listing);
        return tctl_fail_memory(err, ctx->n_files);
    }
    tctl_sha256 digest = tctl_sha256_of(listing.data, listing.size);
    tctl_buf_release(&listing);
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(&digest, hex);
    tctl_code_set(ctx, code, "digest", json_string(hex));
    return TCTL_OK;
}

static json_t *mode_text(uint32_t mode)
{
    char text[] = "000000";
    for (int i = 5; i >= 0; i--, mode >>= 3)
        text[i] = (char)('0' + (mode & 7));
    return json_string(text);
}

static json_t *describe_change(tctl_code_ctx *ctx, const tctl_code_change *change)
{
    json_t *entry = json_object();
    tctl_code_set(ctx, entry, "path", tctl_path_to_json(change->path));
    tctl_code_set(ctx, entry, "status", json_string(change->status));
    tctl_code_set(ctx, entry, "staged", json_boolean(change->staged));
    if (change->old_path)
        tctl_code_set(ctx, entry, "old_path", tctl_path_to_json(change->old_path));
    if (change->old_mode != change->mode && change->old_mode != 0 && change->mode != 0) {
        tctl_code_set(ctx, entry, "old_mode", mode_text(change->old_mode));
        tctl_code_set(ctx, entry, "mode", mode_text(change->mode));
    }
    if (change->binary >= 0)
        tctl_code_set(ctx, entry, "binary", json_boolean(change->binary));
    return entry;
}

static int by_path_then_stage(const void *a, const void *b)
{
    const tctl_code_change *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (int)y->staged - (int)x->staged;
}

static void describe_changes(tctl_code_ctx *ctx, json_t *code)
{
    json_t *list = json_array(), *counts = json_object();
    uint64_t staged = 0, unstaged = 0, untracked = 0;
    if (ctx->n_changes > 1)
        qsort(ctx->changes, ctx->n_changes, sizeof *ctx->changes, by_path_then_stage);
    for (size_t i = 0; i < ctx->n_changes; i++) {
        const tctl_code_change *change = &ctx->changes[i];
        if (change->dropped)
            continue;
        if (change->staged)
            staged++;
        else if (strcmp(change->status, "untracked") == 0)
            untracked++;
        else
            unstaged++;
        if (staged + unstaged + untracked <= TCTL_CODE_LISTED)
            tctl_code_append(ctx, list, describe_change(ctx, change));
    }
    tctl_code_set(ctx, counts, "staged", tctl_json_count(staged));
    tctl_code_set(ctx, counts, "unstaged", tctl_json_count(unstaged));
    tctl_code_set(ctx, counts, "untracked", tctl_json_count(untracked));
    tctl_code_set(ctx, code, "counts", counts);
    tctl_code_set(ctx, code, "changes", list);
}

/* On Linux two names may differ only in case; a copy on another file system would lose one of them. */
static void note_case_twins(tctl_code_ctx *ctx)
{
    for (size_t i = 1; i < ctx->n_files; i++) {
        const char *a = ctx->files[i - 1].path, *b = ctx->files[i].path;
        if (strcasecmp(a, b) == 0 && strcmp(a, b) != 0)
            tctl_code_note(ctx, "'%s' and '%s' differ only in case", a, b);
    }
}

static void describe_files(tctl_code_ctx *ctx, json_t *code)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ctx->n_files; i++)
        bytes += ctx->files[i].size;
    tctl_code_set(ctx, code, "files", tctl_json_count(ctx->n_files));
    tctl_code_set(ctx, code, "bytes", tctl_json_count(bytes));
    tctl_code_set(ctx, code, "skipped_count", tctl_json_count(ctx->n_skipped));
}

/* The members that every object has. */
static tctl_status describe(tctl_code_ctx *ctx, json_t *code, const char *folder, tctl_error *err)
{
    const char *below = folder + strlen(ctx->root);
    while (*below == '/')
        below++;
    tctl_code_set(ctx, code, "root", tctl_path_to_json(ctx->root));
    tctl_code_set(ctx, code, "folder", tctl_path_to_json(below));
    if (!json_object_get(code, "kept")) {
        tctl_code_note(ctx, "nothing was kept: there is no run store");
        tctl_code_set(ctx, code, "kept", json_null());
    }
    if (!json_object_get(code, "digest")) {
        tctl_status status = set_digest(ctx, code, err);
        if (status != TCTL_OK)
            return status;
    }
    note_case_twins(ctx);
    describe_changes(ctx, code);
    describe_files(ctx, code);
    tctl_code_set(ctx, code, "skipped", json_incref(ctx->skipped));
    tctl_code_set(ctx, code, "submodules", json_incref(ctx->submodules));
    tctl_code_set(ctx, code, "lfs", json_incref(ctx->lfs));
    tctl_code_set(ctx, code, "filters", json_incref(ctx->filters));
    tctl_code_set(ctx, code, "notes", json_incref(ctx->notes));
    return ctx->no_memory ? tctl_fail_memory(err, sizeof *ctx) : TCTL_OK;
}

/* True if the repository gave what is wanted; false if the folder is to be captured without it. */
static tctl_status try_git(tctl_code_ctx *ctx, const char *folder, json_t *code, bool *ret, tctl_error *err)
{
    *ret = false;
    git_repository *repo = tctl_code_git_find(ctx, folder);
    if (!repo)
        return TCTL_OK;
    char root[PATH_MAX];
    tctl_error why = {0};
    tctl_status status = TCTL_OK;
    if (!realpath(git_repository_workdir(repo), root))
        status = tctl_fail_errno(&why, errno, "cannot find the working tree");
    if (status == TCTL_OK)
        status = tctl_code_ctx_restart(ctx, root, &why);
    if (status == TCTL_OK)
        status = tctl_code_git_capture(ctx, repo, code, &why);
    git_repository_free(repo);
    *ret = status == TCTL_OK;
    if (status == TCTL_ENOMEM)
        return tctl_fail(err, status, "%s", why.message);
    if (status != TCTL_OK) {
        tctl_code_note(ctx, "the repository could not be read: %s", why.message);
        json_object_clear(code);
    }
    return TCTL_OK;
}

static tctl_status capture(tctl_code_ctx *ctx, json_t *code, tctl_error *err)
{
    char folder[PATH_MAX];
    bool by_git = false;
    tctl_status status = TCTL_OK;
    if (!realpath(ctx->request->folder, folder))
        return tctl_fail_errno(err, errno, "cannot find folder '%s'", ctx->request->folder);
    if (!ctx->request->no_vcs)
        status = try_git(ctx, folder, code, &by_git, err);
    if (status == TCTL_OK && !by_git) {
        tctl_code_set(ctx, code, "vcs", json_string("none"));
        tctl_code_set(ctx, code, "dirty", json_false());
        status = tctl_code_ctx_restart(ctx, folder, err);
        if (status == TCTL_OK)
            status = tctl_code_walk(ctx, "", NULL, err);
    }
    if (status == TCTL_OK && (!by_git || ctx->unwritable) && ctx->request->store)
        status = keep_objects(ctx, code, err);
    return status == TCTL_OK ? describe(ctx, code, folder, err) : status;
}

tctl_status tctl_code_capture(const tctl_code_request *request, json_t **ret, tctl_error *err)
{
    tctl_code_ctx ctx;
    json_t *code = json_object();
    tctl_status status = tctl_code_ctx_init(&ctx, request, err);
    if (status == TCTL_OK && !code)
        status = tctl_fail_memory(err, sizeof ctx);
    if (status == TCTL_OK && tctl_git_start() < 0)
        status = tctl_fail_git(err, TCTL_EIO, "libgit2 does not start");
    if (status == TCTL_OK) {
        int owners = tctl_git_trust_owners();
        status = capture(&ctx, code, err);
        tctl_git_restore_owners(owners);
        git_libgit2_shutdown();
    }
    tctl_code_ctx_release(&ctx);
    if (status == TCTL_OK)
        *ret = code;
    else
        json_decref(code);
    return status;
}
