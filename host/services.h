/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services of trainctl/host/ for the stages of one process: random, math, log, memory, parallel, artifact,
 * metrics, trace, cancel, model.
 *
 * One tctl_services per run, one tctl_caller per stage: the host that a stage was given leads to its caller, and the
 * caller to the services. What the request leaves out (no output folder, no trace) is NULL to the stages, as the
 * headers say. Nothing here is global.
 */
#ifndef TCTL_HOST_SERVICES_IMPL_H
#define TCTL_HOST_SERVICES_IMPL_H

#include <signal.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/pool.h"
#include "trainctl/host/services.h"

typedef struct tctl_services tctl_services;

/* What is wanted of a trace beyond the spec. All zero: nothing. */
typedef struct tctl_trace_wish {
    uint64_t every; /* records of every so many steps; 0: those that the spec has */
    bool stops, dumps;
    uint64_t stop;      /* if so: the step behind whose record the run ends */
    uint64_t dump;      /* if so: the step whose tensors are written */
    const char *folder; /* into which: <folder>/dump-<step>/<field>.npy; exists */
} tctl_trace_wish;

typedef struct tctl_services_request {
    uint64_t seed;
    tctl_pool *pool;     /* borrowed; NULL: `parallel` does its chunks one after the other */
    const char *out;     /* folder of artifacts; NULL: no artifact service */
    const char *partial; /* folder for files that are not whole yet, on the same file system as `out` */
    const char *metrics; /* file to append to; NULL: no metrics service */
    const char *trace;   /* file to create; NULL: no trace service */
    tctl_trace_wish wish;
    int log_fd;                    /* -1: log lines go nowhere */
    int events_fd;                 /* -1: nobody watches */
    int32_t log_level;             /* the least that is shown, TCTL_LOG_… */
    volatile sig_atomic_t *cancel; /* not 0 once somebody asked to stop; NULL: nobody can */
} tctl_services_request;

tctl_status tctl_services_create(const tctl_services_request *, tctl_services **ret, tctl_error *err);
/* Makes metrics and trace durable. TCTL_ENOSPC, TCTL_EIO. Later calls of the stages fail. */
tctl_status tctl_services_close(tctl_services *, tctl_error *err);
void tctl_services_destroy(tctl_services *); /* NULL is fine */

/* Who calls: `impl` of a tctl_host. */
typedef struct tctl_caller {
    tctl_services *services;
    const char *name;    /* of the stage in the spec: shown in the log */
    const char *streams; /* put in front of the names of random streams; "": nothing */
    const void *owner;   /* free for whoever made the host */
} tctl_caller;

/* tctl_host.service. */
const void *tctl_services_find(const tctl_host *, const char *id);

/* ---- for reports and the conformance suite ----------------------------------------------------------- */

typedef struct tctl_memory_use {
    uint64_t bytes, peak_bytes, n_blocks; /* held now, most ever, blocks held now */
    uint64_t n_calls;                     /* of `allocate` so far */
} tctl_memory_use;
tctl_memory_use tctl_services_memory(const tctl_services *);
/* Makes the allocation with that number (counted from 1, from now on) fail; 0: none. */
void tctl_services_fail_allocation(tctl_services *, uint64_t number);

#endif
