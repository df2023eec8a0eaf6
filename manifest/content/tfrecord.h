/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's file of records: u64 length, u32 its masked CRC-32C, the bytes, u32 their masked CRC-32C. */
#ifndef TCTL_MANIFEST_CONTENT_TFRECORD_H
#define TCTL_MANIFEST_CONTENT_TFRECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli) of the bytes behind those that `crc` is of; 0 to begin. */
uint32_t tctl_crc32c(uint32_t crc, const void *data, size_t size);
/* As the records store it. */
uint32_t tctl_crc32c_masked(const void *data, size_t size);

/* Whether a file that starts with these bytes starts with a record: the CRC of its length is right. */
bool tctl_tfrecord_starts(const unsigned char *bytes, size_t n);

#endif
