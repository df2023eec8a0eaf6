/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A constant learning rate, reached along a straight line if there is a warm-up.
 *
 * With a warm-up of w steps the factor of step t (from 0) is (t + 1) / (w + 1) while t < w, and 1 from then on.
 */
#include <stdlib.h>

#include "trainctl/ext/schedule.h"

struct tctl_stage {
    uint64_t warmup;
    int in_epochs;
};

static double factor(tctl_stage *s, const tctl_position *at)
{
    double steps = (double)s->warmup * (s->in_epochs ? (double)at->steps_per_epoch : 1.0),
           t = (double)at->step;
    return t < steps ? (t + 1) / (steps + 1) : 1;
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->warmup = (uint64_t)host->cfg_int(config, "warmup");
    s->in_epochs = host->cfg_text(config, "warmup")[0] == 'e';
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const char *const units[] = {"steps", "epochs", NULL};

static const tctl_option options[] = {
    {"warmup", TCTL_COUNT, TCTL_OPT_SEMANTIC, "0 steps", 0, 1000000000, 0, 0, units, NULL,
     "length of the straight line from 0 to the full rate", "0.1.0"},
};

static const tctl_schedule schedule = {.struct_size = sizeof schedule, .factor = factor};

static const tctl_extension extensions[] = {{TCTL_SCHEDULE_ID, &schedule}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    .name = "constant",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "constant learning rate, with or without a warm-up",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
