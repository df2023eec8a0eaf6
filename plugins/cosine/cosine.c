/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cosine annealing after a linear warm-up.
 *
 * Of n steps the first w = floor(warmup n) rise: factor (t + 1) / (w + 1). Then, with p = (t - w) / (n - w) in
 * [0, 1), the factor is final + (1 - final) (1 + cos(pi p)) / 2. The cosine is the host's, whose bits are the same
 * on every machine.
 *
 * Loshchilov, Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR 2017, equation 5, one cycle.
 */
#include <stdlib.h>

#include "trainctl/ext/schedule.h"
#include "trainctl/host/math.h"

struct tctl_stage {
    const tctl_math *math;
    double warmup, final;
};

static double factor(tctl_stage *s, const tctl_position *at)
{
    double n = (double)at->n_steps, t = (double)at->step, w = (double)(uint64_t)(s->warmup * n);
    if (t < w)
        return (t + 1) / (w + 1);
    double p = t < n ? (t - w) / (n - w) : 1;
    return s->final + (1 - s->final) * ((1 + s->math->cospi(p)) * 0.5);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    const tctl_math *math = host->service(host, TCTL_MATH_ID);
    if (!math)
        return host->fail(err, TCTL_EUNSUPPORTED, "this host has no service '%s'", TCTL_MATH_ID);
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->math = math;
    s->warmup = host->cfg_real(config, "warmup");
    s->final = host->cfg_real(config, "final");
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const tctl_option options[] = {
    {"warmup", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, 0, 1, NULL, "of the run",
     "share of the steps that rise from 0 to the full rate", "0.1.0"},
    {"final", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, 0, 1, NULL, NULL, "factor that the curve ends at",
     "0.1.0"},
};

static const tctl_schedule schedule = {.struct_size = sizeof schedule, .factor = factor};

static const tctl_extension extensions[] = {{TCTL_SCHEDULE_ID, &schedule}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    .name = "cosine",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "cosine annealing with a linear warm-up",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
