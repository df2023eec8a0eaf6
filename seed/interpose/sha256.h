/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) of short texts, for names of streams only: everything else in the tree uses libcrypto, which
 * this library must not bring into other people's processes.
 */
#ifndef TCTL_SEED_INTERPOSE_SHA256_H
#define TCTL_SEED_INTERPOSE_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* At most 247 bytes (four blocks); more are cut off. Example: "abc" gives ba7816bf…. */
#define TCTL_SHORT_SHA256_LIMIT 247
void tctl_short_sha256(const void *data, size_t size, uint8_t ret[32]);

#endif
