/* SPDX-License-Identifier: Apache-2.0 */
/* See duel.h. */
#include "bench/duel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9 };

/* Threads of a library may spin for a while after its work; the other side is not to pay for that. */
static const struct timespec pause_between = {0, 40000000};

float *bench_numbers(size_t n)
{
    float *out = aligned_alloc(64, (n + 15) / 16 * 64);
    if (!out) {
        fprintf(stderr, "bench: out of memory\n");
        exit(1);
    }
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(i * 2654435761u % 2001) / 1000.0f - 1.0f;
    return out;
}

static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rate_of(const bench_duel *d, bench_side_fn *side)
{
    nanosleep(&pause_between, NULL);
    side(d->arg);
    double start = now(d->threads), time;
    int n = 0;
    do {
        side(d->arg);
        n++;
        time = now(d->threads) - start;
    } while (time < d->seconds);
    return d->work * n / time;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_fight(const bench_duel *d, double *ret_ours, double *ret_rival)
{
    double ours[ROUNDS], rival[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        ours[i] = rate_of(d, d->ours);
        rival[i] = rate_of(d, d->rival);
    }
    qsort(ours, ROUNDS, sizeof *ours, compare);
    qsort(rival, ROUNDS, sizeof *rival, compare);
    *ret_ours = ours[ROUNDS / 2];
    *ret_rival = rival[ROUNDS / 2];
}
