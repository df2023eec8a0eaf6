/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doing the work of a spec again, in scratch folders, as often as somebody wants to know something.
 */
#ifndef TCTL_LAUNCHER_REPEAT_H
#define TCTL_LAUNCHER_REPEAT_H

#include <jansson.h>

#include "launcher/attempt.h"
#include "launcher/verify.h"

/* What to repeat. Everything is borrowed. */
typedef struct tctl_repeater {
    tctl_verification *v;
    const tctl_spec *spec;
    const tctl_spec_request *asked;
    const tctl_sha256 *recipe_digest;
    const char *run_id;
    const json_t *envelope;       /* that was recorded, to be made again; NULL: a first one */
    const char *const *allow_env; /* as of a tctl_attempt; NULL with `envelope` */
    const char *store;    /* with the recorded code; NULL: the spec's own folder is where a command runs */
    const char *scratch;  /* folder in which the scratch folders are made */
    double limit_seconds; /* of one repetition; 0: none */
    bool keep;            /* leave the scratch folders behind */
    uint32_t n_made;
    int stopped; /* the exit code, above 128, once somebody stopped us; 0 */
} tctl_repeater;

/* How it differs from what the spec says. All zero: not at all. */
typedef struct tctl_repeat_request {
    uint32_t probes; /* of launcher/probe.h */
    unsigned fill;
    uint32_t trace_every; /* 0: as the spec has it */
    bool stops, dumps;
    uint64_t stop,
        dump; /* if so: the step behind which it ends, at least 1; the one whose tensors are written */
    uint32_t threads; /* 0: as the spec has it */
    tctl_view *view;  /* whom the child speaks to */
} tctl_repeat_request;

typedef struct tctl_repeat {
    const char *folder;
    tctl_attempt_end end;
    json_t *side;        /* of tctl_verify_side; NULL unless it ended well */
    const char *failure; /* why it did not end well; NULL */
} tctl_repeat;

/* A repetition in `folder`, which exists, or (NULL) in a new scratch folder. A child that fails is no error: `failure`
 * says so. TCTL_ECANCELED if somebody asked us to stop. Release it. */
tctl_status tctl_repeat_make(tctl_repeater *, const char *folder, const tctl_repeat_request *,
                             tctl_repeat *ret, tctl_error *err);
/* With `remove`, the scratch folder goes too, unless the repeater keeps them. */
void tctl_repeat_release(const tctl_repeater *, tctl_repeat *, bool remove);

/* Where two repetitions part (tctl_verify_pair): NULL in *ret if nowhere. Of stopped ones only the traces count. */
tctl_status tctl_repeat_compare(const tctl_repeater *, const tctl_repeat *a, const tctl_repeat *b,
                                json_t **ret, tctl_error *err);

#endif
