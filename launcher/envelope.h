/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The envelope: what a child of ours finds around it.
 *
 * Its environment is made from an allow-list, never inherited: pinned variables have one value whatever the user's
 * shell says, some of the user's pass, all others stay outside. docs/cli.md lists them.
 */
#ifndef TCTL_LAUNCHER_ENVELOPE_H
#define TCTL_LAUNCHER_ENVELOPE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "config/spec.h"

typedef struct tctl_envelope_request {
    const char *run, *out;  /* id; absolute path of the output folder */
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
    const char *const *from;    /* the environment to choose from, as environ(7) */
} tctl_envelope_request;

typedef struct tctl_envelope {
    const char *const *variables; /* "NAME=value", sorted, NULL-ended */
    bool no_aslr;                 /* address space randomisation can be switched off here */
    json_t *record; /* for the manifest: {"variables":{name:value},"names":[…],"secrets":[…],"replaced":[…],
                     * "umask","aslr","core_limit"}; what identifies the user is in "names" only */
} tctl_envelope;

/* The text of TRAINCTL_KNOBS: "name=value", sorted, separated by blanks; every knob is there. From the arena; NULL if
 * memory is out. */
const char *tctl_envelope_knobs(tctl_arena *, const tctl_determinism *);

tctl_status tctl_envelope_make(tctl_arena *, const tctl_envelope_request *, tctl_envelope *ret,
                               tctl_error *err);
void tctl_envelope_release(tctl_envelope *);

/* Between fork and exec: umask, ASLR, core limit, signal dispositions. Async-signal-safe. */
void tctl_envelope_enter(const tctl_envelope *);

#endif
