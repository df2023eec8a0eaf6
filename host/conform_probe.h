/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes of the conformance suite: how a stage of each kind is put to work, so that two trials can be compared.
 *
 * A trial is one stage and the digests of what it did, item by item (a sample, a step, a position). How it is done
 * (order, threads, cut where) must not show in the digests.
 */
#ifndef TCTL_HOST_CONFORM_PROBE_H
#define TCTL_HOST_CONFORM_PROBE_H

#include <stdbool.h>

#include "host/conform.h"
#include "host/single.h"
#include "trainctl/host/services.h"

#define TCTL_TRIAL_ITEMS 256
#define TCTL_TRIAL_SEED  1029u

typedef struct tctl_trial {
    const tctl_conform_request *request;
    const char *override;     /* "option=value", or NULL */
    bool reversed;            /* items in descending order, where items are independent */
    uint32_t threads;         /* 0 counts as 1 */
    bool resume;              /* the state is saved in the middle and loaded into a new stage */
    bool twice;               /* each item again with the same stage, after all were done once */
    uint8_t fill;             /* what output memory is filled with before the stage writes it */
    uint64_t fail_allocation; /* 0: none */

    tctl_single single;
    bool open;
    const void *vtable; /* of the probe's extension */
    const char *unit;   /* "sample" */
    uint32_t n;
    tctl_trace_value digests[TCTL_TRIAL_ITEMS];
    tctl_memory_use memory; /* after the stage was destroyed */
} tctl_trial;

typedef struct tctl_probe {
    const char *extension;
    tctl_status (*run)(tctl_trial *, tctl_error *err); /* the stage is open; fills unit, n and digests */
} tctl_probe;

/* The probe for what the plugin provides; NULL if it can only be made and destroyed. */
const tctl_probe *tctl_probe_for(const tctl_plugin *);

/* Makes the stage, works, destroys it; destroys it after a failure too. `probe` NULL: no work. */
tctl_status tctl_trial_run(tctl_trial *, const tctl_probe *probe, tctl_error *err);

/* For probes: state/1 into a new stage if this trial resumes. */
tctl_status tctl_trial_resume(tctl_trial *, tctl_error *err);
/* Runs fn for the items [0,n) in the trial's order, by its threads, with the resumption in the middle. The failure of
 * the lowest item is the one that is told. */
typedef tctl_status tctl_item_fn(tctl_trial *, uint32_t item, void *arg, tctl_error *err);
tctl_status tctl_trial_items(tctl_trial *, uint32_t n, tctl_item_fn *fn, void *arg, tctl_error *err);

/* Bytes that are a function of (stream, item) only. */
void tctl_trial_bytes(const char *stream, uint32_t item, void *out, size_t size);
/* n floats in [-1, 1), likewise. */
void tctl_trial_floats(const char *stream, uint32_t item, float *out, size_t n);

extern const tctl_probe tctl_probe_source, tctl_probe_transform;                     /* conform_data.c */
extern const tctl_probe tctl_probe_optimizer, tctl_probe_schedule, tctl_probe_hooks; /* conform_train.c */

#endif
