/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm RIVAL THREADS M N K TRANSPOSE: one product by the engine and by a rival (rivals.h), in one process, in
 * turns. TRANSPOSE is nn, tn (A is stored [k][m]) or nt (B is stored [n][k]). Prints "OURS RIVAL VERSION": GFLOP/s,
 * medians. On one thread the processor's time is measured, which other programs of the machine do not take; on more,
 * the clock's. Exit status 3: that rival is not installed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/pool.h"
#include "bench/duel.h"
#include "bench/rivals.h"
#include "engine/gemm/gemm.h"

typedef struct bench {
    const bench_product *product;
    const bench_rival *rival;
    tctl_gemm_call call;
    tctl_pool *pool;
    int threads;
} bench;

static void by_us(const void *arg)
{
    const bench *b = arg;
    tctl_gemm_run(&b->call, b->pool);
}

static void by_rival(const void *arg)
{
    const bench *b = arg;
    b->rival->multiply(b->rival, b->product);
}

static void measure(const bench *b)
{
    const bench_product *p = b->product;
    const bench_duel duel = {.ours = by_us,
                             .rival = by_rival,
                             .arg = b,
                             .threads = b->threads,
                             .work = 2e-9 * (double)p->m * (double)p->n * (double)p->k,
                             .seconds = 0.08};
    double ours, rival;
    bench_fight(&duel, &ours, &rival);
    printf("%.2f %.2f %s\n", ours, rival, b->rival->version);
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
    float *a = bench_numbers(p.m * p.k), *matrix_b = bench_numbers(p.k * p.n);
    p.a = a;
    p.b = matrix_b;
    p.c = bench_numbers(p.m * p.n);
    b.call = (tctl_gemm_call){
        .simd = simd,
        .m = p.m,
        .n = p.n,
        .k = p.k,
        .a = {a, p.transpose_a ? 1 : (ptrdiff_t)p.k, p.transpose_a ? (ptrdiff_t)p.m : 1},
        .b = {matrix_b, p.transpose_b ? 1 : (ptrdiff_t)p.n, p.transpose_b ? (ptrdiff_t)p.k : 1},
        .c = p.c,
        .c_row = p.n,
        .scratch = bench_numbers(tctl_gemm_run_floats(simd, (uint32_t)b.threads)),
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
