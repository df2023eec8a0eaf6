/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt at the work of a spec in a prepared folder: `run` makes the first, `verify` another one.
 */
#ifndef TCTL_LAUNCHER_ATTEMPT_H
#define TCTL_LAUNCHER_ATTEMPT_H

#include <jansson.h>

#include "config/spec.h"
#include "launcher/envelope.h"
#include "launcher/supervise.h"
#include "manifest/digest.h"
#include "manifest/stat_cache.h"

typedef struct tctl_attempt {
    const tctl_spec *spec;
    const tctl_spec_request *asked; /* set, without and seed, as the worker is to read them */
    const tctl_sha256 *recipe_digest;
    const char *run_id;
    const char *
        folder; /* of this attempt, absolute; exists. Gets spec.yaml, request.json, log.txt, out/, report/, … */
    const char *work_folder; /* where a command runs; where relative paths of the spec start */
    double grace_seconds;
    tctl_view *view;
    const char *const *allow_env; /* variables that pass whatever they hold; NULL-ended, or NULL */
    const json_t *envelope;       /* "envelope" of the manifest that is repeated; NULL: a first attempt */
    /* Of a command's trace, NULL: nothing of the kind. "A-B": steps recorded in more detail (trace-fine.bin); a step
     * whose tensors are written (dump-N/); the step after which the child ends with status 0. */
    const char *trace_fine, *trace_dump, *trace_stop;
    uint32_t trace_every; /* of a worker's trace: every so many steps; 0: as the spec has it */
    const struct tctl_circumstances *changed; /* of a probe (launcher/probe.h); NULL: as the spec has it */
    tctl_stat_cache *cache;                   /* for the digests of libraries; NULL: the user's is opened */
    double limit_seconds;                     /* killed after that; 0: never */
} tctl_attempt;

typedef struct tctl_attempt_end {
    tctl_child_end child;
    const char *state;      /* TCTL_STATE_DONE, …_FAILED, …_INTERRUPTED */
    const char *reason;     /* NULL if done */
    const char *details;    /* what the worker said went wrong, as a person sees it; NULL */
    int exit_code;          /* for trainctl */
    json_t *worker;         /* worker.json; NULL for a command, or if there is none */
    json_t *envelope;       /* the record of tctl_envelope */
    json_t *interposer;     /* manifest's members of these names; NULL without the interposer */
    json_t *shared_objects; /* of a command; NULL without the interposer */
    json_t *python;         /* of tctl_report_python_read; NULL if no Python process reported */
    json_t *uncontrolled;   /* [{"what","why"}]; NULL before there was a child */
    json_t *outputs;        /* of tctl_outputs_json; NULL unless done */
    json_t *trace;          /* {"sha256","steps","fields"}; NULL without a trace, or unless done */
    tctl_sha256 result;     /* digest, if done */
} tctl_attempt_end;

/* Writes the files, runs the child, reads what it left. Fails only where there is nothing to say about a child. */
tctl_status tctl_attempt_run(tctl_arena *, const tctl_attempt *, tctl_attempt_end *ret, tctl_error *err);
void tctl_attempt_release(tctl_attempt_end *);

#endif
