/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `verify --deep`: whether a program disagrees with itself or only with its record, on what circumstance that depends
 * (launcher/probe.h), and at which step, tensor and element it begins.
 *
 * A question costs repetitions, and the order of questions saves them: the work is done twice as the recipe says. If the
 * two agree, nothing random is at work, and what differs from the record is what changed since. If they do not, each
 * probe holds one circumstance still; the first under which all repetitions agree names the cause. If none does
 * alone, all together are tried, and then all but one, for programs that depend on several. Where there is a trace,
 * repetitions end behind the step at which the difference shows.
 */
#ifndef TCTL_LAUNCHER_DEEP_H
#define TCTL_LAUNCHER_DEEP_H

#include "launcher/repeat.h"

typedef struct tctl_deep {
    tctl_repeater repeater;
    uint32_t runs;    /* that must agree under a probe at least, 2 or more; more if runs agree by chance */
    tctl_view *view;  /* for the launcher's own lines */
    tctl_view *quiet; /* for children */
    json_t *probes;   /* out: [{"probe","with","runs","results","agrees","failure"}], in the order made */
    uint32_t n_plain,
        n_alike;      /* out: runs without a probe, and how many of them gave the most frequent result */
    const char *self; /* out: "agrees", "disagrees"; NULL while not known */
    bool has_horizon;
    uint64_t horizon; /* if so, the step behind which repetitions may end */
} tctl_deep;

/*
 * `first` is the work done again as the recipe says; v (of the repeater) has the verdict on it against the record. Does it
 * a second time and, if something differs, all the rest. Refines v's verdict, reason and first_divergence:
 * first_divergence gets the members "self" and "circumstances" (names of probes, [] if not known) and "advice". TCTL_ECANCELED if
 * somebody stopped us.
 */
tctl_status tctl_deep_look(tctl_deep *, const tctl_repeat *first, tctl_error *err);

/* ---- for tctl_deep_look: deep_probe.c and deep_bisect.c ------------------------------------------------- */

/* Which circumstances the results depend on: bits of probes into *ret, 0 if that stays unknown. */
tctl_status tctl_deep_probe(tctl_deep *, uint32_t *ret, tctl_error *err);
/* Whether that many runs agree by chance seldom enough, given how often runs without a probe agreed. */
bool tctl_deep_is_believable(const tctl_deep *);
/* Whether results follow what fresh memory holds. */
tctl_status tctl_deep_probe_memory(tctl_deep *, bool *ret, tctl_error *err);

/* Repeats with a finer trace, to the step where `verdict` (on two repetitions) says that they part at the latest, until
 * step, field and element are known, or luck runs out: then it stays as it is. */
tctl_status tctl_deep_bisect(tctl_deep *, json_t *verdict, tctl_error *err);

#endif
