/* SPDX-License-Identifier: Apache-2.0 */
/* Digests: SHA-256 (FIPS 180-4, through OpenSSL's EVP) for what is recorded, XXH3-128 for the trace. */
#ifndef TCTL_MANIFEST_DIGEST_H
#define TCTL_MANIFEST_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trainctl/host/services.h"

typedef struct tctl_sha256 {
    uint8_t bytes[32];
} tctl_sha256;

#define TCTL_SHA256_HEX 65 /* with the NUL */

tctl_sha256 tctl_sha256_of(const void *data, size_t size);
void tctl_sha256_hex(const tctl_sha256 *, char out[TCTL_SHA256_HEX]);
bool tctl_sha256_parse(const char *hex, tctl_sha256 *ret); /* 64 lower-case digits and a NUL */
bool tctl_sha256_equal(const tctl_sha256 *, const tctl_sha256 *);

/* Incremental. */
typedef struct tctl_hasher tctl_hasher;
tctl_status tctl_hasher_create(tctl_hasher **ret, tctl_error *err);
void tctl_hasher_add(tctl_hasher *, const void *data, size_t size);
tctl_sha256 tctl_hasher_finish(tctl_hasher *); /* and starts over */
void tctl_hasher_destroy(tctl_hasher *);       /* NULL is fine */
/* Adds what an open file holds from its current position to its end, through the caller's `scratch`. */
tctl_status tctl_hasher_add_fd(tctl_hasher *, int fd, const char *name, void *scratch, size_t scratch_size,
                               uint64_t *ret_size, tctl_error *err);

/* Of an open file from its current position to its end; *ret_size is the number of bytes read (NULL: not wanted).
 * tctl_sha256_file follows links and refuses what is not a regular file (TCTL_EINVAL). */
tctl_status tctl_sha256_fd(int fd, const char *name, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err);
tctl_status tctl_sha256_file(const char *path, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err);

/* XXH3 128-bit, seed 0. */
tctl_trace_value tctl_xxh128(const void *data, size_t size);

#endif
