/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the loader: the ring of batch slots and the threads that fill it.
 *
 * Batch b of an epoch lives in slot b mod n_slots. Workers claim pieces of consecutive positions, in order, under
 * one mutex, as long as the batch's slot is free: b < released + n_slots, where `released` counts the batches
 * that the caller has given back. A slot is ready when all its samples are done. Which worker makes a piece
 * decides nothing: every sample is a function of (seed, epoch, index). Of the failures in a batch the one at the
 * lowest position is kept, so that the same failure is reported every time.
 */
#ifndef TCTL_ENGINE_LOADER_RING_H
#define TCTL_ENGINE_LOADER_RING_H

#include <pthread.h>

#include "engine/loader.h"
#include "engine/loader_sample.h"
#include "seed/permutation.h"

typedef struct tctl_loader_slot {
    tctl_loaded_batch batch;
    tctl_tensor tensors[TCTL_LOADER_MAX_FIELDS];
    uint64_t *indices;
    uint64_t done;      /* samples made or failed or skipped after a failure */
    uint64_t failed_at; /* lowest position in the batch that failed; UINT64_MAX: none */
    tctl_error error;
} tctl_loader_slot;

typedef struct tctl_loader_worker {
    tctl_loader *loader;
    pthread_t thread;
    tctl_maker maker;
    tctl_error error;
} tctl_loader_worker;

struct tctl_loader {
    tctl_plan plan;
    tctl_sample_cache cache;
    tctl_field fields[TCTL_LOADER_MAX_FIELDS]; /* of a sample, as handed out */
    bool shuffle;
    uint64_t batch, n_batches;
    tctl_random_address shuffle_stream;

    uint32_t n_slots, n_workers, n_started;
    tctl_loader_slot *slots;
    unsigned char *storage;      /* of all slots' tensors */
    uint64_t *indices;           /* of all slots */
    tctl_loader_worker *workers; /* one more than threads if there are none: the caller's */

    pthread_mutex_t mutex;
    pthread_cond_t work, ready, idle;
    bool has_sync;
    /* the rest is guarded by the mutex; the epoch's description changes only while nothing is being made */
    bool stop, open, holding;
    uint32_t epoch;
    tctl_permutation permutation;
    uint64_t next_batch, next_position; /* to claim */
    uint64_t wanted;                    /* batch that the caller asks for next */
    uint64_t released;                  /* batches that the caller is through with, counted from batch 0 */
    uint32_t active;                    /* pieces being made */
};

/* What a worker's thread does until `stop`; its argument is its tctl_loader_worker. */
void *tctl_loader_worker_main(void *worker);

#endif
