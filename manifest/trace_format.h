/* SPDX-License-Identifier: Apache-2.0 */
/* What the writer and the reader of the trace share; the format itself is in trace.h. */
#ifndef TCTL_MANIFEST_TRACE_FORMAT_H
#define TCTL_MANIFEST_TRACE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define TCTL_TRACE_MAGIC "TCTLTRC1"

enum { TCTL_TRACE_MAX_FIELDS = 1 << 20, TCTL_TRACE_MAX_NAME = 4096 };

static inline size_t tctl_trace_record_bytes(uint32_t n_fields)
{
    return 16 + 16 * (size_t)n_fields;
}

/* XXH3-64, seed 0, of a record without its check: the step's 8 bytes, then the values. So that they stand side by
 * side, the step is copied to where the check belongs; the caller puts the check there. */
uint64_t tctl_trace_check(uint8_t *record, uint32_t n_fields);

#endif
