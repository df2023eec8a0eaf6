/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch. The order of things is that of trainctl/ext/hooks.h:
 *
 *   batch_ready, forward, loss_ready, backward, gradients_ready, (update), step_done, trace record
 */
#include "plugins/native/trainer.h"

#include <math.h>

uint64_t tctl_native_group_samples(const trainer *t, uint64_t number)
{
    uint64_t batches = tctl_loader_batches(t->train.loader), k = t->view.accumulate, size = t->options->batch;
    uint64_t first = number - number % k, end = batches - first < k ? batches : first + k;
    uint64_t samples = tctl_loader_samples(t->train.loader);
    if (t->options->drop_last || end * size < samples)
        samples = end * size;
    return samples - first * size;
}

tctl_network_batch tctl_native_batch_of(const feed *data, const tctl_loaded_batch *batch)
{
    const void *input = batch->tensors[data->input].data;
    return (tctl_network_batch){.x = data->tokens ? NULL : input,
                                .tokens = data->tokens ? input : NULL,
                                .labels = batch->tensors[data->label].data,
                                .indices = batch->indices,
                                .n = (uint32_t)batch->n,
                                .divisor = (double)batch->n,
                                .loss_scale = 1};
}

static bool is_power_of_two(double x)
{
    int exponent;
    return isfinite(x) && x > 0 && frexp(x, &exponent) == 0.5;
}

/* What a stage wrote into the view must make sense. */
static tctl_status check_view(const trainer *t, double held_divisor, double held_scale, tctl_error *err)
{
    const tctl_training *v = &t->view;
    if (!(isfinite(v->divisor) && v->divisor > 0) || !is_power_of_two(v->loss_scale))
        return tctl_fail(
            err, TCTL_EPLUGIN,
            "a stage set divisor %g and loss scale %g: the first must be positive, the second a power of two",
            v->divisor, v->loss_scale);
    if (v->micro_batch > 0 && (v->divisor != held_divisor || v->loss_scale != held_scale))
        return tctl_fail(err, TCTL_EPLUGIN,
                         "a stage changed the divisor or the loss scale while gradients are held");
    return TCTL_OK;
}

static void look_at(trainer *t, const tctl_loaded_batch *batch)
{
    tctl_training *v = &t->view;
    v->batch_samples = batch->n;
    v->sample_indices = batch->indices;
    v->batches_left = tctl_loader_batches(t->train.loader) - 1 - batch->number;
    if (v->micro_batch == 0)
        v->divisor = (double)tctl_native_group_samples(t, batch->number);
}

static tctl_status compute_gradients(trainer *t, const tctl_loaded_batch *batch, tctl_error *err)
{
    tctl_training *v = &t->view;
    double divisor = v->divisor, scale = v->loss_scale;
    tctl_status st = tctl_native_moment(t, BATCH_READY, err);
    if (!st)
        st = check_view(t, divisor, scale, err);
    if (st)
        return st;
    divisor = v->divisor;
    tctl_network_batch b = tctl_native_batch_of(&t->train, batch);
    b.step = (uint32_t)v->position.step;
    b.divisor = v->divisor;
    b.loss_scale = v->loss_scale;
    b.accumulate = v->micro_batch > 0;
    tctl_network_result result;
    st = tctl_network_forward(t->network, &b, &result, err);
    if (st)
        return st;
    v->loss = v->divisor == (double)batch->n ? result.loss
                                             : (float)((double)result.loss * (v->divisor / (double)batch->n));
    if (!isfinite(v->loss))
        return tctl_fail(err, TCTL_EFORMAT,
                         "the loss is %s: try a smaller learning rate, or look at the data",
                         isnan(v->loss) ? "not a number" : "infinite");
    const uint64_t labels = tctl_native_labels(&t->train, batch->n);
    t->epoch.loss += (double)v->loss * (double)labels;
    t->epoch.correct += result.correct;
    t->epoch.samples += batch->n;
    t->epoch.labels += labels;
    st = tctl_native_moment(t, LOSS_READY, err);
    if (!st && v->divisor != divisor)
        st = tctl_fail(err, TCTL_EPLUGIN, "a stage changed the divisor after the loss was computed");
    if (!st)
        st = check_view(t, divisor, scale, err);
    b.loss_scale = v->loss_scale;
    return st ? st : tctl_network_backward(t->network, &b, err);
}

/* True for the last batch of a group that stages accumulate. */
static bool ends_group(const trainer *t, const tctl_loaded_batch *batch)
{
    return t->view.batches_left == 0 || (batch->number + 1) % t->view.accumulate == 0;
}

/* Updates the parameters, or not, as the stages decide. */
static tctl_status decide(trainer *t, const tctl_loaded_batch *batch, tctl_error *err)
{
    tctl_training *v = &t->view;
    v->action = TCTL_STEP_TAKE;
    tctl_status st = tctl_native_gradients_ready(t, &v->action, err);
    if (st)
        return st;
    if (v->action == TCTL_STEP_HOLD && v->batches_left == 0)
        v->action = TCTL_STEP_TAKE; /* a group ends with its epoch */
    if (v->action == TCTL_STEP_SKIP && !ends_group(t, batch))
        t->dropped = true;
    if (v->action == TCTL_STEP_TAKE && t->dropped)
        v->action = TCTL_STEP_SKIP; /* some of the group's gradients were vetoed */
    if (v->action == TCTL_STEP_TAKE) {
        tctl_native_update(t);
        v->updates++;
    }
    return tctl_native_moment(t, STEP_DONE, err);
}

/* A vetoed group goes on to its end, so that groups stay where they are in the epoch. */
static void move_on(trainer *t, const tctl_loaded_batch *batch)
{
    tctl_training *v = &t->view;
    if (v->action == TCTL_STEP_HOLD || (t->dropped && !ends_group(t, batch))) {
        v->micro_batch++;
        return;
    }
    t->dropped = false;
    v->micro_batch = 0;
    v->position.step++;
}

tctl_status tctl_native_step(trainer *t, const tctl_loaded_batch *batch, tctl_error *err)
{
    tctl_training *v = &t->view;
    look_at(t, batch);
    tctl_status st = compute_gradients(t, batch, err);
    if (!st)
        st = decide(t, batch, err);
    if (!st) {
        t->batches++;
        st = tctl_native_trace_record(t, batch, err);
    }
    if (st) {
        tctl_note(err, "in step %llu (batch %llu of epoch %llu)", (unsigned long long)v->position.step + 1,
                  (unsigned long long)batch->number + 1, (unsigned long long)v->epoch + 1);
        return st;
    }
    move_on(t, batch);
    return TCTL_OK;
}
