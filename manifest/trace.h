/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: the bits of every step, in one append-only file.
 *
 * Format "TCTLTRC1" (all little-endian): 8 bytes magic, u32 number of fields n, u32 0; per field u32 kind, u32
 * length, the name's bytes; zero bytes up to a multiple of 16. Then records of 16 + 16 n bytes: u64 step, u64
 * check (XXH3-64 of the step and the values), then lo and hi of each value. A torn last record is dropped.
 */
#ifndef TCTL_MANIFEST_TRACE_H
#define TCTL_MANIFEST_TRACE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "trainctl/host/services.h"

typedef struct tctl_trace_file tctl_trace_file; /* being written */
tctl_status tctl_trace_create(const char *path, const tctl_trace_field *fields, uint32_t n,
                              tctl_trace_file **ret, tctl_error *err);
tctl_status tctl_trace_append(tctl_trace_file *, uint64_t step, const tctl_trace_value *values,
                              tctl_error *err);
tctl_status tctl_trace_close(tctl_trace_file *, tctl_error *err); /* fsync; frees; NULL is fine */

typedef struct tctl_trace_data { /* read back */
    uint32_t n_fields;
    tctl_trace_field *fields;
    uint64_t n_records;
    const uint64_t *steps;          /* [n_records] */
    const tctl_trace_value *values; /* [n_records * n_fields] */
} tctl_trace_data;
tctl_status tctl_trace_read(tctl_arena *, const char *path, tctl_trace_data **ret, tctl_error *err);

/* Where two traces part. kind: 0 nowhere; else what differs. */
enum {
    TCTL_DIVERGE_NONE = 0,
    TCTL_DIVERGE_FIELDS = 1, /* they do not have the same fields */
    TCTL_DIVERGE_VALUE = 2,  /* `field` of `step` */
    TCTL_DIVERGE_LENGTH = 3  /* one goes on where the other ends, after `step` */
};
typedef struct tctl_divergence {
    int kind;
    uint64_t step;
    const char *field; /* borrowed from the first trace */
    int32_t field_kind;
    tctl_trace_value a, b;
    uint32_t ulps;            /* distance of two floats, for TCTL_TRACE_F32; UINT32_MAX if one is a NaN */
    uint32_t n_fields_differ; /* in that record */
} tctl_divergence;
tctl_divergence tctl_trace_compare(const tctl_trace_data *a, const tctl_trace_data *b);

#endif
