/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers in byte strings of any alignment. */
#ifndef TCTL_BASE_BYTES_H
#define TCTL_BASE_BYTES_H

#include <stdint.h>

static inline void tctl_put_u32(uint8_t *out, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline void tctl_put_u64(uint8_t *out, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static inline uint32_t tctl_get_u32(const uint8_t *in)
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static inline uint64_t tctl_get_u64(const uint8_t *in)
{
    return tctl_get_u32(in) | (uint64_t)tctl_get_u32(in + 4) << 32;
}

#endif
