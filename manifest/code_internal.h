/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files code*.c share. A capture is one pass: changes are found, files are listed with digests, the list is
 * kept (as a git commit, or as objects), and the object `code` is put together.
 */
#ifndef TCTL_MANIFEST_CODE_INTERNAL_H
#define TCTL_MANIFEST_CODE_INTERNAL_H

#include <git2.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/error.h"
#include "manifest/code.h"
#include "manifest/digest.h"

/* So many changes, skipped files, … are named in the manifest; the rest is counted. */
#define TCTL_CODE_LISTED 1000

/* One file of the tree that ran. */
typedef struct tctl_code_file {
    const char *path; /* relative to the capture's root; arena */
    char type;        /* 'f', 'x', 'l' as in tree.h */
    bool hashed;      /* `digest` is known */
    bool lfs;         /* what git holds under `id` is a Git LFS pointer to this content */
    uint64_t size;
    tctl_sha256 digest;
    git_oid id; /* git only */
} tctl_code_file;

/* One line of `git status`. */
typedef struct tctl_code_change {
    const char *path, *old_path; /* old_path: renames, else NULL */
    const char *status; /* "added", "modified", "deleted", "renamed", "mode", "type", "untracked", … */
    bool staged;
    bool dropped; /* turned out to be none */
    int binary;   /* -1: not known */
    uint32_t old_mode, mode;
    git_oid id; /* before the change */
} tctl_code_change;

typedef struct tctl_code_ctx {
    const tctl_code_request *request;
    uint64_t max_bytes, max_total, max_files;
    double deadline; /* CLOCK_MONOTONIC */
    bool late;       /* the deadline was met */
    bool undigested; /* a file of the kept tree has no digest */
    bool unwritable; /* the repository can't be written to: what was found is kept as objects instead */
    tctl_arena *arena;
    const char *root;              /* real path of the working tree, or of the folder */
    const char **excluded;         /* relative to root, NULL-ended */
    uint64_t new_bytes, new_files; /* taken in that git did not hold */

    size_t n_files, room_files;
    tctl_code_file *files;
    size_t n_changes, room_changes;
    tctl_code_change *changes;
    uint64_t n_skipped;
    json_t *skipped, *notes, *submodules, *lfs, *filters;
    bool no_memory; /* a JSON value could not be made */
} tctl_code_ctx;

/* code_context.c */
tctl_status tctl_code_ctx_init(tctl_code_ctx *, const tctl_code_request *, tctl_error *err);
void tctl_code_ctx_release(tctl_code_ctx *);
/* Forgets what was found so far, but for notes. */
tctl_status tctl_code_ctx_restart(tctl_code_ctx *, const char *root, tctl_error *err);
/* True once the time is over; notes it the first time. */
bool tctl_code_late(tctl_code_ctx *);
void tctl_code_note(tctl_code_ctx *, const char *fmt, ...) TCTL_PRINTF(2, 3);
/* Records what is left out: why, and the digest where it is known (may be NULL). */
void tctl_code_skip(tctl_code_ctx *, const char *path, uint64_t size, const tctl_sha256 *digest,
                    const char *why);
/* True if `path` (relative to root) is the run store, a declared input, or inside one. */
bool tctl_code_excluded(const tctl_code_ctx *, const char *path);
/* New elements at the end, zeroed; NULL if memory is out. Pointers to earlier ones are void afterwards. */
tctl_code_file *tctl_code_add_file(tctl_code_ctx *);
tctl_code_change *tctl_code_add_change(tctl_code_ctx *);
/* "root/path", from the arena. */
const char *tctl_code_disk_path(tctl_code_ctx *, const char *path);
/* Type of a file as in tree.h, 0 if it is neither a regular file nor a link. */
char tctl_code_type(const struct stat *);
/* True if a file that git does not hold may be taken in; else it is in `skipped`, with the digest if that is cheap. */
bool tctl_code_admit(tctl_code_ctx *, const char *path, const struct stat *);
/* Digest of a regular file or link through the cache. */
tctl_status tctl_code_digest(tctl_code_ctx *, const char *path, const struct stat *, tctl_sha256 *ret,
                             uint64_t *ret_size, tctl_error *err);
/* json_object_set_new and friends that remember a failure in the context. */
void tctl_code_set(tctl_code_ctx *, json_t *object, const char *key, json_t *value);
void tctl_code_append(tctl_code_ctx *, json_t *array, json_t *value);

/* code_walk.c: adds the files below `folder` (relative to root, "" for root). `ignores`, if not NULL, is a repository
 * at `folder` whose ignore rules count. */
tctl_status tctl_code_walk(tctl_code_ctx *, const char *folder, git_repository *ignores, tctl_error *err);

/* code_git.c. A repository at or above the folder that can be used, or NULL, with a note if one can't. */
git_repository *tctl_code_git_find(tctl_code_ctx *, const char *folder);
/* Captures from a repository; `ret` gets the members that only git has. */
tctl_status tctl_code_git_capture(tctl_code_ctx *, git_repository *, json_t *ret, tctl_error *err);
/* libgit2's last message is copied at once, since the next call may replace it. */
tctl_status tctl_fail_git(tctl_error *err, tctl_status code, const char *fmt, ...) TCTL_COLD
    TCTL_PRINTF(3, 4);
const char *tctl_git_message(void);
typedef tctl_status tctl_git_config_fn(void *arg, const char *middle, const char *value, tctl_error *err);
/* Calls fn for every variable "<section>.<middle>.<key>". */
tctl_status tctl_git_config_each(const git_config *, const char *section, const char *key,
                                 tctl_git_config_fn *fn, void *arg, tctl_error *err);
/* A remote's URL without user, password and query. From the arena. */
const char *tctl_code_clean_url(tctl_arena *, const char *url);
/* git_libgit2_init, without the certificates (code_no_tls.c). */
int tctl_git_start(void);

/* Checking of a repository's owner, off and back on. */
int tctl_git_trust_owners(void);
void tctl_git_restore_owners(int was);

/* One working tree on the way through: the repository itself, or a submodule of it. */
typedef struct tctl_code_level {
    git_repository *repo;
    git_odb *odb;
    git_index *index;
    git_tree *head_tree; /* NULL: unborn */
    git_commit *head;    /* NULL: unborn */
    const char *prefix;  /* of its paths within the root: "" or "sub/module/" */
    size_t first_file;   /* the files of this level are first_file .. end_file-1 */
    size_t end_file;
    size_t first_change, first_unstaged; /* of ctx->changes */
    size_t n_links;
    struct tctl_code_link { /* a submodule */
        const char *path;   /* within the level */
        git_oid id;         /* recorded in the index; later: the commit that was kept */
    } * links;
    bool filemode; /* core.fileMode: the executable bit on disk means something */
    bool dirty;
} tctl_code_level;

/* code_git_changes.c: fills ctx->changes from first_change on: staged ones, then from first_unstaged on the unstaged
 * and untracked ones, these sorted by path. */
tctl_status tctl_code_git_changes(tctl_code_ctx *, tctl_code_level *, tctl_error *err);
/* code_git_put.c: reads a file or link as it is and makes it a blob of the level's repository. `known`: the blob that
 * it may be already, or NULL. */
typedef struct tctl_code_content {
    git_oid id;
    tctl_sha256 digest;
    uint64_t size;
    bool binary;
} tctl_code_content;
tctl_status tctl_code_git_put(tctl_code_ctx *, tctl_code_level *, const char *path, const struct stat *,
                              const git_oid *known, tctl_code_content *ret, tctl_error *err);
/* code_git_scan.c: lists the files of the level. */
tctl_status tctl_code_git_scan(tctl_code_ctx *, tctl_code_level *, tctl_error *err);
/* code_git_level.c: all of a level: changes, files, submodules (recursively), keeping. */
tctl_status tctl_code_git_level(tctl_code_ctx *, git_repository *, const char *prefix, json_t *ret,
                                bool *ret_dirty, git_oid *ret_kept, tctl_error *err);
/* code_git_keep.c: writes the level's tree and commit under refs/trainctl/<run>. */
tctl_status tctl_code_git_keep(tctl_code_ctx *, tctl_code_level *, git_oid *ret_commit, json_t **ret_kept,
                               tctl_error *err);
/* The reference's name. */
const char *tctl_code_ref(tctl_arena *, const char *run);

/* code_filter.c */
enum {
    TCTL_FILTER_NONE = 0,
    TCTL_FILTER_TEXT = 1,  /* line endings: the bytes differ from the blob's only if the sizes do */
    TCTL_FILTER_OTHER = 2, /* ident, encodings, drivers */
    TCTL_FILTER_LFS = 3
};
typedef struct tctl_code_filters {
    git_repository *repo;
    bool attributes;      /* there may be attribute files */
    const char *autocrlf; /* core.autocrlf: "true", "input", "false" */
} tctl_code_filters;
tctl_code_filters tctl_code_filters_of(tctl_code_ctx *, git_repository *, git_index *);
/* What may make the bytes of `path` in the working tree differ from its blob's. *ret_name: the driver or "text". */
int tctl_code_filter(const tctl_code_filters *, tctl_code_ctx *, const char *path, const char **ret_name);

/* A Git LFS pointer's digest and size: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md */
#define TCTL_LFS_POINTER_MAX 1024
bool tctl_lfs_parse(const char *text, size_t size, tctl_sha256 *ret, uint64_t *ret_size);

#endif
