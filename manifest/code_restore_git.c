/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Restoring from the commit under refs/trainctl: blobs as they are, without any filter; submodules from their own
 * repositories; files of Git LFS from its local store.
 */
#include <fcntl.h>
#include <git2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "manifest/code_internal.h"
#include "manifest/code_restore.h"
#include "manifest/path_json.h"

/* One repository on the way down. */
typedef struct source {
    tctl_restore *r;
    git_repository *repo;
    const char *workdir; /* where the outermost working tree is now */
    const json_t *lfs;   /* paths whose blobs are pointers */
} source;

static bool has_commit(git_repository *repo, const git_oid *id)
{
    git_commit *commit = NULL;
    bool has = git_commit_lookup(&commit, repo, id) == 0;
    git_commit_free(commit);
    return has;
}

/* Opens the repository at `path` if it holds the commit. */
static git_repository *open_with(const char *path, const git_oid *id)
{
    git_repository *repo = NULL;
    if (path && git_repository_open_ext(&repo, path, GIT_REPOSITORY_OPEN_NO_SEARCH, NULL) == 0 &&
        has_commit(repo, id))
        return repo;
    git_repository_free(repo);
    return NULL;
}

/* The repository that holds the commit: where it was, or at or above the store. */
static git_repository *find_repository(tctl_restore *r, const git_oid *id)
{
    char *root = NULL;
    git_repository *repo = NULL;
    if (tctl_path_from_json(json_object_get(r->code, "root"), &root, NULL) == TCTL_OK)
        repo = open_with(root, id);
    free(root);
    char *at = r->store ? tctl_arena_copy(r->arena, r->store, strlen(r->store)) : NULL;
    while (!repo && at) {
        repo = open_with(at, id);
        if (strcmp(at, "/") == 0 || strcmp(at, ".") == 0)
            break;
        at = tctl_path_folder(r->arena, at);
    }
    return repo;
}

/* The recorded paths of files of Git LFS, as an object with their escaped text for keys: there may be many. */
static json_t *lfs_paths(const tctl_restore *r)
{
    json_t *paths = json_object();
    const json_t *list = json_object_get(r->code, "lfs"), *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));
        if (path && json_object_set_new(paths, path, json_true()) != 0) {
            json_decref(paths);
            return NULL;
        }
    }
    return paths;
}

static bool is_lfs(const source *s, const char *path)
{
    json_t *escaped = tctl_path_to_json(path);
    bool is = escaped && json_object_get(s->lfs, json_string_value(escaped)) != NULL;
    json_decref(escaped);
    return is;
}

/* A file whose blob is only a pointer: its bytes are in .git/lfs/objects/ab/cd/abcd…, if they were fetched. */
static tctl_status restore_lfs(source *s, int parent, const char *name, const char *path, char type,
                               const git_blob *pointer, tctl_error *err)
{
    tctl_sha256 digest;
    uint64_t size;
    char hex[TCTL_SHA256_HEX];
    if (!tctl_lfs_parse(git_blob_rawcontent(pointer), (size_t)git_blob_rawsize(pointer), &digest, &size))
        return tctl_fail(err, TCTL_ECHANGED,
                         "the kept '%s' is no Git LFS pointer, though it was recorded as one", path);
    tctl_sha256_hex(&digest, hex);
    const char *disk = tctl_arena_format(s->r->arena, "%slfs/objects/%.2s/%.2s/%s",
                                         git_repository_commondir(s->repo), hex, hex + 2, hex);
    if (!disk)
        return tctl_fail_memory(err, TCTL_SHA256_HEX);
    int fd = open(disk, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        tctl_status status = tctl_fail(
            err, TCTL_ENOENT, "the content of '%s' (sha256 %s) is not in Git LFS's local store", path, hex);
        tctl_hint(err, "git lfs fetch brings it back");
        return status;
    }
    tctl_status status = tctl_restore_fd(s->r, parent, name, path, type, fd, &digest, err);
    close(fd);
    return status;
}

static tctl_status restore_blob(source *s, int parent, const git_tree_entry *entry, const char *path,
                                tctl_error *err)
{
    git_blob *blob = NULL;
    const char *name = git_tree_entry_name(entry);
    uint32_t mode = git_tree_entry_filemode(entry);
    char type = mode == GIT_FILEMODE_LINK ? 'l' : mode == GIT_FILEMODE_BLOB_EXECUTABLE ? 'x' : 'f';
    int rc = git_blob_lookup(&blob, s->repo, git_tree_entry_id(entry));
    if (rc != 0)
        return tctl_fail_git(err, rc == GIT_ENOTFOUND ? TCTL_ENOENT : TCTL_ECHANGED,
                             "cannot read the kept '%s'", path);
    tctl_status status;
    if (is_lfs(s, path))
        status = restore_lfs(s, parent, name, path, type, blob, err);
    else
        status = tctl_restore_bytes(s->r, parent, name, path, type, git_blob_rawcontent(blob),
                                    (size_t)git_blob_rawsize(blob), err);
    git_blob_free(blob);
    return status;
}

static tctl_status restore_tree(source *s, const git_tree *tree, int fd, const char *folder, int depth,
                                tctl_error *err);

static tctl_status restore_commit(source *s, const git_oid *id, int fd, const char *folder, int depth,
                                  tctl_error *err)
{
    git_commit *commit = NULL;
    git_tree *tree = NULL;
    tctl_status status = TCTL_OK;
    if (git_commit_lookup(&commit, s->repo, id) != 0 || git_commit_tree(&tree, commit) != 0)
        status = tctl_fail_git(err, TCTL_ECHANGED, "cannot read the kept commit");
    if (status == TCTL_OK)
        status = restore_tree(s, tree, fd, folder, depth, err);
    git_tree_free(tree);
    git_commit_free(commit);
    return status;
}

/* Was the submodule captured? One that was not checked out is an empty folder again. */
static bool was_captured(const tctl_restore *r, const char *path)
{
    const json_t *list = json_object_get(r->code, "submodules"), *entry;
    size_t i;
    json_array_foreach(list, i, entry)
    {
        char *bytes = NULL;
        bool same = tctl_path_from_json(json_object_get(entry, "path"), &bytes, NULL) == TCTL_OK &&
                    strcmp(bytes, path) == 0;
        free(bytes);
        if (same)
            return json_is_object(json_object_get(entry, "kept"));
    }
    return false;
}

static tctl_status restore_link(source *s, const git_tree_entry *entry, int fd, const char *path, int depth,
                                tctl_error *err)
{
    if (!was_captured(s->r, path))
        return TCTL_OK;
    const char *name = git_tree_entry_name(entry);
    const git_oid *id = git_tree_entry_id(entry);
    tctl_arena *arena = s->r->arena;
    /* In its working tree, or where git keeps the repositories of submodules (by name, which is mostly the path). */
    char *root = NULL;
    git_repository *repo = NULL;
    if (tctl_path_from_json(json_object_get(s->r->code, "root"), &root, NULL) == TCTL_OK)
        repo = open_with(tctl_path_join(arena, root, path), id);
    free(root);
    if (!repo && s->workdir)
        repo = open_with(tctl_path_join(arena, s->workdir, path), id);
    if (!repo)
        repo =
            open_with(tctl_arena_format(arena, "%smodules/%s", git_repository_commondir(s->repo), name), id);
    if (!repo)
        repo =
            open_with(tctl_arena_format(arena, "%smodules/%s", git_repository_commondir(s->repo), path), id);
    if (!repo)
        return tctl_fail(err, TCTL_ENOENT,
                         "the repository of submodule '%s' with the kept commit is not to be found", path);
    source below = {.r = s->r, .repo = repo, .workdir = s->workdir, .lfs = s->lfs};
    tctl_status status = restore_commit(&below, id, fd, path, depth, err);
    git_repository_free(repo);
    return status;
}

static tctl_status restore_entry(source *s, const git_tree_entry *entry, int parent, const char *folder,
                                 int depth, tctl_error *err)
{
    const char *name = git_tree_entry_name(entry);
    const char *path = tctl_arena_format(s->r->arena, "%s%s%s", folder, *folder ? "/" : "", name);
    git_object_t type = git_tree_entry_type(entry);
    int fd;
    if (!path)
        return tctl_fail_memory(err, strlen(name));
    if (type == GIT_OBJECT_BLOB)
        return restore_blob(s, parent, entry, path, err);
    tctl_status status = tctl_restore_folder(path, parent, name, &fd, err);
    if (status != TCTL_OK)
        return status;
    if (type == GIT_OBJECT_COMMIT) {
        status = restore_link(s, entry, fd, path, depth, err);
    } else {
        git_tree *tree = NULL;
        if (git_tree_lookup(&tree, s->repo, git_tree_entry_id(entry)) != 0)
            status = tctl_fail_git(err, TCTL_ECHANGED, "cannot read the kept folder '%s'", path);
        else
            status = restore_tree(s, tree, fd, path, depth, err);
        git_tree_free(tree);
    }
    close(fd);
    return status;
}

static tctl_status restore_tree(source *s, const git_tree *tree, int fd, const char *folder, int depth,
                                tctl_error *err)
{
    if (depth >= TCTL_RESTORE_DEPTH)
        return tctl_fail(err, TCTL_ECHANGED, "the kept tree is nested too deep at '%s'", folder);
    tctl_status status = TCTL_OK;
    for (size_t i = 0; status == TCTL_OK && i < git_tree_entrycount(tree); i++)
        status = restore_entry(s, git_tree_entry_byindex(tree, i), fd, folder, depth + 1, err);
    return status;
}

static tctl_status restore(tctl_restore *r, const git_oid *id, int fd, tctl_error *err)
{
    git_repository *repo = find_repository(r, id);
    if (!repo) {
        char hex[GIT_OID_HEXSZ + 1];
        tctl_status status =
            tctl_fail(err, TCTL_ENOENT, "no repository with the kept commit %s is to be found",
                      git_oid_tostr(hex, sizeof hex, id));
        tctl_note(err, "looked where it was recorded and at and above the run store");
        return status;
    }
    json_t *lfs = lfs_paths(r);
    source s = {.r = r, .repo = repo, .workdir = git_repository_workdir(repo), .lfs = lfs};
    tctl_status status = lfs ? restore_commit(&s, id, fd, "", 0, err) : tctl_fail_memory(err, sizeof s);
    json_decref(lfs);
    git_repository_free(repo);
    return status;
}

tctl_status tctl_restore_from_git(tctl_restore *r, const json_t *kept, int fd, tctl_error *err)
{
    const char *hex = json_string_value(json_object_get(kept, "commit"));
    git_oid id;
    if (tctl_git_start() < 0)
        return tctl_fail_git(err, TCTL_EIO, "libgit2 does not start");
    int owners = tctl_git_trust_owners();
    tctl_status status;
    if (!hex || strlen(hex) != GIT_OID_HEXSZ || git_oid_fromstr(&id, hex) != 0)
        status = tctl_fail(err, TCTL_EFORMAT, "the manifest's 'code' has no usable commit in 'kept'");
    else
        status = restore(r, &id, fd, err);
    tctl_git_restore_owners(owners);
    git_libgit2_shutdown();
    return status;
}
