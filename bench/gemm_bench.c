/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm RIVAL THREADS M N K TRANSPOSE: one product by the engine and by a rival (rivals.h), in one process, in
 * turns. TRANSPOSE is nn, tn (A is stored [k][m]) or nt (B is stored [n][k]). Prints "OURS RIVAL VERSION": GFLOP/s,
 * medians. On one thread the processor's time is measured, which other programs of the machine do not take; on more,
 * the clock's. Exit status 3: that rival is not installed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/num.h"
#include "base/pool.h"
#include "bench/rivals.h"
#include "engine/gemm/gemm.h"

enum { ROUNDS = 9 };

/* Threads of a library may spin for a while after its work; the other side is not to pay for that. */
static const struct timespec pause_between = {0, 40000000};
static const double seconds_of_a_round = 0.08;

static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *numbers(size_t n)
{
    float *out = aligned_alloc(64, (n + 15) / 16 * 64);
    if (!out) {
        fprintf(stderr, "bench_gemm: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    return out;
}

typedef struct bench {
    const bench_product *product;
    const bench_rival *rival;
    tctl_gemm_call call;
    tctl_pool *pool;
    int threads;
} bench;

static void by_us(const bench *b)
{
    tctl_gemm_run(&b->call, b->pool);
}

static void by_rival(const bench *b)
{
    b->rival->multiply(b->rival, b->product);
}

static double rate_of(const bench *b, void (*side)(const bench *))
{
    const bench_product *p = b->product;
    const double work = 2e-9 * (double)p->m * (double)p->n * (double)p->k;
    nanosleep(&pause_between, NULL);
    side(b);
    double start = now(b->threads), time;
    int n = 0;
    do {
        side(b);
        n++;
        time = now(b->threads) - start;
    } while (time < seconds_of_a_round);
    return work * n / time;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const bench *b)
{
    double ours[ROUNDS], theirs[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = rate_of(b, by_us);
        theirs[i] = rate_of(b, by_rival);
    }
    qsort(ours, ROUNDS, sizeof *ours, compare);
    qsort(theirs, ROUNDS, sizeof *theirs, compare);
    printf("%.2f %.2f %s\n", ours[ROUNDS / 2], theirs[ROUNDS / 2], b->rival->version);
}

static bool read_arguments(char **argv, int *threads, bench_product *p)
{
    uint64_t n[4];
    for (int i = 0; i < 4; i++) {
        const char *text = argv[2 + i];
        if (!tctl_parse_uint(text, strlen(text), &n[i]) || n[i] < 1 || n[i] > 1000000)
            return false;
    }
    const char *transpose = argv[6];
    *threads = (int)n[0];
    *p = (bench_product){.m = n[1],
                         .n = n[2],
                         .k = n[3],
                         .transpose_a = transpose[0] == 't',
                         .transpose_b = transpose[0] && transpose[1] == 't'};
    return *threads <= 64;
}

int main(int argc, char **argv)
{
    bench_product p;
    bench_rival rival;
    bench b = {.product = &p, .rival = &rival};
    tctl_error err = {0};
    if (argc != 7 || !read_arguments(argv, &b.threads, &p)) {
        fprintf(stderr, "usage: bench_gemm openblas|onednn|mkl THREADS M N K nn|tn|nt\n");
        return 2;
    }
    if (!bench_rival_open(argv[1], &rival))
        return 3;
    const tctl_simd *simd;
    if (tctl_simd_choose(getenv("TRAINCTL_SIMD"), &simd, &err) ||
        tctl_pool_create((uint32_t)b.threads, &b.pool, &err)) {
        fprintf(stderr, "bench_gemm: %s\n", err.message);
        return 1;
    }
    float *a = numbers(p.m * p.k), *matrix_b = numbers(p.k * p.n);
    p.a = a;
    p.b = matrix_b;
    p.c = numbers(p.m * p.n);
    b.call = (tctl_gemm_call){
        .simd = simd,
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .a = {a, p.transpose_a ? 1 : (ptrdiff_t)p.k, p.transpose_a ? (ptrdiff_t)p.m : 1},
        .b = {matrix_b, p.transpose_b ? 1 : (ptrdiff_t)p.n, p.transpose_b ? (ptrdiff_t)p.k : 1},
        .c = p.c,
        .c_row = p.n,
        .scratch = numbers(tctl_gemm_run_floats(simd, (uint32_t)b.threads)),
    };
    rival.set_threads(&rival, b.threads);
    measure(&b);
    tctl_pool_destroy(b.pool);
    free(a);
    free(matrix_b);
    free(p.c);
    free(b.call.scratch);
    return 0;
}
