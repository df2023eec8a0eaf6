/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random permutation of 0..n-1 without an array: index in, index out.
 *
 * A Feistel network of 8 rounds on the smallest even number of bits that holds n, at least 8, walked until the
 * result is below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, section 3): at most
 * four steps on average for n > 64. The round keys are Philox's; the round function is two keyed multiplications
 * with Philox's constants, high and low halves joined. Position in an epoch is one integer; any worker, rank or
 * resume point computes its own part.
 *
 * For shuffling, not for secrets. A limit that no shuffle can notice: where n is exactly a power of 4 from 256 on,
 * only even permutations occur.
 */
#ifndef TCTL_SEED_PERMUTATION_H
#define TCTL_SEED_PERMUTATION_H

#include <stdint.h>

#include "trainctl/host/random.h"

#define TCTL_PERMUTATION_ROUNDS 8

typedef struct tctl_permutation {
    uint64_t n;
    uint32_t half_bits;
    uint32_t keys[2 * TCTL_PERMUTATION_ROUNDS];
} tctl_permutation;

/* The permutation of 0..n-1 (1 <= n <= 2^62) of epoch `epoch` in the stream `name` of `seed`. [any] */
tctl_permutation tctl_permutation_of(uint64_t seed, const char *name, uint32_t epoch, uint64_t n);
/* The same from the stream's address, whose `when` is the epoch and whose `index` is ignored. [any] */
tctl_permutation tctl_permutation_at(const tctl_random_address *stream, uint64_t n);
/* Where i < n goes. [any] */
uint64_t tctl_permute(const tctl_permutation *, uint64_t i);

#endif
