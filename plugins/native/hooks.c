/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that take part in a step: finding them, and calling their moments in the order of the spec. */
#include "plugins/native/trainer.h"
#include "trainctl/ext/graph.h"

typedef tctl_status moment_fn(tctl_stage *, tctl_training *, tctl_error *);

static const char *const moment_names[] = {"run_begin", "epoch_begin", "batch_ready", "loss_ready",
                                           "step_done", "epoch_end",   "run_end"};

/* A member of a struct that may be older, and so shorter, than ours. */
#define MEMBER(hooks, name) (TCTL_HAS(tctl_hooks, (hooks)->struct_size, name) ? (hooks)->name : NULL)

static moment_fn *moment_of(const tctl_hooks *h, int moment)
{
    switch (moment) {
    case RUN_BEGIN:
        return MEMBER(h, run_begin);
    case EPOCH_BEGIN:
        return MEMBER(h, epoch_begin);
    case BATCH_READY:
        return MEMBER(h, batch_ready);
    case LOSS_READY:
        return MEMBER(h, loss_ready);
    case STEP_DONE:
        return MEMBER(h, step_done);
    case EPOCH_END:
        return MEMBER(h, epoch_end);
    default:
        return MEMBER(h, run_end);
    }
}

tctl_status tctl_native_find_hooks(trainer *t, tctl_error *err)
{
    const tctl_job *job = t->job;
    const tctl_stage *o = t->options;
    t->hooked = o->memory->allocate(o->host, job->n_stages * sizeof *t->hooked + 1);
    if (!t->hooked)
        return tctl_fail_memory(err, job->n_stages * sizeof *t->hooked);
    for (uint32_t i = 0; i < job->n_stages; i++) {
        const tctl_part *stage = &job->stages[i];
        const tctl_hooks *hooks = tctl_plugin_extension(stage->plugin, TCTL_HOOKS_ID);
        if (hooks)
            t->hooked[t->n_hooked++] = (hooked){hooks, stage->stage, stage->name};
        else if (!tctl_plugin_extension(stage->plugin, TCTL_GRAPH_ID))
            return tctl_fail(err, TCTL_EUNSUPPORTED,
                             "stage '%s' cannot serve the native trainer: it has neither '%s' nor '%s'",
                             stage->name, TCTL_HOOKS_ID, TCTL_GRAPH_ID);
    }
    return TCTL_OK;
}

tctl_status tctl_native_moment(trainer *t, int moment, tctl_error *err)
{
    for (uint32_t i = 0; i < t->n_hooked; i++) {
        moment_fn *call = moment_of(t->hooked[i].hooks, moment);
        tctl_status st = call ? call(t->hooked[i].stage, &t->view, err) : TCTL_OK;
        if (st) {
            tctl_note(err, "in %s of stage '%s'", moment_names[moment], t->hooked[i].name);
            return st;
        }
    }
    return TCTL_OK;
}

tctl_status tctl_native_gradients_ready(trainer *t, int32_t *action, tctl_error *err)
{
    for (uint32_t i = 0; i < t->n_hooked; i++) {
        const hooked *h = &t->hooked[i];
        if (!MEMBER(h->hooks, gradients_ready))
            continue;
        int32_t says = *action;
        tctl_status st = h->hooks->gradients_ready(h->stage, &t->view, &says, err);
        if (!st && says != TCTL_STEP_TAKE && says != TCTL_STEP_HOLD && says != TCTL_STEP_SKIP)
            st =
                tctl_fail(err, TCTL_EPLUGIN, "stage '%s' decided %d, which is no TCTL_STEP_…", h->name, says);
        if (st) {
            tctl_note(err, "in gradients_ready of stage '%s'", h->name);
            return st;
        }
        if (says > *action) /* SKIP outranks HOLD outranks TAKE */
            *action = says;
    }
    return TCTL_OK;
}

bool tctl_native_has_run_end(const trainer *t)
{
    for (uint32_t i = 0; i < t->n_hooked; i++) {
        if (MEMBER(t->hooked[i].hooks, run_end))
            return true;
    }
    return false;
}
