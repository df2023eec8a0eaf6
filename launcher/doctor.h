/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `trainctl doctor` looks at. A check looks at one knob, says what it found, which contract that leaves at
 * best, and what would help. Checks change nothing but a short-lived file in the run store's folder.
 */
#ifndef TCTL_LAUNCHER_DOCTOR_H
#define TCTL_LAUNCHER_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "config/spec.h"
#include "host/plugins.h"

typedef struct tctl_finding {
    const char *check; /* "cpu" */
    const char *what;  /* what was found, one line */
    const char *fix;   /* what would help; NULL: nothing to do */
    int32_t best;      /* TCTL_CONTRACT_…: the best contract that this leaves */
    bool warning;      /* leaves the contract alone, but somebody should know */
} tctl_finding;

typedef struct tctl_doctor {
    tctl_arena *arena;
    const char *folder;        /* of the spec, or the current one; absolute */
    const char *program;       /* path of the running program */
    const tctl_spec *spec;     /* NULL: none */
    const json_t *environment; /* of manifest/environment.h */
    size_t n;
    tctl_finding findings[192];
} tctl_doctor;

/* Adds a finding; the texts are formatted into the arena. `fix` may be NULL. */
void tctl_doctor_add(tctl_doctor *, const char *check, int32_t best, bool warning, const char *fix,
                     const char *fmt, ...) TCTL_PRINTF(6, 7);

/* doctor_machine.c: cpu, floating point, preloads, addresses, memory, gpu, cuda, clock. */
void tctl_doctor_machine(tctl_doctor *);
/* doctor_files.c: store, cache of digests, code, plugins. */
void tctl_doctor_files(tctl_doctor *);
/* doctor_envelope.c: the user's variables, the envelope's libraries, and with a spec the knobs that it turns off. */
void tctl_doctor_envelope(tctl_doctor *);
/* doctor_program.c: the program that a spec's command begins with, and the Python that it may be. */
void tctl_doctor_program(tctl_doctor *);
/* The spec: what its kind of child can keep. */
void tctl_doctor_spec(tctl_doctor *);

#endif
