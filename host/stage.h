/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages of a process: made from the `use:` entries of a spec, destroyed in reverse.
 *
 * A stage that another one names in a TCTL_PLUGIN option (an optimizer in a trainer) is made before it. Each stage
 * has a tctl_host of its own. Around `create` the surroundings are compared as around dlopen. [main]
 */
#ifndef TCTL_HOST_STAGE_H
#define TCTL_HOST_STAGE_H

#include "base/error.h"
#include "config/options.h"
#include "host/services.h"

typedef struct tctl_stages tctl_stages;

typedef struct tctl_stages_request {
    tctl_services *services; /* borrowed, outlives the stages */
    /* Called before code of a plugin runs: `phase` is "create" or "destroy", `who` such as
     * "data.train (plugin 'idx')". NULL: nobody. */
    void (*watch)(void *arg, const char *phase, const char *who);
    void *watch_arg;
} tctl_stages_request;

tctl_status tctl_stages_begin(const tctl_stages_request *, tctl_stages **ret, tctl_error *err);

/*
 * Makes the stage of `use` (and before it those of its options) and fills use->part. `streams` stands in front of
 * the names of its random streams: NULL for its own name, "" for a trainer. Errors are those of `create`, with the
 * position in the spec and a note that names the stage; TCTL_EPLUGIN if the plugin broke its contract.
 */
tctl_status tctl_stages_add(tctl_stages *, tctl_use *use, const char *streams, tctl_error *err);

/* Destroys all, last first; NULL is fine. */
void tctl_stages_destroy(tctl_stages *);

#endif
