/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A learning rate that falls in steps: the factor is gamma to the power of floor(t / every).
 *
 * The power is a product of whole factors in double, by squaring from the lowest bit: no libm, same bits anywhere.
 */
#include <stdlib.h>

#include "trainctl/ext/schedule.h"

struct tctl_stage {
    uint64_t every;
    int in_epochs;
    double gamma;
};

static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

static double factor(tctl_stage *s, const tctl_position *at)
{
    uint64_t t = s->in_epochs ? at->step / at->steps_per_epoch : at->step;
    return power(s->gamma, t / s->every);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->every = (uint64_t)host->cfg_int(config, "every");
    s->in_epochs = host->cfg_text(config, "every")[0] == 'e';
    s->gamma = host->cfg_real(config, "gamma");
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const char *const units[] = {"steps", "epochs", NULL};

static const tctl_option options[] = {
    {"every", TCTL_COUNT, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC, NULL, 1, 1000000000, 0, 0, units, NULL,
     "how long the rate stays before it falls", "0.1.0"},
    {"gamma", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.1", 0, 0, 0, 1, NULL, NULL,
     "what the rate is multiplied by each time", "0.1.0"},
};

static const tctl_schedule schedule = {.struct_size = sizeof schedule, .factor = factor};

static const tctl_extension extensions[] = {{TCTL_SCHEDULE_ID, &schedule}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    .name = "step",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "learning rate that is multiplied by gamma every so often",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
