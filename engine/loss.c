/* SPDX-License-Identifier: Apache-2.0 */
/* See loss.h. */
#include "engine/loss.h"

#include "base/fmath.h"
#include "engine/tree.h"

typedef struct loss_job {
    const tctl_loss *loss;
    const float *logits;
    const int64_t *labels;
    int64_t n;
    float scale;
    float *gradient;
} loss_job;

enum { CHUNK = 16 }; /* samples */

static int64_t largest(const float *z, int64_t classes)
{
    int64_t best = 0;
    for (int64_t j = 1; j < classes; j++) {
        if (z[j] > z[best])
            best = j;
    }
    return best;
}

static float sum_of_exponentials(const float *z, int64_t classes, float max)
{
    float sum = 0;
    for (int64_t j = 0; j < classes; j++)
        sum += tctl_expf(z[j] - max);
    return sum;
}

static void forward_sample(const loss_job *job, int64_t i)
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
    l->losses[i] = tctl_logf(sum_of_exponentials(z, l->classes, max)) - target;
    l->right[i] = top == label;
}

static void forward_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const loss_job *job = arg;
    for (int64_t i = (int64_t)chunk * CHUNK; i < job->n && i < ((int64_t)chunk + 1) * CHUNK; i++)
        forward_sample(job, i);
}

static uint64_t n_chunks(int64_t n)
{
    return (uint64_t)((n + CHUNK - 1) / CHUNK);
}

/* Leaves of samples, as in tree.h, joined in place: a leaf's sum stands at its first sample. */
static float sum_losses(float *losses, int64_t n)
{
    const tctl_leaves leaves = tctl_leaves_of(1, 1);
    for (int64_t first = 0; first < n; first += leaves.samples) {
        float sum = 0;
        for (int64_t i = first; i < n && i < first + leaves.samples; i++)
            sum += losses[i];
        losses[first] = sum;
    }
    tctl_tree_join(losses, tctl_leaves_units(&leaves, n), (size_t)leaves.samples, 1);
    return losses[0];
}

void tctl_loss_forward(const tctl_loss *l, tctl_pool *pool, const float *logits, const int64_t *labels,
                       int64_t n, float *ret_sum, uint64_t *ret_right)
{
    loss_job job = {.loss = l, .logits = logits, .labels = labels, .n = n};
    tctl_pool_run(pool, n_chunks(n), forward_chunk, &job);
    uint64_t right = 0;
    for (int64_t i = 0; i < n; i++)
        right += l->right[i];
    *ret_right = right;
    *ret_sum = sum_losses(l->losses, n);
}

static void backward_sample(const loss_job *job, int64_t i)
{
    const tctl_loss *l = job->loss;
    const int64_t k = l->classes;
    const float *z = job->logits + i * k;
    float *g = job->gradient + i * k;
    const float max = z[largest(z, k)], sum = sum_of_exponentials(z, k, max);
    const float off = (float)(l->smoothing / (double)k);
    const float on = (float)(1 - l->smoothing + l->smoothing / (double)k);
    for (int64_t j = 0; j < k; j++)
        g[j] = (tctl_expf(z[j] - max) / sum - (j == job->labels[i] ? on : off)) * job->scale;
}

static void backward_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const loss_job *job = arg;
    for (int64_t i = (int64_t)chunk * CHUNK; i < job->n && i < ((int64_t)chunk + 1) * CHUNK; i++)
        backward_sample(job, i);
}

void tctl_loss_backward(const tctl_loss *l, tctl_pool *pool, const float *logits, const int64_t *labels,
                        int64_t n, float scale, float *gradient)
{
    loss_job job = {l, logits, labels, n, scale, gradient};
    tctl_pool_run(pool, n_chunks(n), backward_chunk, &job);
}
