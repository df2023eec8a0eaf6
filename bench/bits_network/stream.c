/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed/stream.h's keys without libcrypto, for processors that this machine has no libcrypto for. The keys are the same
 * (docs/random.md): the build of the tree itself, which has seed/stream.c, gives the same digest.
 */
#include "seed/stream.h"

#include <string.h>

#include "base/error.h"
#include "seed/interpose/sha256.h"

static uint32_t little_endian_word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

tctl_random_address tctl_stream(uint64_t seed, const char *name, uint32_t when, uint64_t index)
{
    static const char domain[] = "trainctl-stream 1";
    uint8_t text[TCTL_SHORT_SHA256_LIMIT], digest[32];
    const size_t length = strlen(name), start = sizeof domain + sizeof seed;
    TCTL_BUG_IF(length > sizeof text - start);
    memcpy(text, domain, sizeof domain);
    for (size_t i = 0; i < sizeof seed; i++)
        text[sizeof domain + i] = (uint8_t)(seed >> (8 * i));
    memcpy(text + start, name, length);
    tctl_short_sha256(text, start + length, digest);
    return (tctl_random_address){
        .key = {little_endian_word(digest), little_endian_word(digest + 4)}, .when = when, .index = index};
}
