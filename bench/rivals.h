/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of other libraries, opened at run time: what is not installed is left out. Each computes
 * C[m,n] = op(A) op(B), row-major, dense, and is told how many threads to take. Not linked: a rival must not change
 * what the engine's own executable is.
 */
#ifndef TCTL_BENCH_RIVALS_H
#define TCTL_BENCH_RIVALS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bench_product {
    size_t m, n, k;
    bool transpose_a, transpose_b; /* A is stored [k][m]; B is stored [n][k] */
    const float *a, *b;
    float *c;
} bench_product;

typedef struct bench_rival {
    const char *name;
    char version[64];
    void (*multiply)(const struct bench_rival *, const bench_product *);
    void (*set_threads)(const struct bench_rival *, int n);
    void *library;
    void *gemm, *threads; /* its own functions */
} bench_rival;

/* "openblas", "onednn" or "mkl"; false if it is not there. */
bool bench_rival_open(const char *name, bench_rival *ret);

#endif
