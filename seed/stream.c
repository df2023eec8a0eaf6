/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From (root seed, name) to keys and seeds. SHA-256 so that names which differ in one letter share nothing and no
 * arithmetic on seeds ("seed + worker") can make two streams meet.
 */
#include "seed/stream.h"

#include <openssl/evp.h>
#include <string.h>

#include "base/error.h"
#include "seed/permutation.h"

/* SHA-256(domain with its NUL, seed as 8 little-endian bytes, name without its NUL). libcrypto can fail here only
 * for want of memory or for a broken installation, and no caller could go on without its seed. */
static void hash_name(const char *domain, uint64_t seed, const char *name, unsigned char digest[32])
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(seed >> (8 * i));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    TCTL_BUG_IF(!context || EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1 ||
                EVP_DigestUpdate(context, domain, strlen(domain) + 1) != 1 ||
                EVP_DigestUpdate(context, bytes, sizeof bytes) != 1 ||
                EVP_DigestUpdate(context, name, strlen(name)) != 1 ||
                EVP_DigestFinal_ex(context, digest, NULL) != 1);
    EVP_MD_CTX_free(context);
}

static uint32_t little_endian_word(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

tctl_random_address tctl_stream(uint64_t seed, const char *name, uint32_t when, uint64_t index)
{
    unsigned char digest[32];
    hash_name("trainctl-stream 1", seed, name, digest);
    return (tctl_random_address){
        .key = {little_endian_word(digest), little_endian_word(digest + 4)},
        .when = when,
        .index = index,
    };
}

uint64_t tctl_foreign_seed(uint64_t seed, const char *name)
{
    unsigned char digest[32];
    hash_name("trainctl-foreign 1", seed, name, digest);
    return little_endian_word(digest) | (uint64_t)little_endian_word(digest + 4) << 32;
}

uint64_t tctl_foreign_seed_indexed(uint64_t seed, const char *family, uint32_t index)
{
    unsigned char digest[32];
    hash_name("trainctl-foreign 1", seed, family, digest);
    tctl_random_address stream = {.key = {little_endian_word(digest), little_endian_word(digest + 4)}};
    tctl_permutation low = tctl_permutation_at(&stream, (uint64_t)1 << 32);
    stream.index = index;
    return (uint64_t)tctl_draw_bits(&stream, 0) << 32 | tctl_permute(&low, index);
}
