/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_train CASE THREADS SECONDS: whole training steps of a network of the benchmarks on made-up data: forward, loss,
 * backward, SGD with Nesterov momentum. Prints "SAMPLES_PER_SECOND PEAK_BYTES GROWTH_BYTES PARAMETERS": the median over
 * steps, the largest resident memory of this process, how much of it came after the start, and how many numbers are
 * trained. On one thread the processor's time is measured, which other programs do not take; on more, the clock's.
 * Without arguments it prints the cases.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
    bench_graph graph = {.model = model, .err = err};
    c->build(&graph);
    if (graph.status)
        return graph.status;
    const tctl_network_request request = {.model = model,
                                          .models = tctl_model_service_of(),
                                          .input = &c->input,
                                          .max_batch = c->batch,
                                          .n_classes = c->n_classes,
                                          .n_labels = c->n_labels,
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

static float *make_images(size_t count)
{
    float *x = malloc(count * sizeof *x);
    for (size_t i = 0; x && i < count; i++)
        x[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    return x;
}

static uint8_t *make_tokens(size_t count, uint32_t vocabulary)
{
    uint8_t *tokens = malloc(count);
    for (size_t i = 0; tokens && i < count; i++)
        tokens[i] = (uint8_t)((i * 2654435761u >> 8) % vocabulary);
    return tokens;
}

static bool make_batch(bench *b)
{
    const bench_case *c = b->c;
    const size_t count = c->batch * (size_t)tctl_dims_count(c->input.dims, c->input.rank);
    const size_t n_labels = c->batch * (size_t)(c->n_labels ? c->n_labels : 1);
    int64_t *labels = malloc(n_labels * sizeof *labels);
    uint64_t *indices = malloc(c->batch * sizeof *indices);
    b->batch = (tctl_network_batch){
        .labels = labels, .indices = indices, .n = c->batch, .divisor = c->batch, .loss_scale = 1};
    if (c->input.dtype == TCTL_F32)
        b->batch.x = make_images(count);
    else
        b->batch.tokens = make_tokens(count, c->n_classes);
    if (!(b->batch.x || b->batch.tokens) || !labels || !indices)
        return false;
    for (size_t i = 0; i < n_labels; i++)
        labels[i] = (int64_t)(i % c->n_classes);
    for (uint32_t i = 0; i < c->batch; i++)
        indices[i] = i;
    return true;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* The number behind "VmHWM:", in KiB. Not getrusage's, which begins with what the process was before exec. */
static uint64_t peak_bytes(void)
{
    char line[128];
    uint64_t size = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f)) {
        const char *digits = line + strcspn(line, "0123456789");
        if (strncmp(line, "VmHWM:", 6) == 0)
            tctl_parse_uint(digits, strspn(digits, "0123456789"), &size);
    }
    if (f)
        fclose(f);
    return size * 1024;
}

static uint64_t n_trained(tctl_network *net)
{
    const tctl_network_memory *m = tctl_network_memory_of(net);
    uint64_t n = 0;
    for (uint32_t i = 0; i < m->n_parameters; i++)
        n += m->parameters[i].count;
    return n;
}

static tctl_status run(bench *b, uint32_t threads, double seconds, tctl_error *err)
{
    tctl_model *model = NULL;
    double rate = 0;
    const uint64_t before = peak_bytes();
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
    if (!st)
        printf("%.1f %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", rate, peak_bytes(), peak_bytes() - before,
               n_trained(b->net));
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
