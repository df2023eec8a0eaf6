/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stage alone, outside a spec: for `trainctl plugins test` and for tests.
 *
 * Its options come from "name=value" texts, read by the same reader as a spec. It has services without files: no
 * artifacts, metrics or trace.
 */
#ifndef TCTL_HOST_SINGLE_H
#define TCTL_HOST_SINGLE_H

#include "config/options.h"
#include "host/plugins.h"
#include "host/services.h"
#include "host/stage.h"

typedef struct tctl_single_request {
    tctl_plugins *plugins;
    const char *use, *folder; /* as in tctl_plugins_load; relative paths of options start in `folder` too */
    const char *const *set;   /* "name=value", NULL-ended; the last of a name counts; NULL: none */
    const char *override;     /* one more, which wins; NULL: none */
    uint64_t seed;
    uint32_t threads;         /* of the parallel service; 0 counts as 1 */
    uint64_t fail_allocation; /* number of the host allocation that fails; 0: none */
} tctl_single_request;

typedef struct tctl_single {
    tctl_arena *arena;
    tctl_diags diags;
    tctl_use *use;
    tctl_pool *pool;
    tctl_services *services;
    tctl_stages *stages;
} tctl_single;

/* Reads the options; the stage is not made yet. TCTL_ESPEC with all that is wrong in ret->diags and the first of it in
 * `err`. Close it in any case. */
tctl_status tctl_single_read(const tctl_single_request *, tctl_single *ret, tctl_error *err);
/* Reads the options and makes the stage. */
tctl_status tctl_single_open(const tctl_single_request *, tctl_single *ret, tctl_error *err);
void tctl_single_close(tctl_single *);

#endif
