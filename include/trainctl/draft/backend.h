/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draft extension "trainctl.backend/1": the kernels of one device.
 * May change until it leaves this folder; its id will stay.
 *
 * Memory and one matrix product are here, to fix the style: handles are opaque, work is queued on one stream,
 * and a kernel states which contract it keeps. The list of kernels grows with the CUDA backend.
 */
#ifndef TRAINCTL_DRAFT_BACKEND_H
#define TRAINCTL_DRAFT_BACKEND_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_BACKEND_ID "trainctl.backend/1"

typedef struct tctl_buffer tctl_buffer; /* memory of the device */

typedef struct tctl_backend {
    uint32_t struct_size;
    uint32_t exact; /* 1: bits equal the CPU's exact contract; 0: repeatable on one machine class */
    tctl_status (*allocate)(tctl_stage *, uint64_t size_bytes, tctl_buffer **ret, tctl_error *); /* [step] */
    void (*release)(tctl_stage *, tctl_buffer *);                                                /* [step] */
    tctl_status (*upload)(tctl_stage *, tctl_buffer *, uint64_t offset, const void *, uint64_t size_bytes,
                          tctl_error *); /* [step] */
    tctl_status (*download)(tctl_stage *, const tctl_buffer *, uint64_t offset, void *, uint64_t size_bytes,
                            tctl_error *); /* [step] */
    /* C[m,n] += A[m,k] B[k,n], float32, row-major with leading dimensions in elements. [step] */
    tctl_status (*gemm)(tctl_stage *, int64_t m, int64_t n, int64_t k, const tctl_buffer *a, int64_t lda,
                        const tctl_buffer *b, int64_t ldb, tctl_buffer *c, int64_t ldc, tctl_error *);
    tctl_status (*wait)(tctl_stage *, tctl_error *); /* until all queued work is done [step] */
} tctl_backend;

#ifdef __cplusplus
}
#endif

#endif
