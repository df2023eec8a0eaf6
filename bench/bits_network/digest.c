/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of the trace, from xxHash's header alone: no library to link, so for any processor. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bench/bits_network/host.h"

tctl_trace_value bits_digest(const void *data, size_t size_bytes)
{
    const XXH128_hash_t hash = XXH3_128bits(data, size_bytes);
    return (tctl_trace_value){.lo = hash.low64, .hi = hash.high64};
}
