/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams by name, and draws at addresses (trainctl/host/random.h says what an address is).
 *
 * The key of a stream is the first 8 bytes (little-endian words) of
 * SHA-256("trainctl-stream 1" NUL, root seed as 8 little-endian bytes, the name's bytes).
 */
#ifndef TCTL_SEED_STREAM_H
#define TCTL_SEED_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "trainctl/host/random.h"

/* The address of draw 0 in the stream `name` of `seed`. [any] */
tctl_random_address tctl_stream(uint64_t seed, const char *name, uint32_t when, uint64_t index);

/* A 64-bit seed for somebody else's generator ("torch", "numpy.worker.3"): low 32 bits differ between names. */
uint64_t tctl_foreign_seed(uint64_t seed, const char *name);

uint32_t tctl_draw_bits(const tctl_random_address *, uint64_t draw);
float tctl_draw_uniform(const tctl_random_address *, uint64_t draw);
uint32_t tctl_draw_bounded(const tctl_random_address *, uint64_t draw, uint32_t n);
float tctl_draw_normal(const tctl_random_address *, uint64_t draw);

/* out[i] = draw first + i; the same values as one by one, several times faster. */
void tctl_fill_bits(const tctl_random_address *, uint64_t first, size_t n, uint32_t *out);
void tctl_fill_uniform(const tctl_random_address *, uint64_t first, size_t n, float *out);
void tctl_fill_normal(const tctl_random_address *, uint64_t first, size_t n, float *out);

#endif
