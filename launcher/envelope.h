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

typedef struct tctl_envelope_request {
    const char *run, *out;      /* id; absolute path of the output folder */
    uint64_t seed;              /* root seed */
    uint32_t threads;           /* of the resources */
    bool knobs;                 /* pin what makes libraries deterministic; false for contract `off` */
    const char *const *secrets; /* names of variables that pass and are not recorded; NULL-ended, or NULL */
    const char *const *from;    /* the environment to choose from, as environ(7) */
} tctl_envelope_request;

typedef struct tctl_envelope {
    const char *const *variables; /* "NAME=value", sorted, NULL-ended */
    bool no_aslr;                 /* address space randomisation can be switched off here */
    json_t *record; /* for the manifest: {"variables":{name:value},"names":[…],"secrets":[…],"replaced":[…],
                     * "umask","aslr","core_limit"}; what identifies the user is in "names" only */
} tctl_envelope;

tctl_status tctl_envelope_make(tctl_arena *, const tctl_envelope_request *, tctl_envelope *ret,
                               tctl_error *err);
void tctl_envelope_release(tctl_envelope *);

/* Between fork and exec: umask, ASLR, core limit, signal dispositions. Async-signal-safe. */
void tctl_envelope_enter(const tctl_envelope *);

#endif
