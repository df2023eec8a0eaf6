/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One working tree from changes to kept commit, and its submodules in the same way.
 *
 * A submodule's files are kept in the submodule's own repository, under the same reference; the tree of the level
 * above holds the kept commit in the submodule's place. So nothing is copied from one repository to another.
 */
#include <string.h>

#include "base/file.h"
#include "manifest/code_internal.h"
#include "manifest/path_json.h"

static tctl_status level_open(tctl_code_level *level, git_repository *repo, const char *prefix,
                              tctl_error *err)
{
    *level = (tctl_code_level){.repo = repo, .prefix = prefix, .filemode = true};
    git_reference *head = NULL;
    git_object *commit = NULL;
    git_config *config = NULL;
    int on = 1;
    if (git_repository_index(&level->index, repo) != 0 || git_repository_odb(&level->odb, repo) != 0)
        return tctl_fail_git(err, TCTL_EFORMAT, "cannot read the repository");
    int rc = git_repository_head(&head, repo);
    if (rc == 0)
        rc = git_reference_peel(&commit, head, GIT_OBJECT_COMMIT);
    git_reference_free(head);
    if (rc == 0) {
        level->head = (git_commit *)commit;
        rc = git_commit_tree(&level->head_tree, level->head);
    }
    if (rc != 0 && rc != GIT_EUNBORNBRANCH && !(rc == GIT_ENOTFOUND && !level->head))
        return tctl_fail_git(err, TCTL_EFORMAT, "cannot read HEAD");
    if (git_repository_config_snapshot(&config, repo) == 0 &&
        git_config_get_bool(&on, config, "core.filemode") == 0)
        level->filemode = on;
    git_config_free(config);
    return TCTL_OK;
}

static void level_close(tctl_code_level *level)
{
    git_tree_free(level->head_tree);
    git_commit_free(level->head);
    git_odb_free(level->odb);
    git_index_free(level->index);
}

/* The submodule moved: that is a change of the level above. */
static tctl_status note_moved(tctl_code_ctx *ctx, const char *path, tctl_error *err)
{
    tctl_code_change *change = tctl_code_add_change(ctx);
    if (!change)
        return tctl_fail_memory(err, sizeof *change);
    change->path = path;
    change->status = "submodule";
    return TCTL_OK;
}

/* The submodule's commit that is checked out, or false if there is none. */
static bool head_of(git_repository *repo, git_oid *ret)
{
    return git_reference_name_to_id(ret, repo, "HEAD") == 0;
}

typedef struct search {
    tctl_arena *arena;
    const char *path;
    const char *name; /* of the submodule at `path`, or NULL */
} search;

static tctl_status match_path(void *arg, const char *name, const char *path, tctl_error *err)
{
    search *s = arg;
    (void)err;
    if (path && strcmp(path, s->path) == 0)
        s->name = tctl_arena_copy(s->arena, name, strlen(name));
    return TCTL_OK;
}

/* The URL that .gitmodules gives for the submodule at `path`. */
static void describe_url(tctl_code_ctx *ctx, git_repository *parent, const char *path, json_t *entry)
{
    const char *file = tctl_path_join(ctx->arena, git_repository_workdir(parent), ".gitmodules");
    git_config *opened = NULL, *config = NULL;
    search s = {.arena = ctx->arena, .path = path};
    const char *url = NULL, *key = NULL;
    if (!file || git_config_open_ondisk(&opened, file) != 0 || git_config_snapshot(&config, opened) != 0)
        goto out;
    tctl_git_config_each(config, "submodule", "path", match_path, &s, NULL);
    if (s.name)
        key = tctl_arena_format(ctx->arena, "submodule.%s.url", s.name);
    if (key && git_config_get_string(&url, config, key) == 0) {
        const char *clean = tctl_code_clean_url(ctx->arena, url);
        tctl_code_set(ctx, entry, "url", clean ? tctl_path_to_json(clean) : NULL);
    }
out:
    git_config_free(config);
    git_config_free(opened);
}

/* Captures one submodule; link->id becomes the kept commit. */
static tctl_status capture_link(tctl_code_ctx *ctx, tctl_code_level *level, struct tctl_code_link *link,
                                tctl_error *err)
{
    char hex[GIT_OID_HEXSZ + 1];
    const char *path = tctl_arena_format(ctx->arena, "%s%s", level->prefix, link->path);
    const char *prefix = path ? tctl_arena_format(ctx->arena, "%s/", path) : NULL;
    const char *disk = prefix ? tctl_code_disk_path(ctx, path) : NULL;
    if (!disk)
        return tctl_fail_memory(err, strlen(link->path));
    json_t *entry = json_object();
    git_repository *repo = NULL;
    git_oid head, kept;
    bool dirty = false, open = git_repository_open_ext(&repo, disk, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0;
    tctl_status status = TCTL_OK;
    tctl_code_set(ctx, entry, "path", tctl_path_to_json(path));
    tctl_code_set(ctx, entry, "recorded", json_string(git_oid_tostr(hex, sizeof hex, &link->id)));
    describe_url(ctx, level->repo, link->path, entry);
    if (!open || !head_of(repo, &head)) {
        tctl_code_set(ctx, entry, "commit", json_null());
        tctl_code_set(ctx, entry, "dirty", json_false());
        tctl_code_note(ctx, "submodule '%s' is not checked out", path);
    } else {
        tctl_code_set(ctx, entry, "commit", json_string(git_oid_tostr(hex, sizeof hex, &head)));
        if (!git_oid_equal(&head, &link->id)) {
            level->dirty = true;
            status = note_moved(ctx, path, err);
        }
        if (status == TCTL_OK)
            status = tctl_code_git_level(ctx, repo, prefix, entry, &dirty, &kept, err);
        if (status == TCTL_OK && !ctx->unwritable)
            git_oid_cpy(&link->id, &kept);
        tctl_code_set(ctx, entry, "dirty", json_boolean(dirty));
        level->dirty = level->dirty || dirty;
    }
    git_repository_free(repo);
    if (status == TCTL_OK)
        tctl_code_append(ctx, ctx->submodules, entry);
    else
        json_decref(entry);
    return status;
}

static tctl_status capture(tctl_code_ctx *ctx, tctl_code_level *level, json_t *ret, git_oid *ret_kept,
                           tctl_error *err)
{
    tctl_status status = tctl_code_git_changes(ctx, level, err);
    if (status == TCTL_OK)
        status = tctl_code_git_scan(ctx, level, err);
    for (size_t i = level->first_change; status == TCTL_OK && i < ctx->n_changes; i++)
        level->dirty = level->dirty || !ctx->changes[i].dropped;
    for (size_t i = 0; status == TCTL_OK && i < level->n_links; i++)
        status = capture_link(ctx, level, &level->links[i], err);
    if (status != TCTL_OK || ctx->unwritable)
        return status;
    json_t *kept = NULL;
    tctl_error why = {0};
    status = tctl_code_git_keep(ctx, level, ret_kept, &kept, &why);
    if (status == TCTL_OK) {
        tctl_code_set(ctx, ret, "kept", kept);
        return TCTL_OK;
    }
    if (status == TCTL_ENOMEM)
        return tctl_fail(err, status, "%s", why.message);
    tctl_code_note(ctx, "the repository cannot be written to: %s", why.message);
    ctx->unwritable = true;
    return TCTL_OK;
}

tctl_status tctl_code_git_level(tctl_code_ctx *ctx, git_repository *repo, const char *prefix, json_t *ret,
                                bool *ret_dirty, git_oid *ret_kept, tctl_error *err)
{
    tctl_code_level level;
    tctl_status status = level_open(&level, repo, prefix, err);
    if (status == TCTL_OK)
        status = capture(ctx, &level, ret, ret_kept, err);
    if (status == TCTL_OK) {
        *ret_dirty = level.dirty;
        if (*prefix == '\0')
            tctl_code_set(ctx, ret, "autocrlf",
                          json_string(tctl_code_filters_of(ctx, repo, level.index).autocrlf));
    }
    level_close(&level);
    return status;
}
