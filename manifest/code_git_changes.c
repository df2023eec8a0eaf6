/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The differences between HEAD and the index, and between the index and the working tree.
 *
 * The two diffs are made here rather than by libgit2's status list because they can be stopped when the time is over,
 * and because folders that are data or the run store are not even entered. The index is read, never written.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "manifest/code_internal.h"

/* More than so many staged additions and deletions are not searched for renames that changed. */
enum { similarity_limit = 400 };

typedef struct watch {
    tctl_code_ctx *ctx;
    uint64_t untracked, seen;
    bool too_many, unlimited;
} watch;

static int on_progress(const git_diff *diff, const char *old_path, const char *new_path, void *payload)
{
    (void)diff, (void)old_path, (void)new_path;
    watch *w = payload;
    return !w->unlimited && ++w->seen % 64 == 0 && tctl_code_late(w->ctx) ? GIT_EUSER : 0;
}

/* Stops the diff once there are far more untracked files than would be named. */
static int on_delta(const git_diff *diff, const git_diff_delta *delta, const char *matched, void *payload)
{
    (void)diff, (void)matched;
    watch *w = payload;
    if (delta->status != GIT_DELTA_UNTRACKED)
        return 0;
    w->too_many = ++w->untracked > 10 * w->ctx->max_files;
    return w->too_many ? GIT_EUSER : 0;
}

/* Rules for this handle only, in memory: what is never captured is not entered. */
static void ignore_excluded(tctl_code_ctx *ctx, tctl_code_level *level)
{
    size_t n = strlen(level->prefix);
    tctl_buf rules = TCTL_BUF_INIT;
    for (const char **e = ctx->excluded; *e; e++) {
        if (strncmp(*e, level->prefix, n) != 0 || strchr(*e, '\n'))
            continue;
        tctl_buf_add_char(&rules, '/');
        for (const char *p = *e + n; *p; p++) {
            if (strchr("\\*?[]! #", *p))
                tctl_buf_add_char(&rules, '\\');
            tctl_buf_add_char(&rules, *p);
        }
        tctl_buf_add_char(&rules, '\n');
    }
    if (rules.size > 0 && tctl_buf_text(&rules))
        git_ignore_add_rule(level->repo, tctl_buf_text(&rules));
    tctl_buf_release(&rules);
}

static const char *status_name(const git_diff_delta *d)
{
    switch (d->status) {
    case GIT_DELTA_ADDED:
        return "added";
    case GIT_DELTA_DELETED:
        return "deleted";
    case GIT_DELTA_RENAMED:
        return "renamed";
    case GIT_DELTA_TYPECHANGE:
        return "type";
    case GIT_DELTA_UNTRACKED:
        return "untracked";
    case GIT_DELTA_UNREADABLE:
        return "unreadable";
    case GIT_DELTA_CONFLICTED:
        return "conflicted";
    case GIT_DELTA_MODIFIED: {
        bool same =
            git_oid_equal(&d->old_file.id, &d->new_file.id) && (d->new_file.flags & GIT_DIFF_FLAG_VALID_ID);
        return same && d->old_file.mode != d->new_file.mode ? "mode" : "modified";
    }
    default:
        return NULL;
    }
}

static bool holds_nul(const void *data, size_t size)
{
    return memchr(data, '\0', size < 8000 ? size : 8000) != NULL;
}

/* 1 or 0 for a blob, -1 if it can't be told. */
static int blob_is_binary(git_repository *repo, const git_oid *id)
{
    git_blob *blob = NULL;
    if (git_blob_lookup(&blob, repo, id) != 0)
        return -1;
    size_t size = (size_t)git_blob_rawsize(blob);
    int binary = size > 0 && holds_nul(git_blob_rawcontent(blob), size);
    git_blob_free(blob);
    return binary;
}

static const char *prefixed(tctl_code_ctx *ctx, const tctl_code_level *level, const char *path)
{
    return tctl_arena_format(ctx->arena, "%s%s", level->prefix, path);
}

static tctl_status add_deltas(tctl_code_ctx *ctx, tctl_code_level *level, git_diff *diff, bool staged,
                              tctl_error *err)
{
    for (size_t i = 0; i < git_diff_num_deltas(diff); i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        const char *name = status_name(d);
        const char *path = d->status == GIT_DELTA_DELETED ? d->old_file.path : d->new_file.path;
        if (!name || !path)
            continue;
        tctl_code_change *change = tctl_code_add_change(ctx);
        if (!change)
            return tctl_fail_memory(err, sizeof *change);
        change->status = name;
        change->staged = staged;
        change->path = prefixed(ctx, level, path);
        change->old_mode = d->old_file.mode;
        change->mode = d->new_file.mode;
        change->id = d->old_file.id;
        if (d->status == GIT_DELTA_RENAMED)
            change->old_path = prefixed(ctx, level, d->old_file.path);
        if (!change->path || (d->status == GIT_DELTA_RENAMED && !change->old_path))
            return tctl_fail_memory(err, strlen(path));
        const git_oid *id = d->status == GIT_DELTA_DELETED ? &d->old_file.id : &d->new_file.id;
        bool file = d->new_file.mode != GIT_FILEMODE_COMMIT && d->old_file.mode != GIT_FILEMODE_COMMIT;
        if (staged && file && i < TCTL_CODE_LISTED)
            change->binary = blob_is_binary(level->repo, id);
    }
    return TCTL_OK;
}

static tctl_status staged_changes(tctl_code_ctx *ctx, tctl_code_level *level, tctl_error *err)
{
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_INCLUDE_TYPECHANGE;
    git_diff *diff = NULL;
    if (git_diff_tree_to_index(&diff, level->repo, level->head_tree, level->index, &options) != 0)
        return tctl_fail_git(err, TCTL_EFORMAT, "cannot compare the index with HEAD");
    git_diff_find_options find;
    git_diff_find_options_init(&find, GIT_DIFF_FIND_OPTIONS_VERSION);
    find.flags = GIT_DIFF_FIND_RENAMES;
    if (git_diff_num_deltas(diff) > similarity_limit)
        find.flags |= GIT_DIFF_FIND_EXACT_MATCH_ONLY;
    if (git_diff_find_similar(diff, &find) != 0)
        tctl_code_note(ctx, "renames could not be searched for: %s", tctl_git_message());
    tctl_status status = add_deltas(ctx, level, diff, true, err);
    git_diff_free(diff);
    return status;
}

static int diff_workdir(tctl_code_level *level, watch *w, uint32_t untracked, git_diff **ret)
{
    git_diff_options options;
    git_diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
    options.flags = GIT_DIFF_INCLUDE_TYPECHANGE | GIT_DIFF_INCLUDE_UNREADABLE | untracked;
    options.ignore_submodules = GIT_SUBMODULE_IGNORE_ALL; /* they are captured on their own */
    options.progress_cb = on_progress;
    options.notify_cb = on_delta;
    options.payload = w;
    return git_diff_index_to_workdir(ret, level->repo, level->index, &options);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tctl_code_change *)a)->path, ((const tctl_code_change *)b)->path);
}

static tctl_status unstaged_changes(tctl_code_ctx *ctx, tctl_code_level *level, tctl_error *err)
{
    watch w = {.ctx = ctx};
    git_diff *diff = NULL;
    int rc = diff_workdir(level, &w, GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS, &diff);
    if (rc != 0 && (w.too_many || ctx->late)) {
        if (w.too_many)
            tctl_code_note(
                ctx, "more than %llu files are untracked: none of them was captured; list them in .gitignore",
                (unsigned long long)(10 * ctx->max_files));
        else
            tctl_code_note(ctx,
                           "the time limit was met while looking for untracked files: none was captured");
        /* Tracked files alone cost no more than a stat each. */
        w.unlimited = true;
        rc = diff_workdir(level, &w, 0, &diff);
    }
    if (rc != 0)
        return tctl_fail_git(err, TCTL_EFORMAT, "cannot compare the working tree with the index");
    tctl_status status = add_deltas(ctx, level, diff, false, err);
    git_diff_free(diff);
    if (status == TCTL_OK && ctx->n_changes > level->first_unstaged)
        qsort(ctx->changes + level->first_unstaged, ctx->n_changes - level->first_unstaged,
              sizeof *ctx->changes, by_path);
    return status;
}

tctl_status tctl_code_git_changes(tctl_code_ctx *ctx, tctl_code_level *level, tctl_error *err)
{
    ignore_excluded(ctx, level);
    level->first_change = ctx->n_changes;
    tctl_status status = staged_changes(ctx, level, err);
    level->first_unstaged = ctx->n_changes;
    if (status == TCTL_OK)
        status = unstaged_changes(ctx, level, err);
    return status;
}
