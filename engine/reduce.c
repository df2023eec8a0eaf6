/* SPDX-License-Identifier: Apache-2.0 */
/* See reduce.h. A chunk is one leaf. */
#include "engine/reduce.h"

#include <string.h>

#include "engine/math/norm.h"

size_t tctl_column_sums_floats(const tctl_leaves *l, int64_t n, int64_t channels, int64_t n_sums)
{
    return (size_t)(tctl_leaves_units(l, n) * l->per_unit * channels * n_sums);
}

typedef struct sums_job {
    const tctl_column_sums *sums;
    float *values;
    int64_t n_units, width;
} sums_job;

/* Chunk: one leaf. */
static void sum_leaf(void *arg, uint64_t chunk, uint32_t thread)
{
    const sums_job *job = arg;
    const tctl_column_sums *s = job->sums;
    const int64_t number = (int64_t)chunk;
    int64_t first, last;
    tctl_leaves_range(&s->leaves, s->call->n, number / s->leaves.per_unit, number % s->leaves.per_unit,
                      &first, &last);
    float *sums = job->values + number * job->width;
    memset(sums, 0, (size_t)job->width * sizeof *sums);
    s->leaf(s, first, last, sums, thread);
}

enum { JOIN_COLUMNS = 64 };

/* Chunk: some columns of all leaves. */
static void join_columns(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const sums_job *job = arg;
    const int64_t first = (int64_t)chunk * JOIN_COLUMNS, per_unit = job->sums->leaves.per_unit;
    const int64_t n = first + JOIN_COLUMNS < job->width ? JOIN_COLUMNS : job->width - first;
    float *values = job->values + first;
    const size_t row = (size_t)job->width;
    for (int64_t u = 0; u < job->n_units; u++)
        tctl_tree_join(values + (size_t)(u * per_unit) * row, per_unit, row, (size_t)n);
    tctl_tree_join(values, job->n_units, row * (size_t)per_unit, (size_t)n);
}

static sums_job job_of(const tctl_column_sums *s, float *values)
{
    return (sums_job){s, values, tctl_leaves_units(&s->leaves, s->call->n), s->channels * s->n_sums};
}

void tctl_column_sums_join(const tctl_column_sums *s, float *values)
{
    sums_job job = job_of(s, values);
    tctl_pool_run(s->call->pool, (uint64_t)((job.width + JOIN_COLUMNS - 1) / JOIN_COLUMNS), join_columns,
                  &job);
}

void tctl_column_sums_run(const tctl_column_sums *s, float *values)
{
    sums_job job = job_of(s, values);
    tctl_pool_run(s->call->pool, (uint64_t)(job.n_units * s->leaves.per_unit), sum_leaf, &job);
    tctl_column_sums_join(s, values);
}

void tctl_leaf_sum(const tctl_column_sums *s, int64_t first, int64_t last, float *sums, uint32_t thread)
{
    (void)thread;
    tctl_norm_of(s->call->simd)->add_sums(last - first, s->channels, s->x + first * s->channels, sums);
}
