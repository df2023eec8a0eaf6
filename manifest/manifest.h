/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manifest: what a run was and what it gave, sealed last.
 *
 * docs/manifest.md describes the members. One table (manifest_table.c) drives the check of a manifest that is read
 * and the JSON Schema. A manifest is foreign bytes: whoever wrote it may have changed it, so nothing is used
 * before tctl_manifest_check has seen it.
 */
#ifndef TCTL_MANIFEST_MANIFEST_H
#define TCTL_MANIFEST_MANIFEST_H

#include <jansson.h>

#include "base/error.h"
#include "manifest/digest.h"
#include "manifest/tree.h"

#define TCTL_MANIFEST_FORMAT "trainctl-manifest/1"
#define TCTL_MANIFEST_LIMIT  ((size_t)64 << 20)

/* SHA-256 of the canonical text. */
tctl_status tctl_json_digest(const json_t *value, tctl_sha256 *ret, tctl_error *err);

/* "12345": numbers that may pass 2^53 are text. NULL if memory is out. */
json_t *tctl_json_count(uint64_t value);
/* The digest in hex. */
json_t *tctl_json_sha256(const tctl_sha256 *);

/* [{"path","type","bytes","sha256"}]: the files of an output folder, in order of path bytes. */
json_t *tctl_outputs_json(const tctl_tree *);

/* What a run gave: SHA-256 of the canonical text of {"exit_code","outputs":{path: sha256},"trace": sha256 or null}.
 * A link's value is "link:" and the digest of its target, an empty folder's is "folder", that of an output with a content
 * "content:", its format, ":" and the digest of the content; a path is what the output is known by ("as"). */
tctl_status tctl_result_digest(const json_t *outputs, const tctl_sha256 *trace, int exit_code,
                               tctl_sha256 *ret, tctl_error *err);

/* Checks and writes <run>/manifest.json: temporary file, fsync, rename, fsync of the folder. TCTL_EINVAL if the
 * manifest is not one: that is our mistake, and nothing is sealed. */
tctl_status tctl_manifest_seal(const char *run_path, const json_t *manifest, tctl_error *err);

/* Reads and checks <run>/manifest.json. TCTL_ENOENT if the run was not sealed. *ret is a new reference. */
tctl_status tctl_manifest_load(const char *run_path, json_t **ret, tctl_error *err);

/* The same from text; `name` is for messages. */
tctl_status tctl_manifest_parse(const char *name, const char *text, size_t size, json_t **ret,
                                tctl_error *err);

/* TCTL_EFORMAT with the member's path and what it must be. */
tctl_status tctl_manifest_check(const json_t *manifest, const char *name, tctl_error *err);

/* JSON Schema (draft 2020-12) of the manifest. A new reference; NULL if memory is out. */
json_t *tctl_manifest_schema(void);

#endif
