/* SPDX-License-Identifier: Apache-2.0 */
/* request.json, as host/worker.h describes it. */
#ifndef TCTL_HOST_WORKER_REQUEST_H
#define TCTL_HOST_WORKER_REQUEST_H

#include "base/arena.h"
#include "config/spec.h"
#include "host/services.h"
#include "manifest/digest.h"

typedef struct tctl_worker_request {
    tctl_spec_request spec; /* text_path and folder are set */
    tctl_sha256 recipe_digest;
    const char *out, *partial, *metrics, *trace; /* absolute paths */
    tctl_trace_wish wish;
} tctl_worker_request;

/* Reads RUN/request.json. TCTL_EFORMAT names the member that is wrong; the result lives in the arena. */
tctl_status tctl_worker_request_read(tctl_arena *, const char *run, tctl_worker_request *ret,
                                     tctl_error *err);

#endif
