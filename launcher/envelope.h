/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The envelope: what a child of ours finds around it.
 *
 * Its environment is made from an allow-list, never inherited: variables.h has the table and docs/determinism.md the
 * reasons. A value of the user's that may keep results from repeating is refused, not replaced behind his back.
 */
#ifndef TCTL_LAUNCHER_ENVELOPE_H
#define TCTL_LAUNCHER_ENVELOPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "base/error.h"
#include "config/spec.h"
#include "launcher/variables.h"

typedef struct tctl_envelope_request {
    const char *run, *out;  /* id; absolute path of the output folder */
    const char *folder;     /* absolute working directory of the child; NULL: not told */
    const char *report;     /* absolute path of the folder that the envelope's libraries write into */
    const char *trace;      /* absolute path of the trace that a command's child makes; NULL: none */
    const char *trace_fine; /* "A-B", steps recorded in more detail; NULL: none */
    const char *trace_dump; /* a step whose tensors are written; NULL: none */
    const char *trace_stop; /* the step after which the child ends; NULL: none */
    const char *interposer; /* absolute path of the library to preload; NULL: none */
    const char *python;     /* absolute folder of the Python shim; NULL: none */
    const tctl_determinism *determinism;
    uint64_t seed;              /* root seed */
    uint32_t threads;           /* of the resources */
    const char *const *secrets; /* names of variables that pass and are not recorded; NULL-ended, or NULL */
    const char *const *allow;   /* names that pass whatever they hold; NULL-ended, or NULL */
    const char *const *from;    /* the environment to choose from, as environ(7) */
    /* The record of an earlier envelope, to make the same one again: what was kept or passed by value then is taken
     * from there, and nothing is refused. NULL: a first one. */
    const json_t *recorded;
    /* Of a probe (launcher/probe.h), never of a run that is recorded: */
    const char *probe; /* absolute path of a library to preload as well; NULL: none */
    const char *const
        *variables; /* "NAME=value", in place of what the name would have; NULL-ended, or NULL */
    bool one_cpu;   /* the child and all of its threads share one processor */
} tctl_envelope_request;

typedef struct tctl_envelope {
    const char *const *variables; /* "NAME=value", sorted, NULL-ended */
    const char *const *notes;     /* what the user should know: "OMP_NUM_THREADS=8 …"; NULL-ended */
    bool no_aslr;                 /* address space randomisation can and shall be switched off */
    bool one_cpu;
    struct rlimit stack; /* its soft limit decides where libraries are mapped */
    json_t *record; /* for the manifest: {"variables":{name:value},"names":[…],"secrets":[…],"replaced":[…],
                     * "kept":[…],"allowed":[…],"unpinned":[…],"umask","aslr","core_limit","limits":{name:text},
                     * "interposer": SHA-256 or null,"python": bool}; what identifies the user is in "names" only */
} tctl_envelope;

/* What becomes of a variable of the user's. */
enum {
    TCTL_FATE_OUTSIDE = 0,  /* the child does not see it */
    TCTL_FATE_PASSED = 1,   /* as it is, whatever it holds */
    TCTL_FATE_KEPT = 2,     /* as it is, because results repeat with it */
    TCTL_FATE_REPLACED = 3, /* the child has another value */
    TCTL_FATE_REFUSED = 4   /* no run */
};

/* *ret is the table's entry; NULL: there is none. Of the request only determinism, secrets and allow are read. */
int tctl_envelope_fate(const tctl_envelope_request *, const char *name, size_t length, const char *value,
                       const tctl_variable **ret);

/* TCTL_EDETERMINISM if a variable of the user's is refused: the error names each, with its reason and what to do. Of
 * the request only determinism, secrets, allow and from are read. */
tctl_status tctl_envelope_check(const tctl_envelope_request *, tctl_error *err);

/* TCTL_ESPEC if `unpin` names a variable that is not pinned. */
tctl_status tctl_envelope_check_unpinned(const tctl_determinism *, tctl_error *err);

/* The text of TRAINCTL_KNOBS: "name=value", sorted, separated by blanks; every knob is there. From the arena; NULL if
 * memory is out. */
const char *tctl_envelope_knobs(tctl_arena *, const tctl_determinism *);

/* Fails as tctl_envelope_check does, unless there is a record to follow. */
tctl_status tctl_envelope_make(tctl_arena *, const tctl_envelope_request *, tctl_envelope *ret,
                               tctl_error *err);
void tctl_envelope_release(tctl_envelope *);

/* Between fork and exec: umask, ASLR, limits, signal dispositions. Async-signal-safe. */
void tctl_envelope_enter(const tctl_envelope *);

/* Tries on this process whether ASLR can be switched off, and undoes it. */
bool tctl_envelope_can_drop_aslr(void);

#endif
