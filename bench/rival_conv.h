/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN's convolution primitive, opened at run time: images channels-last, weights in whatever format it likes best. It
 * is brought there and back outside of what is measured.
 */
#ifndef TCTL_BENCH_RIVAL_CONV_H
#define TCTL_BENCH_RIVAL_CONV_H

#include <stdint.h>

#include "bench/rivals.h"

typedef enum bench_direction { BENCH_FORWARD, BENCH_INPUT, BENCH_WEIGHT } bench_direction;

typedef struct bench_convolution {
    bench_direction direction;
    int64_t batch, height, width, in, out, kernel, stride, pad, groups, out_height, out_width;
    float *x, *y;  /* [batch, height, width, channels], or their gradients */
    float *weight; /* [kernel, kernel, in / groups, out], or its gradient */
} bench_convolution;

typedef struct bench_rival_conv bench_rival_conv;

/* Prepares what `direction` computes: y, x or weight from the other two. NULL, with a message on standard error, if the
 * library will not. `rival` is bench_rival_open's "onednn". */
bench_rival_conv *bench_rival_conv_create(const bench_rival *rival, const bench_convolution *);
void bench_rival_conv_run(const bench_rival_conv *);
/* A gradient of weights goes to `weight`. */
void bench_rival_conv_read(const bench_rival_conv *);
void bench_rival_conv_destroy(bench_rival_conv *);

#endif
