/* SPDX-License-Identifier: Apache-2.0 */
/* See loss.h. */
#include "engine/loss.h"

#include "base/fmath.h"
#include "engine/tree.h"

typedef struct loss_job {
    const tctl_loss *loss;
    const float *logits;
    const int64_t *labels;
    int64_t n; /* labels of all samples */
    float scale;
    float *gradient;
} loss_job;

enum { CHUNK = 16, BLOCK = 64 }; /* labels; classes at once */

static int64_t largest(const float *z, int64_t classes)
{
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++) {
        if (z[j] > z[best])
            best = j;
    }
    return best;
}

/* exp(z_j - max) of up to BLOCK classes. */
static void exponentials(const tctl_loss *l, const float *z, int64_t n, float max, float *out)
{
    for (int64_t j = 0; j < n; j++)
        out[j] = z[j] - max;
    l->math->map[TCTL_MAP_EXP](n, out, out);
}

static int64_t block(const tctl_loss *l, int64_t from)
{
    return l->classes - from < BLOCK ? l->classes - from : BLOCK;
}

static float sum_of_exponentials(const tctl_loss *l, const float *z, float max)
{
    float sum = 0, e[BLOCK];
    for (int64_t at = 0; at < l->classes; at += BLOCK) {
        exponentials(l, z + at, block(l, at), max, e);
        for (int64_t j = 0; j < block(l, at); j++)
            sum += e[j];
    }
    return sum;
}

static void forward_label(const loss_job *job, int64_t i)
{
    const tctl_loss *l = job->loss;
    const float *z = job->logits + i * l->classes;
    const int64_t top = largest(z, l->classes), label = job->labels[i];
    const float max = z[top];
    float target = (float)(1 - l->smoothing) * (z[label] - max);
    if (l->smoothing > 0) {
        float sum = 0;
        for (int64_t j = 0; j < l->classes; j++)
            sum += z[j] - max;
        target += (float)(l->smoothing / (double)l->classes) * sum;
    }
    l->losses[i] = tctl_logf(sum_of_exponentials(l, z, max)) - target;
    l->right[i] = top == label;
}

static void forward_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const loss_job *job = arg;
    for (int64_t i = (int64_t)chunk * CHUNK; i < job->n && i < ((int64_t)chunk + 1) * CHUNK; i++)
        forward_label(job, i);
}

static uint64_t n_chunks(int64_t n)
{
    return (uint64_t)((n + CHUNK - 1) / CHUNK);
}

/* Leaves and the tree, joined in place: the sums of leaves stand at the front. */
static float sum_losses(float *losses, int64_t labels, int64_t n)
{
    const tctl_leaves leaves = tctl_leaves_of(labels, 1);
    const int64_t units = tctl_leaves_units(&leaves, n);
    for (int64_t unit = 0; unit < units; unit++) {
        for (int64_t leaf = 0; leaf < leaves.per_unit; leaf++) {
            float sum = 0;
            int64_t first, last;
            tctl_leaves_range(&leaves, n, unit, leaf, &first, &last);
            for (int64_t i = first; i < last; i++)
                sum += losses[i];
            losses[unit * leaves.per_unit + leaf] = sum;
        }
        tctl_tree_join(losses + unit * leaves.per_unit, leaves.per_unit, 1, 1);
    }
    tctl_tree_join(losses, units, (size_t)leaves.per_unit, 1);
    return losses[0];
}

void tctl_loss_forward(const tctl_loss *l, tctl_pool *pool, const float *logits, const int64_t *labels,
                       int64_t n, float *ret_sum, uint64_t *ret_right)
{
    loss_job job = {.loss = l, .logits = logits, .labels = labels, .n = n * l->labels};
    tctl_pool_run(pool, n_chunks(job.n), forward_chunk, &job);
    uint64_t right = 0;
    for (int64_t i = 0; i < job.n; i++)
        right += l->right[i];
    *ret_right = right;
    *ret_sum = sum_losses(l->losses, l->labels, n);
}

static void backward_label(const loss_job *job, int64_t i)
{
    const tctl_loss *l = job->loss;
    const int64_t k = l->classes;
    const float *z = job->logits + i * k;
    float *g = job->gradient + i * k;
    const float max = z[largest(z, k)], sum = sum_of_exponentials(l, z, max);
    const float off = (float)(l->smoothing / (double)k);
    const float on = (float)(1 - l->smoothing + l->smoothing / (double)k);
    for (int64_t at = 0; at < k; at += BLOCK)
        exponentials(l, z + at, block(l, at), max, g + at);
    for (int64_t j = 0; j < k; j++)
        g[j] = (g[j] / sum - (j == job->labels[i] ? on : off)) * job->scale;
}

static void backward_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const loss_job *job = arg;
    for (int64_t i = (int64_t)chunk * CHUNK; i < job->n && i < ((int64_t)chunk + 1) * CHUNK; i++)
        backward_label(job, i);
}

void tctl_loss_backward(const tctl_loss *l, tctl_pool *pool, const float *logits, const int64_t *labels,
                        int64_t n, float scale, float *gradient)
{
    loss_job job = {l, logits, labels, n * l->labels, scale, gradient};
    tctl_pool_run(pool, n_chunks(job.n), backward_chunk, &job);
}
