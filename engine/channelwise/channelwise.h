/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products channel by channel: what convolutions with small groups of channels come down to. Vectors run along channels;
 * chains run over terms (docs/numerics.md), so the bits are the same for every instruction set. One source,
 * channelwise_body.h, is compiled for each of them. Calls are single-threaded. [any]
 *
 * x may be read past a position's channels, up to TCTL_CHANNELWISE_SLACK floats: what is read there is not used.
 */
#ifndef TCTL_ENGINE_CHANNELWISE_H
#define TCTL_ENGINE_CHANNELWISE_H

#include "engine/gemm/gemm.h"

enum { TCTL_CHANNELWISE_SLACK = 16 };

/* y[p][c] = chain over t of fma(x[terms[t] + p * x_step + c], weights[t][c]), p < n. */
typedef struct tctl_channelwise_row {
    int64_t n, channels, n_terms;
    const ptrdiff_t *terms;
    const float *x;
    ptrdiff_t x_step;
    const float *weights; /* [n_terms][tctl_channelwise_stride(channels)] */
    float *y;
    ptrdiff_t y_step;
    tctl_gemm_start start;
    const float *bias; /* [channels] */
} tctl_channelwise_row;

/* sums[t][c] = the chain that it holds, and on over (r, p): fma(x[terms[t] + r * x_row + p * x_step + c], dy[r][p][c]). */
typedef struct tctl_channelwise_sums {
    int64_t rows, n, channels, n_terms;
    const ptrdiff_t *terms;
    const float *x;
    ptrdiff_t x_row, x_step;
    const float *dy; /* [rows][n][channels] */
    float *sums;     /* [n_terms][channels] */
} tctl_channelwise_sums;

typedef struct tctl_channelwise {
    void (*row)(const tctl_channelwise_row *);
    /* The same with one x for all channels: x[terms[t] + p * x_step]. */
    void (*shared_row)(const tctl_channelwise_row *);
    void (*sums)(const tctl_channelwise_sums *);
} tctl_channelwise;

/* The functions that go with a variant of the matrix product. */
const tctl_channelwise *tctl_channelwise_of(const tctl_simd *);

/* Floats between rows of weights: whole vectors of every variant. */
static inline int64_t tctl_channelwise_stride(int64_t channels)
{
    return (channels + TCTL_CHANNELWISE_SLACK - 1) / TCTL_CHANNELWISE_SLACK * TCTL_CHANNELWISE_SLACK;
}

extern const tctl_channelwise tctl_channelwise_portable;
#if defined(__x86_64__)
extern const tctl_channelwise tctl_channelwise_avx2, tctl_channelwise_avx512;
#elif defined(__aarch64__)
extern const tctl_channelwise tctl_channelwise_neon;
#endif

#endif
