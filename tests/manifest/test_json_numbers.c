/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as RFC 8785 wants them, over the ten thousand values whose text has a published SHA-256.
 *
 * The sequence (RFC 8785, appendix B, points to it): a list of edge cases; the 2000 doubles from 2^-1022 up; then
 * doubles from a chain of SHA-256, beginning with 32 zero bytes, four little-endian doubles a link, zeros and what
 * is not finite left out. A line is the bits in hex without leading zeros, a comma, the text, a line feed.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/num.h"
#include "manifest/digest.h"

/* A third times powers of ten, 3.33…e21 down to 3.33…e-28, in the sequence negative, then positive. */
static const uint64_t thirds[] = {
    0x446696695dbd1cc3, 0x443211ede4974a35, 0x43fce97ca0f21056, 0x43c7213080c1a6ac, 0x439280f39a348556,
    0x435d9b1f5d20d557, 0x4327af4c4a80aaac, 0x42f2f2a36ecd5556, 0x42be51057e155558, 0x428840d131aaaaac,
    0x4253670dc1555557, 0x421f0b4935555557, 0x41e8d5d42aaaaaac, 0x41b3de4355555556, 0x417fca0555555556,
    0x41496e6aaaaaaaab, 0x4114585555555555, 0x40e046aaaaaaaaab, 0x40aa0aaaaaaaaaaa, 0x4074d55555555555,
    0x4040aaaaaaaaaaab, 0x400aaaaaaaaaaaab, 0x3fd5555555555555, 0x3fa1111111111111, 0x3f6b4e81b4e81b4f,
    0x3f35d867c3ece2a5, 0x3f0179ec9cbd821e, 0x3ecbf647612f3696, 0x3e965e9f80f29212, 0x3e61e54c672874db,
    0x3e2ca213d840baf8, 0x3df6e80fe033c8c6, 0x3dc2533fe68fd3d2, 0x3d8d51ffd74c861c, 0x3d5774ccac3d3817,
    0x3d22c3d6f030f9ac, 0x3cee0624b3818f79, 0x3cb804ea293472c7, 0x3c833721ba905bd3, 0x3c4ebe9c5db3c61e,
    0x3c18987d17c304e5, 0x3be3ad30dfcf371d, 0x3baf7b816618582f, 0x3b792f9ab81379bf, 0x3b442615600f9499,
    0x3b101e77800c76e1, 0x3ad9ca58cce0be35, 0x3aa4a1e0a3e6fe90, 0x3a708180831f320d, 0x3a3a68cd9e985016,
};

static const uint64_t edges[] = {
    0x4024000000000000, 0x4014000000000000, 0x3fe0000000000000, 0x3fa999999999999a, 0x3f747ae147ae147b,
    0x3f40624dd2f1a9fc, 0x3f0a36e2eb1c432d, 0x3ed4f8b588e368f1, 0x3ea0c6f7a0b5ed8d, 0x3e6ad7f29abcaf48,
    0x3e35798ee2308c3a, 0x3ed539223589fa95, 0x3ed4ff26cd5a7781, 0x3ed4f95a762283ff, 0x3ed4f8c60703520c,
    0x3ed4f8b72f19cd0d, 0x3ed4f8b5b31c0c8d, 0x3ed4f8b58d1c461a, 0x3ed4f8b5894f7f0e, 0x3ed4f8b588ee37f3,
    0x3ed4f8b588e47da4, 0x3ed4f8b588e3849c, 0x3ed4f8b588e36bb5, 0x3ed4f8b588e36937, 0x3ed4f8b588e368f8,
    0x3ed4f8b588e368f1, 0x3ff0000000000000, 0xbff0000000000000, 0xbfeffffffffffffa, 0xbfeffffffffffffb,
    0x3feffffffffffffa, 0x3feffffffffffffb, 0x3feffffffffffffc, 0x3feffffffffffffe, 0xbfefffffffffffff,
    0xbfefffffffffffff, 0x3fefffffffffffff, 0x3fefffffffffffff, 0x3fd3333333333332, 0x3fd3333333333333,
    0x3fd3333333333334, 0x0010000000000000, 0x000ffffffffffffd, 0x000fffffffffffff, 0x7fefffffffffffff,
    0xffefffffffffffff, 0x4340000000000000, 0xc340000000000000, 0x4430000000000000, 0x44b52d02c7e14af5,
    0x44b52d02c7e14af6, 0x44b52d02c7e14af7, 0x444b1ae4d6e2ef4e, 0x444b1ae4d6e2ef4f, 0x444b1ae4d6e2ef50,
    0x3eb0c6f7a0b5ed8c, 0x3eb0c6f7a0b5ed8d, 0x41b3de4355555553, 0x41b3de4355555554, 0x41b3de4355555555,
    0x41b3de4355555556, 0x41b3de4355555557, 0xbecbf647612f3696, 0x43143ff3c1cb0959,
};

enum {
    N_THIRDS = sizeof thirds / sizeof thirds[0],
    N_EDGES = sizeof edges / sizeof edges[0],
    N_SERIAL = 2000
};
enum { N_LINES = 10000 };

#define SIGN 0x8000000000000000u

static double double_of(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

typedef struct chain {
    tctl_sha256 link;
    unsigned used;
} chain;

static uint64_t next_of_chain(chain *c)
{
    for (;;) {
        if (c->used == 4) {
            c->link = tctl_sha256_of(c->link.bytes, sizeof c->link.bytes);
            c->used = 0;
        }
        uint64_t bits = tctl_get_u64(c->link.bytes + (size_t)8 * c->used++);
        if (isfinite(double_of(bits)) && (bits & ~SIGN) != 0)
            return bits;
    }
}

static uint64_t number(unsigned i, chain *c)
{
    static const uint64_t smallest[] = {0, SIGN, 1, SIGN | 1};
    if (i < 4)
        return smallest[i];
    i -= 4;
    if (i < 2 * N_THIRDS)
        return i < N_THIRDS ? thirds[i] | SIGN : thirds[i - N_THIRDS];
    i -= 2 * N_THIRDS;
    if (i < N_EDGES)
        return edges[i];
    i -= N_EDGES;
    return i < N_SERIAL ? 0x0010000000000000u + i : next_of_chain(c);
}

static void ten_thousand_numbers_have_the_published_text(void **state)
{
    (void)state;
    chain c = {{{0}}, 4};
    tctl_hasher *h = NULL;
    assert_int_equal(tctl_hasher_create(&h, NULL), TCTL_OK);
    for (unsigned i = 0; i < N_LINES; i++) {
        uint64_t bits = number(i, &c);
        char text[TCTL_REAL_TEXT], line[64];
        tctl_format_real(double_of(bits), text);
        int n = snprintf(line, sizeof line, "%llx,%s\n", (unsigned long long)bits, text);
        tctl_hasher_add(h, line, (size_t)n);
    }
    tctl_sha256 digest = tctl_hasher_finish(h);
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(&digest, hex);
    assert_string_equal(hex, "b9f7a8e75ef22a835685a52ccba7f7d6bdc99e34b010992cbc5864cd12be6892");
    tctl_hasher_destroy(h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ten_thousand_numbers_have_the_published_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
