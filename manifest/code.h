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

typedef struct tctl_code_request {
    const char *folder; /* the spec's, absolute */
    const char *run;    /* id */
    const char *store;  /* the run store, for objects; never captured itself */
    uint64_t max_bytes; /* of one captured file, and … */
    uint64_t max_total; /* … of all untracked ones together; larger ones are recorded by digest only */
    double max_seconds; /* after that the capture stops and says so */
    bool no_vcs;        /* --no-vcs */
    const char *const *inputs; /* absolute paths that are data, left out of the kept tree; NULL-ended */
} tctl_code_request;

/* *ret: the object `code` of the manifest. A repository that can't be read is a note in it, not a failure. */
tctl_status tctl_code_capture(const tctl_code_request *, json_t **ret, tctl_error *err);

/* Puts the recorded tree into `folder` (new or empty). TCTL_ECHANGED if the kept objects are not what they were. */
tctl_status tctl_code_restore(const json_t *code, const char *store, const char *folder, tctl_error *err);

#endif
