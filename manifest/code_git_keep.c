/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps a level's tree as a commit under refs/trainctl/<run>.
 *
 * The tree is built in an index in memory; the user's index, branch, reflogs and files are not touched. Nothing of
 * this run or this moment goes into the commit (author "trainctl", the time of HEAD's commit), so equal trees on the
 * same HEAD have the same commit. A clean tree is HEAD's commit itself.
 */
#include <stdlib.h>
#include <string.h>

#include "manifest/code_internal.h"

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

const char *tctl_code_ref(tctl_arena *arena, const char *run)
{
    char *name = tctl_arena_format(arena, "refs/trainctl/%s", run);
    int valid = 0;
    if (!name || (git_reference_name_is_valid(&valid, name) == 0 && valid && !strchr(run, '/')))
        return name;
    /* What git does not allow in a name ("..", ".lock" at the end, …) is replaced. */
    for (char *p = name + sizeof "refs/trainctl/" - 1; *p; p++) {
        if (!is_name_char(*p))
            *p = '_';
    }
    return name;
}

static uint32_t mode_of(char type)
{
    return type == 'x' ? GIT_FILEMODE_BLOB_EXECUTABLE : type == 'l' ? GIT_FILEMODE_LINK : GIT_FILEMODE_BLOB;
}

static int add_to_index(git_index *index, const char *path, uint32_t mode, const git_oid *id)
{
    git_index_entry entry = {.mode = mode, .path = path};
    git_oid_cpy(&entry.id, id);
    return git_index_add(index, &entry);
}

/* Files whose names git refuses (".git" in some spelling) leave the list, with the reason. */
static tctl_status fill_index(tctl_code_ctx *ctx, tctl_code_level *level, git_index *index)
{
    size_t n = strlen(level->prefix), kept = level->first_file;
    for (size_t i = level->first_file; i < level->end_file; i++) {
        tctl_code_file *file = &ctx->files[i];
        if (add_to_index(index, file->path + n, mode_of(file->type), &file->id) == 0)
            ctx->files[kept++] = *file;
        else
            tctl_code_skip(ctx, file->path, file->size, file->hashed ? &file->digest : NULL,
                           "git refuses such a name");
    }
    /* The levels below this one were listed behind it. */
    if (kept < level->end_file)
        memmove(ctx->files + kept, ctx->files + level->end_file,
                (ctx->n_files - level->end_file) * sizeof *ctx->files);
    ctx->n_files -= level->end_file - kept;
    level->end_file = kept;
    for (size_t i = 0; i < level->n_links; i++) {
        if (add_to_index(index, level->links[i].path, GIT_FILEMODE_COMMIT, &level->links[i].id) != 0)
            tctl_code_note(ctx, "submodule '%s' could not be kept: %s", level->links[i].path,
                           tctl_git_message());
    }
    return TCTL_OK;
}

static int make_commit(tctl_code_level *level, const git_tree *tree, git_oid *ret)
{
    git_signature *who = NULL;
    int64_t time = level->head ? git_commit_time(level->head) : 0;
    const git_commit *parents[1] = {level->head};
    if (git_signature_new(&who, "trainctl", "trainctl@localhost", time, 0) != 0)
        return -1;
    int rc = git_commit_create(ret, level->repo, NULL, who, who, NULL,
                               "trainctl: the working tree that ran\n\n"
                               "Made of the files' bytes as they were; not part of any branch.\n",
                               tree, level->head ? 1 : 0, parents);
    git_signature_free(who);
    return rc;
}

static tctl_status keep_tree(tctl_code_ctx *ctx, tctl_code_level *level, const git_tree *tree, git_oid *ret,
                             json_t **ret_kept, tctl_error *err)
{
    const char *name = tctl_code_ref(ctx->arena, ctx->request->run);
    git_reference *ref = NULL;
    char hex[GIT_OID_HEXSZ + 1];
    if (!name)
        return tctl_fail_memory(err, strlen(ctx->request->run));
    if (level->head_tree && git_oid_equal(git_tree_id(tree), git_tree_id(level->head_tree)))
        git_oid_cpy(ret, git_commit_id(level->head));
    else if (make_commit(level, tree, ret) != 0)
        return tctl_fail_git(err, TCTL_EIO, "cannot make a commit");
    if (git_reference_create(&ref, level->repo, name, ret, 1, NULL) != 0)
        return tctl_fail_git(err, TCTL_EIO, "cannot make '%s'", name);
    git_reference_free(ref);
    json_t *kept = json_object();
    tctl_code_set(ctx, kept, "ref", json_string(name));
    tctl_code_set(ctx, kept, "commit", json_string(git_oid_tostr(hex, sizeof hex, ret)));
    tctl_code_set(ctx, kept, "tree", json_string(git_oid_tostr(hex, sizeof hex, git_tree_id(tree))));
    *ret_kept = kept;
    return TCTL_OK;
}

tctl_status tctl_code_git_keep(tctl_code_ctx *ctx, tctl_code_level *level, git_oid *ret_commit,
                               json_t **ret_kept, tctl_error *err)
{
    git_index *index = NULL;
    git_tree *tree = NULL;
    git_oid id;
    tctl_status status = TCTL_OK;
    if (git_index_new(&index) != 0)
        return tctl_fail_git(err, TCTL_ENOMEM, "cannot make an index in memory");
    status = fill_index(ctx, level, index);
    if (status == TCTL_OK && (git_index_write_tree_to(&id, index, level->repo) != 0 ||
                              git_tree_lookup(&tree, level->repo, &id) != 0))
        status = tctl_fail_git(err, TCTL_EIO, "cannot write a tree");
    if (status == TCTL_OK)
        status = keep_tree(ctx, level, tree, ret_commit, ret_kept, err);
    git_tree_free(tree);
    git_index_free(index);
    return status;
}
