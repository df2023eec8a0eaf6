/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to compute one thing, timed in turns in one process. */
#ifndef BENCH_DUEL_H
#define BENCH_DUEL_H

#include <stddef.h>

/* n made-up numbers from -1 to 1, 64-byte aligned; ends the program if memory is out. */
float *bench_numbers(size_t n);

typedef void bench_side_fn(const void *arg);

typedef struct bench_duel {
    bench_side_fn *ours, *rival;
    const void *arg;
    int threads; /* on one the processor's time counts, which other programs do not take; on more, the clock's */
    double work;    /* of one call, in 10^9 operations */
    double seconds; /* of a round of one side */
} bench_duel;

/* Medians, in 10^9 operations a second. */
void bench_fight(const bench_duel *, double *ret_ours, double *ret_rival);

#endif
