/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `trainctl verify`: what is checked before the work is done again, and what is compared behind it.
 */
#ifndef TCTL_LAUNCHER_VERIFY_H
#define TCTL_LAUNCHER_VERIFY_H

#include <jansson.h>

#include "launcher/attempt.h"
#include "launcher/experiment.h"
#include "manifest/store.h"

enum {
    TCTL_VERDICT_NONE = 0,
    TCTL_VERDICT_IDENTICAL = 1,
    TCTL_VERDICT_DIFFERS = 2,
    TCTL_VERDICT_UNVERIFIABLE = 3
};

typedef struct tctl_verification {
    tctl_arena *arena;
    const tctl_run *run;
    const json_t *manifest;
    bool anyway;    /* --anyway: go on where what went in has changed */
    json_t *checks; /* [{"check","ok","what"}] in the order made */
    int verdict;
    const char *reason;       /* NULL while there is nothing to say */
    json_t *first_divergence; /* of tctl_classify; NULL */
    json_t *environment;      /* the machine as it is now; NULL: not looked at */
    json_t *differences;      /* of the machine, [{"field","was","is"}]; NULL: not looked at */
    json_t *data;             /* changed inputs, as tctl_evidence has them */
} tctl_verification;

/* Notes a check that was fine. */
void tctl_verify_passed(tctl_verification *, const char *check, const char *what);
/* Notes a check that was not; the first reason stays. Returns false. */
bool tctl_verify_failed(tctl_verification *, const char *check, int verdict, const char *fmt, ...)
    TCTL_PRINTF(4, 5);

/* All of these return false when verifying can't go on: the verdict and the reason are set. */

/* The manifest's own digests, and the outputs and the trace that lie in the run directory. */
bool tctl_verify_recorded(tctl_verification *);
/* Data, plugins (by path) and the machine. */
bool tctl_verify_inputs(tctl_verification *);
/* The spec as it resolves now, and the plugins that it would use now. */
bool tctl_verify_resolved(tctl_verification *, const tctl_experiment *);
/* Where the work is to be done: the spec's own folder for a worker, a new folder with the recorded code for a command.
 * `folder` is the attempt's. */
bool tctl_verify_place(tctl_verification *, const tctl_spec *, const char *store, const char *folder,
                       const char **ret);
/* What an attempt was and gave, as the members of a manifest: one side of tctl_evidence. A new reference. */
json_t *tctl_verify_side(const tctl_verification *, const tctl_attempt_end *);
/* Whether two attempts at the same work gave the same, and the verdict on where they part if not: NULL in *ret if they
 * do not. `a` and `b`: their folders; `was` and `is`: their sides. */
tctl_status tctl_verify_pair(tctl_verification *, const char *a, const json_t *was, const char *b,
                             const json_t *is, json_t **ret, tctl_error *err);
/* Sets the verdict. */
void tctl_verify_compare(tctl_verification *, const char *folder, const tctl_attempt_end *);

#endif
