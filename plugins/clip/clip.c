/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient clipping by global norm: gradients longer than max_norm, all of them together, are scaled down to it.
 *
 * Pascanu, Mikolov, Bengio, "On the difficulty of training recurrent neural networks", ICML 2013, algorithm 1.
 *
 * The norm is summed in double: leaves of LEAF consecutive elements of one parameter, eight interleaved partial sums
 * each, joined by one binary tree over the leaves in the order of the model. Threads decide who computes a leaf.
 * Frozen parameters do not count. The norm is that of the true gradients, with the loss scale taken out. A norm that
 * is not finite changes nothing: the loss check, or the stage that scales the loss, deals with it. Only a step that
 * will be taken is clipped: a stage that holds (accumulation) stands before this one.
 */
#include <math.h>
#include <stdlib.h>

#include "trainctl/ext/hooks.h"
#include "trainctl/host/services.h"

enum { LEAF = 8192, LANES = 8 };

typedef struct leaf {
    uint64_t offset, n; /* elements of the flat arrays */
} leaf;

struct tctl_stage {
    const tctl_host *host;
    const tctl_memory *memory;
    const tctl_parallel *parallel;
    double max_norm;
    uint64_t n_leaves;
    leaf *leaves;
    double *sums; /* [n_leaves] */
    float *grad;  /* of the step under way */
    float scale;
};

static void sum_leaf(void *arg, uint64_t i, uint32_t thread)
{
    (void)thread;
    const tctl_stage *s = arg;
    const float *g = s->grad + s->leaves[i].offset;
    uint64_t n = s->leaves[i].n, k = 0;
    double lanes[LANES] = {0};
    for (; k + LANES <= n; k += LANES) {
        for (int j = 0; j < LANES; j++)
            lanes[j] += (double)g[k + (uint64_t)j] * (double)g[k + (uint64_t)j];
    }
    for (int j = 0; k < n; k++, j++)
        lanes[j] += (double)g[k] * (double)g[k];
    s->sums[i] =
        ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

static void scale_leaf(void *arg, uint64_t i, uint32_t thread)
{
    (void)thread;
    const tctl_stage *s = arg;
    float *g = s->grad + s->leaves[i].offset;
    for (uint64_t k = 0; k < s->leaves[i].n; k++)
        g[k] *= s->scale;
}

/* Joins neighbours until one is left: a tree whose form depends on n alone. Overwrites the sums. */
static double join(double *sums, uint64_t n)
{
    for (; n > 1; n = (n + 1) / 2) {
        for (uint64_t i = 0; i < n / 2; i++)
            sums[i] = sums[2 * i] + sums[2 * i + 1];
        if (n % 2)
            sums[n / 2] = sums[n - 1];
    }
    return n ? sums[0] : 0;
}

static tctl_status gradients_ready(tctl_stage *s, tctl_training *t, int32_t *action, tctl_error *err)
{
    (void)err;
    if (*action != TCTL_STEP_TAKE)
        return TCTL_OK;
    s->grad = t->grad;
    s->parallel->run(s->host, s->n_leaves, sum_leaf, s);
    double norm = sqrt(join(s->sums, s->n_leaves)) / t->loss_scale;
    if (!isfinite(norm) || norm <= s->max_norm)
        return TCTL_OK;
    s->scale = (float)(s->max_norm / norm);
    s->parallel->run(s->host, s->n_leaves, scale_leaf, s);
    return TCTL_OK;
}

/* The leaves of parameter p, written to `to` if it is not NULL; returns how many. */
static uint64_t cut(const tctl_parameter *p, leaf *to)
{
    if (p->flags & TCTL_PARAMETER_FROZEN)
        return 0;
    uint64_t n = (p->count + LEAF - 1) / LEAF;
    for (uint64_t i = 0; to && i < n; i++) {
        uint64_t rest = p->count - i * LEAF;
        to[i] = (leaf){p->offset + i * LEAF, rest < LEAF ? rest : LEAF};
    }
    return n;
}

static tctl_status run_begin(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    s->n_leaves = 0;
    for (uint32_t i = 0; i < t->n_parameters; i++)
        s->n_leaves += cut(&t->parameters[i], NULL);
    s->memory->release(s->host, s->leaves);
    s->memory->release(s->host, s->sums);
    s->leaves = s->memory->allocate(s->host, (size_t)s->n_leaves * sizeof *s->leaves + 1);
    s->sums = s->memory->allocate(s->host, (size_t)s->n_leaves * sizeof *s->sums + 1);
    if (!s->leaves || !s->sums)
        return s->host->fail(err, TCTL_ENOMEM, "out of memory for the sums of %llu leaves",
                             (unsigned long long)s->n_leaves);
    uint64_t at = 0;
    for (uint32_t i = 0; i < t->n_parameters; i++)
        at += cut(&t->parameters[i], s->leaves + at);
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    if (!s)
        return;
    s->memory->release(s->host, s->leaves);
    s->memory->release(s->host, s->sums);
    free(s);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    const tctl_parallel *parallel = host->service(host, TCTL_PARALLEL_ID);
    if (!memory || !parallel)
        return host->fail(err, TCTL_EUNSUPPORTED, "this host has no service '%s'",
                          memory ? TCTL_PARALLEL_ID : TCTL_MEMORY_ID);
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->host = host;
    s->memory = memory;
    s->parallel = parallel;
    s->max_norm = host->cfg_real(config, "max_norm");
    *ret = s;
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"max_norm", TCTL_REAL, TCTL_OPT_SEMANTIC, "1", 0, 0, 1e-12, 1e12, NULL, NULL,
     "largest length of all gradients together", "0.1.0"},
};

static const tctl_hooks hooks = {
    .struct_size = sizeof hooks, .run_begin = run_begin, .gradients_ready = gradients_ready};

static const tctl_extension extensions[] = {{TCTL_HOOKS_ID, &hooks}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME,
    .name = "clip",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "scales gradients down to a largest global norm",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
