/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A random permutation of 0..n-1 without an array: index in, index out.
 *
 * A Feistel network on the smallest even number of bits that holds n, Philox as its round function, walked until
 * the result is below n (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, section 3).
 * Position in an epoch is one integer; any worker, rank or resume point computes its own part.
 */
#ifndef TCTL_SEED_PERMUTATION_H
#define TCTL_SEED_PERMUTATION_H

#include <stdint.h>

typedef struct tctl_permutation {
    uint64_t n;
    uint32_t half_bits;
    uint32_t keys[8]; /* of the rounds, derived from the stream */
} tctl_permutation;

/* The permutation of 0..n-1 (1 <= n <= 2^62) of epoch `epoch` in the stream `name` of `seed`. */
tctl_permutation tctl_permutation_of(uint64_t seed, const char *name, uint32_t epoch, uint64_t n);
uint64_t tctl_permute(const tctl_permutation *, uint64_t i); /* [any] */

#endif
