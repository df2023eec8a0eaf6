/* SPDX-License-Identifier: Apache-2.0 */
/* A stage with hooks whose state leaves out one of the two numbers that it remembers. */
#include <stdlib.h>

#include "trainctl/ext/hooks.h"
#include "trainctl/ext/state.h"
#include "trainctl/host/services.h"

struct tctl_stage {
    const tctl_host *host;
    const tctl_memory *memory;
    uint64_t steps, sum;
};

static tctl_status gradients_ready(tctl_stage *stage, tctl_training *training, int32_t *action,
                                   tctl_error *err)
{
    (void)action, (void)err;
    stage->steps++;
    stage->sum += stage->steps;
    training->grad[0] = (float)stage->sum;
    return TCTL_OK;
}

static tctl_status save(tctl_stage *stage, const tctl_writer *to, tctl_error *err)
{
    return to->write(to, &stage->steps, sizeof stage->steps, err); /* and where is the sum? */
}

static tctl_status load(tctl_stage *stage, const tctl_reader *from, tctl_error *err)
{
    return from->read(from, &stage->steps, sizeof stage->steps, err);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    tctl_stage *stage = memory->allocate(host, sizeof *stage);
    (void)config;
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->host = host;
    stage->memory = memory;
    *ret = stage;
    return TCTL_OK;
}

static void destroy(tctl_stage *stage)
{
    if (stage)
        stage->memory->release(stage->host, stage);
}

static const tctl_hooks hooks = {.struct_size = sizeof hooks, .gradients_ready = gradients_ready};
static const tctl_state state = {.struct_size = sizeof state, .save = save, .load = load};
static const tctl_extension extensions[] = {{TCTL_HOOKS_ID, &hooks}, {TCTL_STATE_ID, &state}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_RESUME,
    .flags = TCTL_PLUGIN_REMEMBERS,
    .name = "forgetful",
    .version = "1.0.0",
    .license = "Apache-2.0",
    .summary = "a plugin for tests",
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
