/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: the bits of every step, in one append-only file.
 *
 * Format "TCTLTRC1" (all little-endian): 8 bytes magic, u32 number of fields n, u32 0; per field u32 kind, u32
 * length, the name's bytes; zero bytes up to a multiple of 16. Then records of 16 + 16 n bytes: u64 step, u64
 * check (XXH3-64, seed 0, of the step's 8 bytes and the values' bytes), then lo and hi of each value. Steps grow; a step
 * 0 holds what was there before the first one, the initial parameters, and zeros. An incomplete last record, which a
 * killed process leaves, is dropped; all other damage is an error.
 */
#ifndef TCTL_MANIFEST_TRACE_H
#define TCTL_MANIFEST_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "trainctl/host/services.h"

/* Being written. One thread at a time. At most 2^20 fields with names of 1 to 4096 bytes. An existing file is never
 * overwritten. Up to 64 kB of records wait in memory. */
typedef struct tctl_trace_file tctl_trace_file;
tctl_status tctl_trace_create(const char *path, const tctl_trace_field *fields, uint32_t n,
                              tctl_trace_file **ret, tctl_error *err);
/* Goes on behind the last record of an existing trace, whose step is *ret_last; an incomplete record is cut off.
 * TCTL_EINVAL if its fields are others, TCTL_EBUSY if a process is still writing it. */
tctl_status tctl_trace_continue(const char *path, const tctl_trace_field *fields, uint32_t n,
                                tctl_trace_file **ret, uint64_t *ret_last, tctl_error *err);
/* TCTL_EINVAL if `step` does not grow or a TCTL_TRACE_F32 value has more than 32 bits. */
tctl_status tctl_trace_append(tctl_trace_file *, uint64_t step, const tctl_trace_value *values,
                              tctl_error *err);
/* Writes what waits in memory; without fsync: what survives the process, not the machine. */
tctl_status tctl_trace_flush(tctl_trace_file *, tctl_error *err);
tctl_status tctl_trace_close(tctl_trace_file *, tctl_error *err); /* fsync; frees; NULL is fine */

typedef struct tctl_trace_data { /* read back */
    uint32_t n_fields;
    tctl_trace_field *fields;
    uint64_t n_records;
    const uint64_t *steps;          /* [n_records] */
    const tctl_trace_value *values; /* [n_records * n_fields] */
    uint64_t torn_bytes;            /* of an incomplete last record, dropped */
} tctl_trace_data;
/* TCTL_EFORMAT with path, offset and reason for a damaged file. */
tctl_status tctl_trace_read(tctl_arena *, const char *path, tctl_trace_data **ret, tctl_error *err);

/* Where two traces part. kind: 0 nowhere; else what differs. */
enum {
    TCTL_DIVERGE_NONE = 0,
    TCTL_DIVERGE_FIELDS = 1, /* they do not have the same fields */
    TCTL_DIVERGE_VALUE = 2,  /* `field` of `step` */
    TCTL_DIVERGE_LENGTH = 3, /* one goes on where the other ends, after `step` */
    TCTL_DIVERGE_STEPS = 4   /* `step` is recorded in one only, though both go on */
};
typedef struct tctl_divergence {
    int kind;
    uint64_t step;
    uint64_t after;    /* the last record before it, in which all is the same; */
    bool is_first;     /* … there is none: it is the first record */
    const char *field; /* borrowed from the first trace */
    int32_t field_kind;
    tctl_trace_value a, b;
    uint32_t
        ulps; /* distance of two floats, for TCTL_TRACE_F32 (0 for 0 and -0); UINT32_MAX if one is a NaN */
    uint32_t n_fields_differ; /* in that record */
} tctl_divergence;
tctl_divergence tctl_trace_compare(const tctl_trace_data *a, const tctl_trace_data *b);

#endif
