/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probes: the same work again with one circumstance held still. If a program that disagrees with itself agrees
 * under a probe, its results depend on that circumstance. This is the table, and what each probe changes;
 * launcher/deep.h runs them.
 *
 * What a probe shows is what the runs showed, no more: a race may be lucky as often as it likes. So every verdict comes
 * with the number of runs.
 */
#ifndef TCTL_LAUNCHER_PROBE_H
#define TCTL_LAUNCHER_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "config/spec.h"

enum {
    TCTL_PROBE_MEMORY = 1 << 0,
    TCTL_PROBE_HASH = 1 << 1,
    TCTL_PROBE_DIRECTORIES = 1 << 2,
    TCTL_PROBE_ADDRESSES = 1 << 3,
    TCTL_PROBE_SEEDS = 1 << 4,
    TCTL_PROBE_FILE_TIMES = 1 << 5,
    TCTL_PROBE_CLOCK = 1 << 6,
    TCTL_PROBE_ENTROPY = 1 << 7,
    TCTL_PROBE_THREADS = 1 << 8,
    TCTL_PROBE_DENORMALS = 1 << 9,
    TCTL_N_PROBES = 10
};

typedef struct tctl_probe {
    uint32_t bit;
    const char *name;   /* "threads" */
    const char *with;   /* "with one thread at a time" */
    const char *cause;  /* "the order in which threads run" */
    const char *advice; /* what the user can do; one sentence */
} tctl_probe;

/* In the order in which they are tried: what holds still the least comes first, so that the first one under which the
 * program agrees is the most exact name. TCTL_N_PROBES of them. */
const tctl_probe *tctl_probe_at(uint32_t i);
const tctl_probe *tctl_probe_of(uint32_t bit);

/* Which are not held still already by the spec's own envelope, and can be here. */
uint32_t tctl_probes_open(const tctl_spec *);

/* What is different for an attempt, besides its spec. */
typedef struct tctl_circumstances {
    const char *const *variables; /* "NAME=value", NULL-ended */
    bool library;                 /* preload libtrainctl-probe.so */
    bool one_cpu;
} tctl_circumstances;

/* A copy of the spec, and of what was asked for, under the probes of `bits`. `fill` (0-255): the byte that
 * TCTL_PROBE_MEMORY puts into fresh memory. All from the arena; the copy borrows from the original. */
tctl_status tctl_probe_apply(tctl_arena *, uint32_t bits, unsigned fill, const tctl_spec *,
                             const tctl_spec_request *, tctl_spec *ret, tctl_spec_request *ret_asked,
                             tctl_circumstances *ret_changed, tctl_error *err);

#endif
