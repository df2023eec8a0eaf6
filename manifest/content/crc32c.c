/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C by tables of four bits: event files are small, and a table of 16 words needs no initialisation. */
#include "base/bytes.h"
#include "manifest/content/tfrecord.h"

/* Of the reflected polynomial 0x82f63b78. */
static const uint32_t table[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                   0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                   0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};

uint32_t tctl_crc32c(uint32_t crc, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

uint32_t tctl_crc32c_masked(const void *data, size_t size)
{
    uint32_t crc = tctl_crc32c(0, data, size);
    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

bool tctl_tfrecord_starts(const unsigned char *bytes, size_t n)
{
    return n >= 12 && tctl_crc32c_masked(bytes, 8) == tctl_get_u32(bytes + 8);
}
