/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer over flat memory. Ranges are cut once: no range crosses a parameter, frozen parameters have none.
 * Updates are elementwise by contract, so which thread takes a range cannot show.
 */
#include "plugins/native/trainer.h"

enum { RANGE = 16384 }; /* elements: 64 KiB of each array */

static uint64_t cut(const tctl_parameter *p, uint32_t number, update_range *to)
{
    if (p->flags & (TCTL_PARAMETER_FROZEN | TCTL_PARAMETER_BUFFER))
        return 0;
    uint64_t n = (p->count + RANGE - 1) / RANGE;
    for (uint64_t i = 0; to && i < n; i++) {
        uint64_t rest = p->count - i * RANGE;
        to[i] = (update_range){number, p->offset + i * RANGE, rest < RANGE ? rest : RANGE};
    }
    return n;
}

tctl_status tctl_native_plan_update(trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    const tctl_network_memory *m = t->memory;
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_parameters; i++)
        n += cut(&m->parameters[i], i, NULL);
    t->ranges = o->memory->allocate(o->host, (size_t)n * sizeof *t->ranges + 1);
    t->measured = o->memory->allocate(o->host, m->n_parameters * sizeof *t->measured + 1);
    if (!t->ranges || !t->measured)
        return tctl_fail_memory(err, (size_t)n * sizeof *t->ranges);
    for (uint32_t i = 0; i < m->n_parameters; i++)
        t->n_ranges += cut(&m->parameters[i], i, t->ranges + t->n_ranges);
    for (uint32_t k = 0; k < t->optimizer->n_slots; k++) {
        t->view.slot[k] = o->memory->allocate(o->host, (size_t)m->n_elements * sizeof(float));
        if (!t->view.slot[k])
            return tctl_fail_memory(err, (size_t)m->n_elements * sizeof(float));
    }
    return TCTL_OK;
}

static tctl_update describe(const trainer *t, uint32_t parameter, uint64_t offset, uint64_t n)
{
    tctl_update u = {.struct_size = sizeof u,
                     .parameter = &t->memory->parameters[parameter],
                     .n = n,
                     .param = t->memory->param + offset,
                     .grad = t->memory->grad + offset,
                     .lr_factor = t->lr_factor,
                     .step = t->view.updates + 1,
                     .measured = t->measured[parameter]};
    for (uint32_t k = 0; k < t->optimizer->n_slots; k++)
        u.slot[k] = t->view.slot[k] + offset;
    return u;
}

static void update_range_of(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const trainer *t = arg;
    const update_range *r = &t->ranges[chunk];
    const tctl_update u = describe(t, r->parameter, r->offset, r->n);
    t->optimizer->update(t->options->optimizer->stage, &u);
}

/* A power of two divided out: exact, but for results below the smallest normal number. */
static void unscale_range(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const trainer *t = arg;
    const update_range *r = &t->ranges[chunk];
    float *g = t->memory->grad + r->offset, factor = (float)(1 / t->view.loss_scale);
    for (uint64_t i = 0; i < r->n; i++)
        g[i] *= factor;
}

static void measure_parameter(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const trainer *t = arg;
    const tctl_parameter *p = &t->memory->parameters[chunk];
    if (p->flags & (TCTL_PARAMETER_FROZEN | TCTL_PARAMETER_BUFFER))
        return;
    const tctl_update u = describe(t, (uint32_t)chunk, p->offset, p->count);
    t->measured[chunk] = t->optimizer->measure(t->options->optimizer->stage, &u);
}

void tctl_native_update(trainer *t)
{
    if (t->view.loss_scale != 1)
        tctl_pool_run(t->pool, t->n_ranges, unscale_range, t);
    t->lr_factor = t->schedule->factor(t->options->schedule->stage, &t->view.position);
    if (TCTL_HAS(tctl_optimizer, t->optimizer->struct_size, measure) && t->optimizer->measure) {
        for (uint32_t i = 0; i < t->memory->n_parameters; i++)
            t->measured[i] = 0;
        tctl_pool_run(t->pool, t->memory->n_parameters, measure_parameter, t);
    }
    tctl_pool_run(t->pool, t->n_ranges, update_range_of, t);
}
