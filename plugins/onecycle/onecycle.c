/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one-cycle schedule: a straight line up to the full rate, then down to almost nothing.
 *
 * Of n steps the first w = floor(warmup n) rise: factor start + (1 - start) t / w. Then, with p = (t - w) / (n - w)
 * in [0, 1), the factor falls from 1 towards `final`, along a straight line or half a cosine. Momentum stays as it
 * is. The cosine is the host's, whose bits are the same on every machine.
 *
 * Smith, Topin, "Super-Convergence: Very Fast Training of Neural Networks Using Large Learning Rates", 2018.
 */
#include <stdlib.h>

#include "trainctl/ext/schedule.h"
#include "trainctl/host/math.h"

struct tctl_stage {
    const tctl_math *math;
    double warmup, start, final;
    int cosine;
};

static double factor(tctl_stage *s, const tctl_position *at)
{
    double n = (double)at->n_steps, t = (double)at->step, w = (double)(uint64_t)(s->warmup * n);
    if (t < w)
        return s->start + (1 - s->start) * (t / w);
    double p = t < n ? (t - w) / (n - w) : 1;
    double height = s->cosine ? (1 + s->math->cospi(p)) * 0.5 : 1 - p;
    return s->final + (1 - s->final) * height;
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
    s->start = host->cfg_real(config, "start");
    s->final = host->cfg_real(config, "final");
    s->cosine = strcmp(host->cfg_text(config, "decay"), "cosine") == 0;
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const char *const decays[] = {"cosine", "linear", NULL};

static const tctl_option options[] = {
    {"warmup", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.3", 0, 0, 0, 1, NULL, "of the run",
     "share of the steps that rise to the full rate", "0.1.0"},
    {"start", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.04", 0, 0, 0, 1, NULL, NULL, "factor of the first step",
     "0.1.0"},
    {"final", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.0001", 0, 0, 0, 1, NULL, NULL, "factor that the curve ends at",
     "0.1.0"},
    {"decay", TCTL_ENUM, TCTL_OPT_SEMANTIC, "cosine", 0, 0, 0, 0, decays, NULL, "form of the way down",
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
    .name = "onecycle",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "one cycle: linear warm-up, then cosine or linear decay",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
