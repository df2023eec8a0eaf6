/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors as they cross the plugin boundary: dense, row-major, borrowed.
 */
#ifndef TRAINCTL_TENSOR_H
#define TRAINCTL_TENSOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_MAX_RANK 6

/* Element types. The numbers are part of the ABI and of the formats that name them; append only. */
enum {
    TCTL_U8 = 1,
    TCTL_I32 = 2,
    TCTL_I64 = 3,
    TCTL_F32 = 4,
    TCTL_F64 = 5,
    TCTL_BF16 = 6,
    TCTL_F16 = 7,
    TCTL_I8 = 8
};

/* Bytes of one element; 0 for a type that this header does not know. */
static inline size_t tctl_dtype_size(int32_t dtype)
{
    switch (dtype) {
    case TCTL_U8:
    case TCTL_I8:
        return 1;
    case TCTL_BF16:
    case TCTL_F16:
        return 2;
    case TCTL_I32:
    case TCTL_F32:
        return 4;
    case TCTL_I64:
    case TCTL_F64:
        return 8;
    default:
        return 0;
    }
}

enum {
    /* Set by a transform's `describe`: the field passes through untouched, the host shares its memory. */
    TCTL_FIELD_UNCHANGED = 1u << 0
};

/*
 * What one field of a sample looks like: `image` u8 [H,W,C], `label` i64 [].
 * Images are channels-last. `dims` counts elements, each from 1 to 2^31-1; a scalar has rank 0.
 */
typedef struct tctl_field {
    const char *name; /* lives as long as the stage that wrote it */
    int32_t dtype;
    uint32_t flags;
    int32_t rank; /* 0..TCTL_MAX_RANK */
    int32_t reserved;
    int64_t dims[TCTL_MAX_RANK];
} tctl_field;

/* A field's payload. `data` is aligned to its element; that of a whole batch to 64 bytes. */
typedef struct tctl_tensor {
    void *data;
    uint64_t size_bytes;
    int32_t dtype;
    int32_t rank;
    int64_t dims[TCTL_MAX_RANK];
} tctl_tensor;

/* Number of elements; the product of no dimensions is 1. */
static inline int64_t tctl_dims_count(const int64_t *dims, int32_t rank)
{
    int64_t n = 1;
    for (int32_t i = 0; i < rank; i++)
        n *= dims[i];
    return n;
}

/* Index of the field of that name; n if there is none. */
static inline uint32_t tctl_field_find(const tctl_field *fields, uint32_t n, const char *name)
{
    uint32_t i = 0;
    while (i < n && strcmp(fields[i].name, name) != 0)
        i++;
    return i;
}

#ifdef __cplusplus
}
#endif

#endif
