/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a run: what it was, kept so that it can be had again.
 *
 * Inside a git working tree: commit, branch, remotes that hold the commit, staged and unstaged and untracked
 * changes, submodules, filters; and the exact tree that ran as a commit under refs/trainctl/<run>, made of the
 * working tree's bytes as they are (no autocrlf, no LFS smudging). The user's index, branch and files are never
 * touched. Outside git: content-addressed objects in the run store.
 */
#ifndef TCTL_MANIFEST_CODE_H
#define TCTL_MANIFEST_CODE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "manifest/stat_cache.h"

typedef struct tctl_code_request {
    const char *folder; /* the spec's, absolute */
    const char *run;    /* id */
    const char *store;  /* the run store, for objects; never captured itself */
    uint64_t max_bytes; /* of one captured file that git does not hold yet (0: 64 MiB), and … */
    uint64_t max_total; /* … of all of them together (0: 256 MiB); larger ones are recorded by digest only */
    uint64_t max_files; /* that git does not hold yet (0: 20,000) */
    double max_seconds; /* after that the capture stops and says so (0: 10) */
    bool no_vcs;        /* --no-vcs */
    const char *const
        *inputs;            /* absolute paths that are data, left out of the kept tree; NULL-ended, or NULL */
    tctl_stat_cache *cache; /* of digests; NULL: none */
} tctl_code_request;

/*
 * *ret: the object `code` of the manifest, as docs/code-capture.md describes it. A repository that can't be read is
 * a note in it, not a failure; what was left out is in `skipped`, and `digest` is null if the time limit was met
 * before every file had been hashed.
 *
 * TCTL_EINVAL, TCTL_ENOMEM, or what the run store's disk says (TCTL_ENOSPC, TCTL_EIO). Not thread-safe: libgit2's
 * check of the repository's owner is switched off for the duration of the call, in the whole process.
 */
tctl_status tctl_code_capture(const tctl_code_request *, json_t **ret, tctl_error *err);

/* Looks at what a capture of `folder` would meet and changes nothing: {"vcs":"git","root","owned","writable","readable",
 * "notes"} or {"vcs":"none","notes"}. */
tctl_status tctl_code_inspect(const char *folder, json_t **ret, tctl_error *err);

/*
 * Puts the recorded tree into `folder` (new or empty): regular files 0644 or 0755 less the umask, links, no .git.
 * The spec's folder is `folder`/<member "folder">. The repository is looked for where it was recorded and then
 * above the store.
 *
 * TCTL_ECHANGED if the kept objects are not what they were, TCTL_ENOENT if they or the repository are gone,
 * TCTL_EINVAL if nothing was kept or the folder is not empty, TCTL_EFORMAT for a malformed `code`.
 */
tctl_status tctl_code_restore(const json_t *code, const char *store, const char *folder, tctl_error *err);

#endif
