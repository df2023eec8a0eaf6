/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds and streams of a process. Keys and bits are those of seed/stream.c and seed/draw.c; a test compares them.
 *
 * A process's streams are named by its id, so that a parent and its children, and the children among each other, draw
 * different numbers, and each the same ones in every run. Positions are reserved by an atomic addition.
 */
#include <stdio.h>
#include <string.h>

#include "seed/interpose/interpose.h"
#include "seed/interpose/sha256.h"
#include "seed/philox.h"

#define DOMAIN_FOREIGN "trainctl-foreign 1"
#define DOMAIN_STREAM  "trainctl-stream 1"

static struct {
    uint64_t entropy_key, device_key;
    _Atomic uint64_t entropy_at, device_at, n_files;
} streams;

uint64_t tctl_name_hash(const char *domain, uint64_t seed, const char *name)
{
    uint8_t text[TCTL_SHORT_SHA256_LIMIT], digest[32];
    size_t at = strlen(domain) + 1, length = strlen(name);
    memcpy(text, domain, at);
    for (unsigned i = 0; i < 8; i++)
        text[at++] = (uint8_t)(seed >> (8 * i));
    if (length > sizeof text - at)
        length = sizeof text - at;
    memcpy(text + at, name, length);
    tctl_short_sha256(text, at + length, digest);
    uint64_t ret = 0;
    for (unsigned i = 0; i < 8; i++)
        ret |= (uint64_t)digest[i] << (8 * i);
    return ret;
}

uint64_t tctl_libc_seed(const char *name)
{
    char text[64];
    snprintf(text, sizeof text, "libc.%s", name);
    return tctl_name_hash(DOMAIN_FOREIGN, tctl_this.seed, text);
}

static void process_name(const char *name, uint64_t n, char ret[96])
{
    snprintf(ret, 96, "libc.%s.%016llx.%llu", name, (unsigned long long)tctl_this.id, (unsigned long long)n);
}

uint64_t tctl_process_seed(const char *name, uint64_t n)
{
    char text[96];
    process_name(name, n, text);
    return tctl_name_hash(DOMAIN_FOREIGN, tctl_this.seed, text);
}

static uint64_t process_key(const char *name, uint64_t n)
{
    char text[96];
    process_name(name, n, text);
    return tctl_name_hash(DOMAIN_STREAM, tctl_this.seed, text);
}

static void philox_block(uint64_t key, uint64_t number, uint8_t ret[16])
{
    uint32_t counter[4] = {(uint32_t)number, 0, (uint32_t)(number >> 32), 0};
    uint32_t words[4], keys[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    tctl_philox(counter, keys, words);
    for (size_t i = 0; i < 16; i++)
        ret[i] = (uint8_t)(words[i / 4] >> (8 * (i % 4)));
}

void tctl_stream_bytes(uint64_t key, uint64_t at, void *ret, size_t size)
{
    uint8_t *out = ret, made[16];
    while (size > 0) {
        size_t skip = (size_t)(at % 16), n = 16 - skip < size ? 16 - skip : size;
        philox_block(key, at / 16, made);
        memcpy(out, made + skip, n);
        out += n;
        at += n;
        size -= n;
    }
}

void tctl_entropy_bytes(void *ret, size_t size)
{
    uint64_t at = atomic_fetch_add_explicit(&streams.entropy_at, size, memory_order_relaxed);
    tctl_stream_bytes(streams.entropy_key, at, ret, size);
}

uint32_t tctl_device_number(void)
{
    uint8_t b[4];
    uint64_t n = atomic_fetch_add_explicit(&streams.device_at, 1, memory_order_relaxed);
    tctl_stream_bytes(streams.device_key, 4 * n, b, sizeof b);
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

uint64_t tctl_entropy_file_key(void)
{
    uint64_t n = atomic_fetch_add_explicit(&streams.n_files, 1, memory_order_relaxed);
    return process_key("urandom", n);
}

void tctl_streams_reset(void)
{
    streams.entropy_key = process_key("entropy", 0);
    streams.device_key = process_key("random_device", 0);
    atomic_store(&streams.entropy_at, 0);
    atomic_store(&streams.device_at, 0);
    atomic_store(&streams.n_files, 0);
}
