/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for the engine's tests: a fixed sequence (SplitMix64), and a digest of results. */
#ifndef TCTL_TESTS_ENGINE_NUMBERS_H
#define TCTL_TESTS_ENGINE_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline uint64_t next_number(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* In [-1, 1), multiples of 2^-23. */
static inline void fill_floats(float *out, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (float)((double)(next_number(&seed) >> 40) * 0x1p-23 - 1.0);
}

/* n numbers (at least one); free with free. */
static inline float *random_floats(size_t n, uint64_t seed)
{
    float *out = malloc((n ? n : 1) * sizeof *out);
    if (!out)
        abort();
    fill_floats(out, n, seed);
    return out;
}

/* FNV-1a over the bits, every NaN counted as one. */
static inline uint64_t digest_floats(uint64_t hash, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        if ((bits & 0x7fffffffu) > 0x7f800000u)
            bits = 0x7fc00000u;
        for (int b = 0; b < 4; b++)
            hash = (hash ^ ((bits >> (8 * b)) & 0xffu)) * 0x100000001b3u;
    }
    return hash;
}

#define DIGEST_START 0xcbf29ce484222325u

#endif
