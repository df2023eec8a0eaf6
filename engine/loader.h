/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of a data set, in an order that depends on the seed and the epoch only.
 *
 * N worker threads read and transform samples into slots of a ring; batches are handed over in order. Worker
 * count, prefetch depth and cache decide the time, never a byte: every sample is a function of (seed, epoch,
 * global index). Transform `name` draws from the stream "<dataset>.transform.<name>" at (epoch, index), so one
 * that is left out leaves the others' numbers as they were. With 0 workers the caller's own thread loads. The
 * cache holds the samples with the lowest indices, as read, before any transform, up to its size. No allocation
 * after `create`.
 */
#ifndef TCTL_ENGINE_LOADER_H
#define TCTL_ENGINE_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/tensor.h"

typedef struct tctl_loader_request {
    const tctl_dataset *dataset;
    uint64_t seed;
    bool shuffle;   /* stream "<dataset>.shuffle" */
    bool drop_last; /* leave out a last batch that is not full */
    uint32_t batch; /* samples */
    const tctl_resources *resources;
} tctl_loader_request;

typedef struct tctl_loaded_batch {
    uint64_t n; /* samples, 1..batch */
    uint32_t n_fields;
    const tctl_field *fields;   /* of one sample, after the transforms */
    const tctl_tensor *tensors; /* [n_fields], first dimension n: contiguous */
    const uint64_t *indices;    /* [n] global sample indices */
    uint64_t number;            /* of the batch in its epoch, from 0 */
} tctl_loaded_batch;

typedef struct tctl_loader tctl_loader;

tctl_status tctl_loader_create(const tctl_loader_request *, tctl_loader **ret, tctl_error *err);
void tctl_loader_destroy(tctl_loader *);           /* also in the middle of an epoch; NULL is fine */
uint64_t tctl_loader_batches(const tctl_loader *); /* per epoch */
uint64_t tctl_loader_samples(const tctl_loader *); /* of the data set */
const tctl_field *tctl_loader_fields(const tctl_loader *, uint32_t *ret_n);

/* Begins an epoch (0-based; it is the `when` of every address) at batch `first`. [step] */
tctl_status tctl_loader_start(tctl_loader *, uint32_t epoch, uint64_t first, tctl_error *err);
/* The next batch, or *ret == NULL at the end of the epoch. Valid until the next call. A failure of a worker comes
 * here, at the batch that it belongs to, the same one every time. [step] */
tctl_status tctl_loader_next(tctl_loader *, const tctl_loaded_batch **ret, tctl_error *err);

#endif
