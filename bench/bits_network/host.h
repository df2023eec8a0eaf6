/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plugins are given here: a host without files. Options come from words, services are those of trainctl/host/ that
 * decide bits, and whatever is recorded (trace, metrics, artifacts) becomes a line on standard output:
 *
 *     RECIPE step N FIELD DIGEST        RECIPE epoch N METRIC BITS        RECIPE file NAME DIGEST
 */
#ifndef TCTL_BENCH_BITS_HOST_H
#define TCTL_BENCH_BITS_HOST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/pool.h"
#include "trainctl/host/services.h"

/* One run of one recipe. */
typedef struct bits_session {
    const char *recipe; /* its name */
    uint64_t seed;
    tctl_pool *pool; /* of `parallel` */
    tctl_parallel parallel;
    tctl_arena *arena; /* of all stages */
    const tctl_trace_field *fields;
    uint32_t n_fields;
    struct bits_stage *stages; /* made, last first */
} bits_session;

tctl_status bits_session_begin(bits_session *, const char *recipe, uint32_t threads, tctl_error *);
void bits_session_end(bits_session *); /* destroys the stages, last first */

/* The stage of "NAME option=value ...". Its random streams begin with `streams`. The parts are those that the options
 * `optimizer` and `schedule` name; NULL: none. */
tctl_status bits_part_make(bits_session *, const char *text, const char *streams, const tctl_part *optimizer,
                           const tctl_part *schedule, tctl_part *ret, tctl_error *);

/* plugins.c: all that are linked in. */
extern const tctl_plugin *const bits_plugins[];
extern const uint32_t bits_n_plugins;

/* digest.c: XXH3 of 128 bits, as the trace has it. */
tctl_trace_value bits_digest(const void *data, size_t size_bytes);

/* services.c */
const void *bits_service(const tctl_host *, const char *id);

/* Whose host it is. */
typedef struct bits_stage {
    tctl_host host;
    bits_session *session;
    const char *streams;
    tctl_part part;
    struct bits_stage *before;
} bits_stage;

static inline const bits_stage *bits_stage_of(const tctl_host *host)
{
    return (const bits_stage *)host->impl;
}

#endif
