/* SPDX-License-Identifier: Apache-2.0 */
/* What the files host/services*.c share. */
#ifndef TCTL_HOST_SERVICES_PRIVATE_H
#define TCTL_HOST_SERVICES_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "host/services.h"
#include "manifest/trace.h"

struct tctl_services {
    tctl_services_request request;
    tctl_arena *arena; /* under `lock` */
    pthread_mutex_t lock;

    tctl_parallel parallel; /* the one table that is not constant: it has n_threads */

    atomic_uint_least64_t bytes, peak_bytes, n_blocks, n_calls, fail_at;
    atomic_uint_least64_t last_progress; /* nanoseconds of the monotonic clock */

    const char **artifacts; /* names begun so far, under `lock` */
    uint32_t n_artifacts, artifacts_room;
    atomic_uint_least32_t n_partial; /* numbers the files in `partial` */

    int metrics_fd;
    tctl_trace_file *trace; /* [step] */
    uint64_t trace_step;    /* the last one recorded */
    bool closed;
};

static inline const tctl_caller *tctl_caller_of(const tctl_host *host)
{
    return (const tctl_caller *)host->impl;
}

extern const tctl_artifacts tctl_artifact_service;
extern const tctl_metrics tctl_metrics_service;
extern const tctl_trace tctl_trace_service;

#endif
