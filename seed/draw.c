/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws at an address, one by one and by the array. The array forms compute LANES Philox blocks side by side in
 * plain loops that compilers vectorise; integer arithmetic and fixed double arithmetic, so the same bits.
 */
#include <math.h>

#include "base/fmath_inline.h"
#include "seed/philox.h"
#include "seed/stream.h"

enum { LANES = 8, BLOCK = 4 * LANES }; /* words made at a time */

static const uint64_t REPLACEMENTS = (uint64_t)1 << 33; /* draws from here on stand in for rejected ones */

static void block_of(const tctl_random_address *a, uint64_t draw, uint32_t words[4])
{
    uint32_t counter[4] = {(uint32_t)(draw / 4), a->when, (uint32_t)a->index, (uint32_t)(a->index >> 32)};
    tctl_philox(counter, a->key, words);
}

uint32_t tctl_draw_bits(const tctl_random_address *address, uint64_t draw)
{
    uint32_t words[4];
    block_of(address, draw, words);
    return words[draw % 4];
}

static float uniform_of(uint32_t bits)
{
    return (float)(int32_t)(bits >> 8) * 0x1p-24f;
}

float tctl_draw_uniform(const tctl_random_address *address, uint64_t draw)
{
    return uniform_of(tctl_draw_bits(address, draw));
}

uint32_t tctl_draw_bounded(const tctl_random_address *address, uint64_t draw, uint32_t n)
{
    /* With x the 64 random bits, x n / 2^64 is the result; x is rejected if the low half of the product is below
     * 2^64 mod n, which leaves every result the same number of x. */
    uint64_t rejected_below = (0 - (uint64_t)n) % n;
    for (uint64_t at = draw, next = draw + REPLACEMENTS;; at = next, next += 2) {
        uint64_t low = (uint64_t)tctl_draw_bits(address, at) * n;
        uint64_t high = (uint64_t)tctl_draw_bits(address, at + 1) * n + (low >> 32);
        if ((high << 32 | (uint32_t)low) >= rejected_below)
            return (uint32_t)(high >> 32);
    }
}

static double
to_double(uint32_t bits) /* exact; an integer trick that vectorises without unsigned conversions */
{
    return tctl_double_of_bits(0x4330000000000000u | bits) - 0x1p52;
}

static float normal_of(uint32_t first, uint32_t second)
{
    double u = (to_double(first) + 1.0) * 0x1p-32, v = to_double(second) * 0x1p-32; /* exact; u is never 0 */
    double sine, cosine;
    tctl_sincos_turns_core(v, &sine, &cosine);
    return (float)(sqrt(0.0 - 2.0 * tctl_log_core(u)) * cosine);
}

float tctl_draw_normal(const tctl_random_address *address, uint64_t draw)
{
    uint32_t words[4];
    block_of(address, 2 * draw, words);
    size_t at = 2 * (draw % 2);
    return normal_of(words[at], words[at + 1]);
}

/* The BLOCK words from draw `first` on, a multiple of 4. */
static void fill_block(const tctl_random_address *a, uint64_t first, uint32_t *restrict out)
{
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES], k0 = a->key[0], k1 = a->key[1];
    for (uint32_t i = 0; i < LANES; i++) {
        c0[i] = (uint32_t)(first / 4) + i;
        c1[i] = a->when;
        c2[i] = (uint32_t)a->index;
        c3[i] = (uint32_t)(a->index >> 32);
    }
    for (int round = 0; round < 10; round++) { /* as in tctl_philox */
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c1[i] = (uint32_t)p1;
            c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    for (int i = 0; i < LANES; i++) {
        out[4 * i] = c0[i];
        out[4 * i + 1] = c1[i];
        out[4 * i + 2] = c2[i];
        out[4 * i + 3] = c3[i];
    }
}

void tctl_fill_bits(const tctl_random_address *address, uint64_t first, size_t n, uint32_t *out)
{
    size_t i = 0;
    for (; i < n && (first + i) % 4 != 0; i++)
        out[i] = tctl_draw_bits(address, first + i);
    for (; n - i >= BLOCK; i += BLOCK)
        fill_block(address, first + i, out + i);
    for (; i < n; i++)
        out[i] = tctl_draw_bits(address, first + i);
}

void tctl_fill_uniform(const tctl_random_address *address, uint64_t first, size_t n, float *out)
{
    size_t i = 0;
    for (; i < n && (first + i) % 4 != 0; i++)
        out[i] = tctl_draw_uniform(address, first + i);
    for (; n - i >= BLOCK; i += BLOCK) {
        uint32_t words[BLOCK];
        fill_block(address, first + i, words);
        for (size_t k = 0; k < BLOCK; k++)
            out[i + k] = uniform_of(words[k]);
    }
    for (; i < n; i++)
        out[i] = tctl_draw_uniform(address, first + i);
}

void tctl_fill_normal(const tctl_random_address *address, uint64_t first, size_t n, float *out)
{
    size_t i = 0;
    for (; i < n && (first + i) % 2 != 0; i++)
        out[i] = tctl_draw_normal(address, first + i);
    for (; n - i >= BLOCK / 2; i += BLOCK / 2) {
        uint32_t words[BLOCK];
        fill_block(address, 2 * (first + i), words);
        for (size_t k = 0; k < BLOCK / 2; k++)
            out[i + k] = normal_of(words[2 * k], words[2 * k + 1]);
    }
    for (; i < n; i++)
        out[i] = tctl_draw_normal(address, first + i);
}
