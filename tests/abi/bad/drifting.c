/* SPDX-License-Identifier: Apache-2.0 */
/* A stage that lets the clock into one element of one gradient, in the third step. */
#include <string.h>
#include <time.h>

#include "common.h"
#include "trainctl/ext/hooks.h"

static tctl_status gradients_ready(tctl_stage *stage, tctl_training *t, int32_t *action, tctl_error *err)
{
    (void)stage;
    (void)action;
    (void)err;
    struct timespec now;
    uint32_t bits;
    if (t->position.step != 2)
        return TCTL_OK;
    clock_gettime(CLOCK_REALTIME, &now);
    memcpy(&bits, &t->grad[5], sizeof bits);
    bits = (bits & 0xffff0000u) | ((uint32_t)now.tv_nsec & 0xffff);
    memcpy(&t->grad[5], &bits, sizeof bits);
    return TCTL_OK;
}

static const tctl_hooks hooks = {.struct_size = sizeof(tctl_hooks), .gradients_ready = gradients_ready};
static const tctl_extension extensions[] = {{TCTL_HOOKS_ID, &hooks}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

COMMON_PLUGIN("drifting");
