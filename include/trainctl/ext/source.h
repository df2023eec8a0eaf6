/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.source/1": a data set of `count` samples, each a fixed set of fields.
 *
 * Pure in the sample's index: reading sample i twice, in any order, from any thread, gives the same bytes.
 * Shuffling, batching, caching and prefetching are the host's.
 */
#ifndef TRAINCTL_EXT_SOURCE_H
#define TRAINCTL_EXT_SOURCE_H

#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_SOURCE_ID "trainctl.source/1"

typedef struct tctl_source {
    uint32_t struct_size, reserved;
    /* Number of samples, at least 1. [any] */
    uint64_t (*count)(tctl_stage *);
    /* Writes the fields of a sample to fields[0..cap-1]; returns how many there are (more than `cap`: call
     * again with room). A class label is a field "label", i64, rank 0, from 0. [any] */
    uint32_t (*describe)(tctl_stage *, tctl_field *fields, uint32_t cap);
    /* Reads sample 0 <= i < count into out[0..n_fields-1], whose memory the host made to fit `describe`.
     * TCTL_EFORMAT names path, offset and reason. [worker] */
    tctl_status (*read)(tctl_stage *, uint64_t sample, const tctl_tensor *out, tctl_error *);
} tctl_source;

#ifdef __cplusplus
}
#endif

#endif
