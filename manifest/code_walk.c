/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the files of a folder that no git looks after.
 *
 * Follows no link, enters no folder that is known to hold what tools made (virtual environments, caches, other
 * version control's data), and takes nothing in beyond the limits. Everything left out is said.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/code_internal.h"

enum { max_depth = 200 };

typedef struct walk {
    tctl_code_ctx *ctx;
    git_repository *ignores;
    size_t ignores_at; /* length of the path of `ignores` within the root, with its '/' */
} walk;

/* Folders that tools make and remake. `.git` and `.trainctl` are left out without a word. */
static const char *const made_by_tools[] = {
    "node_modules",  "__pycache__",        ".venv",         ".tox",    ".nox",  ".mypy_cache",
    ".pytest_cache", ".ruff_cache",        ".cache",        ".hg",     ".svn",  ".jj",
    ".eggs",         ".ipynb_checkpoints", ".mypy_cache.d", ".direnv", ".pixi", NULL,
};

static bool has_file(int folder, const char *name)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Why a folder is not entered; NULL if it is. */
static const char *made_by_tool(int fd, const char *name)
{
    for (const char *const *n = made_by_tools; *n; n++) {
        if (strcmp(name, *n) == 0)
            return "a folder that tools make";
    }
    if (has_file(fd, "pyvenv.cfg"))
        return "a Python virtual environment";
    if (has_file(fd, "CACHEDIR.TAG"))
        return "a cache (CACHEDIR.TAG)";
    return NULL;
}

static bool ignored(const walk *w, const char *path)
{
    int is = 0;
    return w->ignores && git_ignore_path_is_ignored(&is, w->ignores, path + w->ignores_at) == 0 && is;
}

static tctl_status add_file(walk *w, const char *path, const struct stat *st, tctl_error *err)
{
    tctl_code_ctx *ctx = w->ctx;
    char type = tctl_code_type(st);
    if (!type) {
        tctl_code_skip(ctx, path, 0, NULL, "neither a file, nor a folder, nor a link");
        return TCTL_OK;
    }
    if (!tctl_code_admit(ctx, path, st))
        return TCTL_OK;
    tctl_sha256 digest;
    uint64_t size;
    tctl_error why = {0};
    tctl_status status = tctl_code_digest(ctx, path, st, &digest, &size, &why);
    if (status == TCTL_ENOMEM)
        return tctl_fail(err, status, "%s", why.message);
    if (status != TCTL_OK) {
        tctl_code_skip(ctx, path, (uint64_t)st->st_size, NULL, "it could not be read");
        return TCTL_OK;
    }
    tctl_code_file *file = tctl_code_add_file(ctx);
    if (!file)
        return tctl_fail_memory(err, sizeof *file);
    *file = (tctl_code_file){.path = path, .type = type, .hashed = true, .size = size, .digest = digest};
    return TCTL_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names in the folder but "." and "..", sorted, from the arena; closes nothing. */
static tctl_status read_names(walk *w, DIR *dir, const char ***ret, size_t *ret_n, tctl_error *err)
{
    size_t n = 0, room = 0;
    const char **names = NULL;
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (n == room) {
            room = room ? 2 * room : 64;
            const char **bigger = realloc(names, room * sizeof *names);
            if (!bigger) {
                free(names);
                return tctl_fail_memory(err, room * sizeof *names);
            }
            names = bigger;
        }
        names[n] = tctl_arena_copy(w->ctx->arena, entry->d_name, strlen(entry->d_name));
        if (!names[n++]) {
            free(names);
            return tctl_fail_memory(err, strlen(entry->d_name));
        }
    }
    if (n > 1)
        qsort(names, n, sizeof *names, by_name);
    *ret = names;
    *ret_n = n;
    return TCTL_OK;
}

static tctl_status walk_folder(walk *w, int fd, const char *path, int depth, tctl_error *err);

/* Enters a folder unless there is a reason not to. */
static tctl_status enter(walk *w, int parent, const char *name, const char *path, int depth, tctl_error *err)
{
    if (strcmp(name, ".git") == 0 || strcmp(name, ".trainctl") == 0)
        return TCTL_OK;
    if (depth >= max_depth) {
        tctl_code_skip(w->ctx, path, 0, NULL, "folders are nested too deep");
        return TCTL_OK;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        tctl_code_skip(w->ctx, path, 0, NULL, "the folder could not be read");
        return TCTL_OK;
    }
    const char *why = made_by_tool(fd, name);
    if (why) {
        tctl_code_skip(w->ctx, path, 0, NULL, why);
        close(fd);
        return TCTL_OK;
    }
    return walk_folder(w, fd, path, depth + 1, err);
}

static tctl_status visit(walk *w, int parent, const char *folder, const char *name, int depth,
                         tctl_error *err)
{
    tctl_code_ctx *ctx = w->ctx;
    const char *path = *folder ? tctl_arena_format(ctx->arena, "%s/%s", folder, name) : name;
    struct stat st;
    if (!path)
        return tctl_fail_memory(err, strlen(folder) + strlen(name));
    if (tctl_code_excluded(ctx, path) || ignored(w, path) ||
        fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return TCTL_OK;
    if (S_ISDIR(st.st_mode))
        return enter(w, parent, name, path, depth, err);
    if (strcmp(name, ".git") == 0) /* of a worktree or a submodule */
        return TCTL_OK;
    return add_file(w, path, &st, err);
}

/* Takes fd over. */
static tctl_status walk_folder(walk *w, int fd, const char *path, int depth, tctl_error *err)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return tctl_fail_memory(err, sizeof dir);
    }
    const char **names = NULL;
    size_t n = 0;
    tctl_status status = read_names(w, dir, &names, &n, err);
    for (size_t i = 0; status == TCTL_OK && i < n; i++) {
        /* Once the time is over, or there are far too many, even naming what is left out costs too much. */
        if (tctl_code_late(w->ctx) || w->ctx->n_skipped > 10 * w->ctx->max_files) {
            tctl_code_skip(w->ctx, *path ? path : ".", 0, NULL, "the rest of the folder was not looked at");
            break;
        }
        status = visit(w, dirfd(dir), path, names[i], depth, err);
    }
    free(names);
    closedir(dir);
    return status;
}

tctl_status tctl_code_walk(tctl_code_ctx *ctx, const char *folder, git_repository *ignores, tctl_error *err)
{
    walk w = {.ctx = ctx, .ignores = ignores, .ignores_at = *folder ? strlen(folder) + 1 : 0};
    const char *disk = *folder ? tctl_code_disk_path(ctx, folder) : ctx->root;
    if (!disk)
        return tctl_fail_memory(err, strlen(folder));
    int fd = open(disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot read folder '%s'", disk);
    return walk_folder(&w, fd, folder, 0, err);
}
