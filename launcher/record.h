/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest of a run, put together from what was captured and what came of it. */
#ifndef TCTL_LAUNCHER_RECORD_H
#define TCTL_LAUNCHER_RECORD_H

#include "launcher/attempt.h"
#include "launcher/capture.h"
#include "manifest/store.h"

typedef struct tctl_record {
    const tctl_spec *spec;
    const tctl_spec_request *asked;
    const tctl_sha256 *recipe_digest;
    const tctl_run *run;
    const tctl_capture *capture;
    const tctl_attempt_end *end; /* done */
} tctl_record;

/* *ret is a new reference. */
tctl_status tctl_record_make(const tctl_record *, json_t **ret, tctl_error *err);

/* What went in, in one digest: SHA-256 of the canonical text of {"recipe","data":{name: sha256},"plugins":{name:
 * sha256},"code": digest or null}, all taken from a manifest. */
tctl_status tctl_experiment_digest(const json_t *manifest, tctl_sha256 *ret, tctl_error *err);

#endif
