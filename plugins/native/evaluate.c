/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss and accuracy of a data set. Every label's loss is computed by itself from its outputs and they are added up in
 * double, in the order of samples and positions: how many are evaluated at a time does not show.
 */
#include "plugins/native/trainer.h"

#include "base/fmath.h"

tctl_status tctl_native_check_cancel(const trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    if (o->cancel && o->cancel->requested(o->host))
        return tctl_fail(err, TCTL_ECANCELED, "stopped as asked");
    return TCTL_OK;
}

/* Cross-entropy of one label: log of the sum of exp(x - max), plus max, minus the label's x; classes in order. */
static float cross_entropy(const float *x, uint64_t n, int64_t label)
{
    float max = x[0], sum = 0;
    for (uint64_t i = 1; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (uint64_t i = 0; i < n; i++)
        sum += tctl_expf(x[i] - max);
    return tctl_logf(sum) + (max - x[label]);
}

tctl_status tctl_native_evaluate(trainer *t, feed *data, score *ret, tctl_error *err)
{
    score s = {0};
    uint64_t total = tctl_loader_samples(data->loader);
    tctl_status st = tctl_loader_start(data->loader, 0, 0, err);
    while (!st) {
        const tctl_loaded_batch *batch = NULL;
        st = tctl_native_check_cancel(t, err);
        if (!st)
            st = tctl_loader_next(data->loader, &batch, err);
        if (st || !batch)
            break;
        const tctl_network_batch b = tctl_native_batch_of(data, batch);
        tctl_network_result result;
        st = tctl_network_evaluate(t->network, &b, &result, err);
        if (st)
            break;
        const uint64_t labels = tctl_native_labels(data, b.n);
        for (uint64_t i = 0; i < labels; i++)
            s.loss +=
                (double)cross_entropy(result.outputs + i * result.n_classes, result.n_classes, b.labels[i]);
        s.correct += result.correct;
        s.samples += b.n;
        s.labels += labels;
        if (t->options->log)
            t->options->log->progress(t->options->host, "test", s.samples, total, "images");
    }
    if (st) {
        tctl_note(err, "while evaluating after step %llu", (unsigned long long)t->view.position.step);
        return st;
    }
    *ret = s;
    return TCTL_OK;
}
