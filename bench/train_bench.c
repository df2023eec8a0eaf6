/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_train CASE THREADS SECONDS: whole training steps of a network of the benchmarks on made-up data: forward, loss,
 * backward, SGD with Nesterov momentum. Prints "SAMPLES_PER_SECOND PEAK_BYTES ACTIVATION_BYTES": the median over steps,
 * and the largest resident memory of this process. On one thread the processor's time is measured, which other programs
 * do not take; on more, the clock's. Without arguments it prints the cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/num.h"
#include "engine/network.h"
#include "host/model.h"
#include "train_cases.h"

enum { MAX_STEPS = 4096, WARM_UP = 2, UPDATE_GRAIN = 16384 };

static double now(uint32_t threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- the network --------------------------------------------------------------------------------------- */

static tctl_status make_network(const bench_case *c, tctl_model *model, tctl_pool *pool, tctl_network **ret,
                                tctl_error *err)
{
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        tctl_status st = tctl_model_service_of()->insert(model, i, &c->nodes[i], err);
        if (st)
            return st;
    }
    const tctl_network_request request = {.model = model,
                                          .models = tctl_model_service_of(),
                                          .input = &c->input,
                                          .max_batch = c->batch,
                                          .n_classes = c->n_classes,
                                          .seed = 1,
                                          .pool = pool};
    return tctl_network_create(&request, ret, err);
}

/* ---- a step -------------------------------------------------------------------------------------------- */

typedef struct bench {
    const bench_case *c;
    tctl_pool *pool;
    tctl_network *net;
    tctl_network_batch batch;
    float *momentum;
} bench;

/* v = 0.9 v + g; w -= lr (g + 0.9 v): one pass. */
static void update_range(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const bench *b = arg;
    const tctl_network_memory *m = tctl_network_memory_of(b->net);
    const uint64_t first = chunk * UPDATE_GRAIN, last = first + UPDATE_GRAIN;
    float *restrict w = m->param, *restrict v = b->momentum;
    const float *restrict g = m->grad;
    for (uint64_t i = first; i < last && i < m->n_elements; i++) {
        v[i] = 0.9f * v[i] + g[i];
        w[i] -= 0.01f * (g[i] + 0.9f * v[i]);
    }
}

static tctl_status take_step(bench *b, tctl_error *err)
{
    tctl_network_result result;
    tctl_status st = tctl_network_forward(b->net, &b->batch, &result, err);
    if (!st)
        st = tctl_network_backward(b->net, &b->batch, err);
    const uint64_t n = tctl_network_memory_of(b->net)->n_elements;
    if (!st)
        tctl_pool_run(b->pool, (n + UPDATE_GRAIN - 1) / UPDATE_GRAIN, update_range, b);
    return st;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static tctl_status measure(bench *b, double seconds, double *ret_rate, tctl_error *err)
{
    static double times[MAX_STEPS];
    const uint32_t threads = tctl_pool_threads(b->pool);
    tctl_status st = TCTL_OK;
    int n = 0;
    double end = 0;
    for (int i = 0; !st && n < MAX_STEPS && (n < 3 || end > now(threads)); i++) {
        const double start = now(threads);
        st = take_step(b, err);
        if (i == WARM_UP)
            end = start + seconds;
        if (i >= WARM_UP)
            times[n++] = now(threads) - start;
    }
    qsort(times, (size_t)n, sizeof *times, compare);
    *ret_rate = st ? 0 : b->batch.n / times[n / 2];
    return st;
}

/* ---- made-up data -------------------------------------------------------------------------------------- */

static bool make_batch(bench *b)
{
    const bench_case *c = b->c;
    size_t count = c->batch;
    for (int32_t i = 0; i < c->input.rank; i++)
        count *= (size_t)c->input.dims[i];
    float *x = malloc(count * sizeof *x);
    int64_t *labels = malloc(c->batch * sizeof *labels);
    uint64_t *indices = malloc(c->batch * sizeof *indices);
    b->batch = (tctl_network_batch){
        .x = x, .labels = labels, .indices = indices, .n = c->batch, .divisor = c->batch, .loss_scale = 1};
    if (!x || !labels || !indices)
        return false;
    for (size_t i = 0; i < count; i++)
        x[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    for (uint32_t i = 0; i < c->batch; i++) {
        labels[i] = i % c->n_classes;
        indices[i] = i;
    }
    return true;
}

static tctl_status run(bench *b, uint32_t threads, double seconds, tctl_error *err)
{
    tctl_model *model = NULL;
    double rate = 0;
    tctl_status st = tctl_pool_create(threads, &b->pool, err);
    if (!st)
        st = tctl_model_create(&model, err);
    if (!st)
        st = make_network(b->c, model, b->pool, &b->net, err);
    if (!st) {
        b->momentum = calloc(tctl_network_memory_of(b->net)->n_elements, sizeof *b->momentum);
        if (!b->momentum || !make_batch(b))
            st = tctl_fail(err, TCTL_ENOMEM, "out of memory for a batch");
    }
    if (!st)
        st = measure(b, seconds, &rate, err);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (!st)
        printf("%.1f %lld %llu\n", rate, (long long)usage.ru_maxrss * 1024,
               (unsigned long long)tctl_network_memory_of(b->net)->activation_bytes);
    tctl_network_destroy(b->net);
    tctl_model_destroy(model);
    tctl_pool_destroy(b->pool);
    free(b->momentum);
    return st;
}

int main(int argc, char **argv)
{
    uint64_t threads, seconds;
    bench b = {0};
    tctl_error err = {0};
    if (argc == 1) {
        for (uint32_t i = 0; i < bench_n_cases; i++)
            printf("%s\n", bench_cases[i].name);
        return 0;
    }
    for (uint32_t i = 0; argc == 4 && i < bench_n_cases; i++)
        b.c = strcmp(bench_cases[i].name, argv[1]) == 0 ? &bench_cases[i] : b.c;
    if (!b.c || !tctl_parse_uint(argv[2], strlen(argv[2]), &threads) || threads < 1 || threads > 1024 ||
        !tctl_parse_uint(argv[3], strlen(argv[3]), &seconds)) {
        fprintf(stderr, "usage: bench_train CASE THREADS SECONDS\n");
        return 2;
    }
    if (run(&b, (uint32_t)threads, (double)seconds, &err)) {
        fprintf(stderr, "bench_train: %s\n", err.message);
        return 1;
    }
    return 0;
}
