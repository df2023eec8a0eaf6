/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IDX format (as described on the MNIST page of LeCun, Cortes, Burges): a magic number, one big-endian 32-bit
 * size per dimension, then the values, nothing more. Here: unsigned bytes of rank 3 (images) and 1 (labels).
 *
 * Pure functions over bytes, so that the fuzzer can call them. Every byte is foreign: the header decides how
 * much memory is asked for only after the size of the file has been shown to allow it.
 */
#ifndef IDX_FORMAT_H
#define IDX_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define IDX_LABELS 0x00000801u
#define IDX_IMAGES 0x00000803u

/* What is wrong and where. `in_gzip`: the offset counts decompressed bytes. */
typedef struct idx_problem {
    uint64_t offset;
    int in_gzip;
    int out_of_memory;
    char reason[200];
} idx_problem;

typedef struct idx_memory {
    const void *owner;                                       /* handed back to the functions */
    void *(*allocate)(const void *owner, size_t size_bytes); /* NULL: none left */
    void (*release)(const void *owner, void *);
} idx_memory;

typedef struct idx_array {
    uint32_t count, height, width; /* labels: height and width are 1 */
    const unsigned char *values;   /* [count, height, width], inside `bytes` or inside the file */
    void *bytes;                   /* what was decompressed; NULL if `values` points into the file */
} idx_array;

/* Decodes a whole file, plain or gzip (one or several members). 1 on success: the caller releases ret->bytes and
 * keeps `file` as long as ret->values is used. 0 on failure, with *problem filled and nothing to release. */
int idx_decode(const unsigned char *file, size_t size, uint32_t magic, const idx_memory *, idx_array *ret,
               idx_problem *problem);

#endif
