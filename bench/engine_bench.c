/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_engine gemm M N K: GFLOP/s of one product on one thread. bench_engine train THREADS: images per second of
 * training steps of the example's network (examples/fashion-mnist), data and optimizer left out. One number a line, of
 * the best of some repetitions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/num.h"
#include "engine/gemm/gemm.h"
#include "engine/network.h"
#include "host/model.h"

enum { BATCH = 128, ROUNDS = 12 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(size_t n)
{
    float *out = aligned_alloc(64, (n + 15) / 16 * 64);
    if (!out) {
        fprintf(stderr, "bench_engine: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    return out;
}

static int bench_gemm(size_t m, size_t n, size_t k)
{
    const tctl_simd *simd = NULL;
    if (tctl_simd_choose(getenv("TRAINCTL_SIMD"), &simd, NULL))
        return 1;
    float *a = numbers(m * k), *b = numbers(k * n), *c = numbers(m * n);
    float *scratch = numbers(tctl_gemm_scratch_floats(simd));
    const tctl_gemm_call call = {.simd = simd,
                                 .m = m,
                                 .n = n,
                                 .k = k,
                                 .a = {a, (ptrdiff_t)k, 1},
                                 .b = {b, (ptrdiff_t)n, 1},
                                 .c = c,
                                 .c_row = n,
                                 .scratch = scratch};
    const double work = 2.0 * (double)m * (double)n * (double)k;
    const int repeat = (int)(2e8 / work) + 1;
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < repeat; i++)
            tctl_gemm(&call);
        double rate = work * repeat / (now() - start) / 1e9;
        best = rate > best ? rate : best;
    }
    printf("%.2f\n", best);
    free(a);
    free(b);
    free(c);
    free(scratch);
    return 0;
}

/* ---- training ------------------------------------------------------------------------------------------ */

typedef struct layer {
    const char *op;
    int out, kernel, pad;
} layer;

static const layer layers[] = {
    {"conv", 16, 3, 1},   {"batchnorm", 0, 0, 0}, {"relu", 0, 0, 0}, {"maxpool", 0, 2, 0},
    {"conv", 32, 3, 1},   {"batchnorm", 0, 0, 0}, {"relu", 0, 0, 0}, {"maxpool", 0, 2, 0},
    {"conv", 64, 3, 1},   {"batchnorm", 0, 0, 0}, {"relu", 0, 0, 0}, {"flatten", 0, 0, 0},
    {"linear", 10, 0, 0},
};

static tctl_status add_layer(tctl_model *model, uint32_t i, tctl_error *err)
{
    char name[32];
    tctl_attr attrs[4];
    snprintf(name, sizeof name, "%s%u", layers[i].op, i);
    tctl_node node = {
        .name = name, .op = layers[i].op, .n_inputs = 1, .inputs = {(int32_t)i - 1}, .attrs = attrs};
    if (layers[i].out)
        attrs[node.n_attrs++] = (tctl_attr){.name = "out", .type = TCTL_INT, .i = layers[i].out};
    if (layers[i].kernel)
        attrs[node.n_attrs++] = (tctl_attr){.name = "kernel", .type = TCTL_INT, .i = layers[i].kernel};
    if (layers[i].pad) {
        attrs[node.n_attrs++] = (tctl_attr){.name = "pad", .type = TCTL_INT, .i = layers[i].pad};
        attrs[node.n_attrs++] = (tctl_attr){.name = "bias", .type = TCTL_BOOL, .i = 0};
    }
    return tctl_model_service_of()->insert(model, i, &node, err);
}

static tctl_status make_network(tctl_model *model, tctl_pool *pool, tctl_network **ret, tctl_error *err)
{
    for (uint32_t i = 0; i < TCTL_COUNT_OF(layers); i++) {
        tctl_status st = add_layer(model, i, err);
        if (st)
            return st;
    }
    const tctl_field field = {.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {28, 28, 1}};
    const tctl_network_request request = {.model = model,
                                          .models = tctl_model_service_of(),
                                          .input = &field,
                                          .max_batch = BATCH,
                                          .n_classes = 10,
                                          .seed = 1,
                                          .pool = pool};
    return tctl_network_create(&request, ret, err);
}

static tctl_status run_steps(tctl_network *net, double *ret_rate, tctl_error *err)
{
    float *x = numbers(BATCH * 28 * 28);
    int64_t labels[BATCH];
    uint64_t indices[BATCH];
    for (int i = 0; i < BATCH; i++) {
        labels[i] = i % 10;
        indices[i] = (uint64_t)i;
    }
    const tctl_network_batch batch = {
        .x = x, .labels = labels, .indices = indices, .n = BATCH, .divisor = BATCH, .loss_scale = 1};
    tctl_network_result result;
    tctl_status st = TCTL_OK;
    double best = 0;
    for (int round = 0; round < ROUNDS && !st; round++) {
        double start = now();
        st = tctl_network_forward(net, &batch, &result, err);
        if (!st)
            st = tctl_network_backward(net, &batch, err);
        double rate = BATCH / (now() - start);
        best = rate > best ? rate : best;
    }
    *ret_rate = best;
    free(x);
    return st;
}

static int bench_train(uint32_t threads)
{
    tctl_error err = {0};
    tctl_pool *pool = NULL;
    tctl_model *model = NULL;
    tctl_network *net = NULL;
    double rate = 0;
    tctl_status st = tctl_pool_create(threads, &pool, &err);
    if (!st)
        st = tctl_model_create(&model, &err);
    if (!st)
        st = make_network(model, pool, &net, &err);
    if (!st)
        st = run_steps(net, &rate, &err);
    if (st)
        fprintf(stderr, "bench_engine: %s\n", err.message);
    else
        printf("%.0f\n", rate);
    tctl_network_destroy(net);
    tctl_model_destroy(model);
    tctl_pool_destroy(pool);
    return st ? 1 : 0;
}

int main(int argc, char **argv)
{
    uint64_t n[3] = {0};
    bool good = argc >= 3 && argc <= 5;
    for (int i = 2; good && i < argc; i++)
        good = tctl_parse_uint(argv[i], strlen(argv[i]), &n[i - 2]) && n[i - 2] >= 1 && n[i - 2] <= 16384;
    if (good && argc == 5 && strcmp(argv[1], "gemm") == 0)
        return bench_gemm(n[0], n[1], n[2]);
    if (good && argc == 3 && strcmp(argv[1], "train") == 0)
        return bench_train((uint32_t)n[0]);
    fprintf(stderr, "usage: bench_engine gemm M N K | train THREADS\n");
    return 2;
}
