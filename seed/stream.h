/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams by name, and draws at addresses (trainctl/host/random.h says what an address is).
 *
 * The key of a stream is the first 8 bytes (little-endian words) of
 * SHA-256("trainctl-stream 1" NUL, root seed as 8 little-endian bytes, the name's bytes).
 *
 * All functions are [any], pure, and give the same bits on every machine. docs/random.md is the long form.
 */
#ifndef TCTL_SEED_STREAM_H
#define TCTL_SEED_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "trainctl/host/random.h"

/* The address of draw 0 in the stream `name` of `seed`. Hashes: ask once per stream, then set `when` and `index`
 * of the result. Example: seed 1029, "train.shuffle" has the key e385f9da dde461ad. */
tctl_random_address tctl_stream(uint64_t seed, const char *name, uint32_t when, uint64_t index);

/* A 64-bit seed for somebody else's generator ("torch", "numpy"): the first 8 bytes, little-endian, of the same
 * hash with "trainctl-foreign 1". Many generators use only the low 32 bits; between k names two of those are
 * equal by chance with probability k^2/2^33 (one in 10^6 for k = 93). Where names are numbered, use the next. */
uint64_t tctl_foreign_seed(uint64_t seed, const char *name);

/* The seed of number `index` in a family of generators ("torch.worker", 3). Within a family the low 32 bits
 * are a permutation of the index: all 2^32 of them are distinct, by construction. */
uint64_t tctl_foreign_seed_indexed(uint64_t seed, const char *family, uint32_t index);

/* One draw; tctl_random's comments define the values. */
uint32_t tctl_draw_bits(const tctl_random_address *, uint64_t draw);
float tctl_draw_uniform(const tctl_random_address *, uint64_t draw);
uint32_t tctl_draw_bounded(const tctl_random_address *, uint64_t draw, uint32_t n);
float tctl_draw_normal(const tctl_random_address *, uint64_t draw);

/* out[i] = draw first + i; the same values as one by one, several times faster. */
void tctl_fill_bits(const tctl_random_address *, uint64_t first, size_t n, uint32_t *out);
void tctl_fill_uniform(const tctl_random_address *, uint64_t first, size_t n, float *out);
void tctl_fill_normal(const tctl_random_address *, uint64_t first, size_t n, float *out);

#endif
