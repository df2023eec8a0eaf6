/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor as it lies in a container: where, and in which order. Its payload is its elements in C order of its shape,
 * each little-endian, bit for bit: a NaN keeps its sign and its payload.
 */
#ifndef TCTL_MANIFEST_CONTENT_ARRAY_H
#define TCTL_MANIFEST_CONTENT_ARRAY_H

#include "manifest/content/source.h"
#include "manifest/digest.h"

enum { TCTL_ARRAY_RANK = 64 };

typedef struct tctl_array {
    const char *dtype;      /* "f32", "bf16", "i64", "bool", "c64", …; else as the format calls it */
    uint32_t element_bytes; /* 0 only where there are no elements, or for zero-size types */
    uint32_t swap_bytes;    /* big-endian words of this size; 0: little-endian, or bytes */
    uint32_t rank;
    const uint64_t *shape;   /* [rank] */
    const uint64_t *strides; /* [rank], in elements; NULL: C order without gaps */
    uint64_t n_elements;
    tctl_source *source;
    uint64_t offset; /* of the first element, in bytes */
} tctl_array;

/* Elements of a shape; false on overflow of 2^63. */
bool tctl_shape_elements(const uint64_t *shape, uint32_t rank, uint64_t *ret);

/* Strides that are those of C order become NULL. TCTL_EFORMAT if an element lies outside of bytes [offset, limit) of the
 * source; `what` is for the message. */
tctl_status tctl_array_check(tctl_array *, uint64_t limit, const char *what, tctl_error *err);

/* Reads the payload from its first element on. A tensor that is not in C order is loaded whole, and refused with
 * TCTL_EUNSUPPORTED if it spans more than TCTL_GATHER_BYTES. */
#define TCTL_GATHER_BYTES ((uint64_t)512 << 20)
typedef struct tctl_array_reader {
    const tctl_array *tensor;
    unsigned char *span; /* from malloc; NULL in C order */
    uint64_t next;       /* element */
} tctl_array_reader;
tctl_status tctl_array_begin(const tctl_array *, tctl_array_reader *ret, tctl_error *err);
/* The next elements: as many as fit into `room` bytes (at least one must), 0 at the end. */
tctl_status tctl_array_next(tctl_array_reader *, void *into, size_t room, size_t *ret_n, tctl_error *err);
void tctl_array_end(tctl_array_reader *);

#endif
