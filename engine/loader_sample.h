/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the loader: how one sample is made. A plan says what each step of the chain (step 0 reads, step k is
 * transform k-1) does to each field and where the result lies; it is made once and then only read. A maker is one
 * thread's scratch memory. Many makers work on one plan at once.
 *
 * Invariants of a plan: field names and order are the same at every step; a field that a step leaves unchanged
 * has the shape and dtype that it had before; the last step that changes a field writes it where the batch
 * wants it, earlier ones alternate between two scratch buffers, so nothing is copied without need.
 */
#ifndef TCTL_ENGINE_LOADER_SAMPLE_H
#define TCTL_ENGINE_LOADER_SAMPLE_H

#include <fenv.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/ext/transform.h"

#define TCTL_LOADER_MAX_FIELDS 16

enum { TCTL_PLACE_SAME, TCTL_PLACE_FINAL, TCTL_PLACE_SCRATCH_0, TCTL_PLACE_SCRATCH_1 };

typedef struct tctl_plan_step {
    tctl_part part;
    const tctl_transform *transform; /* NULL for step 0 */
    tctl_random_address stream;      /* its own; `when` and `index` are set per sample */
    tctl_field fields[TCTL_LOADER_MAX_FIELDS];
    size_t bytes[TCTL_LOADER_MAX_FIELDS];
    uint8_t places[TCTL_LOADER_MAX_FIELDS]; /* TCTL_PLACE_… */
} tctl_plan_step;

typedef struct tctl_plan {
    const char *dataset;
    const tctl_source *source;
    uint64_t count; /* samples of the source */
    uint32_t n_fields, n_steps;
    tctl_plan_step *steps;                        /* [n_steps] */
    size_t scratch_at[TCTL_LOADER_MAX_FIELDS][2]; /* offsets in a maker's scratch */
    size_t scratch_bytes;
    size_t cache_at[TCTL_LOADER_MAX_FIELDS]; /* offsets in a cached sample */
    size_t cache_stride;                     /* bytes of a cached sample */
} tctl_plan;

/* Samples as read. Sample i has a place if i < capacity: nothing is ever thrown out, so there is no order in which
 * it could depend on time. */
typedef struct tctl_sample_cache {
    uint64_t capacity;
    unsigned char *data;      /* [capacity * cache_stride] */
    _Atomic(uint8_t) *states; /* [capacity]: 0 empty, 1 being written, 2 there */
} tctl_sample_cache;

typedef struct tctl_maker {
    const tctl_plan *plan;
    tctl_sample_cache *cache;
    unsigned char *scratch;
    tctl_tensor *tensors; /* [n_steps][n_fields] */
    fenv_t environment;   /* of the thread that made it, put back where a plugin changed it */
} tctl_maker;

/* `count`, `describe` of the whole chain. TCTL_EPLUGIN for a part that breaks its contract; what a transform's
 * describe says. The data set is borrowed until tctl_plan_release, which a zeroed plan survives. */
tctl_status tctl_plan_make(const tctl_dataset *, uint64_t seed, tctl_plan *ret, tctl_error *err);
void tctl_plan_release(tctl_plan *);

/* Room for as many samples as fit in `bytes`; none is fine. */
tctl_status tctl_sample_cache_make(const tctl_plan *, uint64_t bytes, tctl_sample_cache *ret,
                                   tctl_error *err);
void tctl_sample_cache_release(tctl_sample_cache *);

tctl_status tctl_maker_make(const tctl_plan *, tctl_sample_cache *, tctl_maker *ret, tctl_error *err);
void tctl_maker_release(tctl_maker *);

/* Makes sample `index` of `epoch`; field f goes to final[f], aligned to its element. Allocates nothing. */
tctl_status tctl_maker_run(tctl_maker *, uint32_t epoch, uint64_t index, void *const *final, tctl_error *err);

/* Zeroed and aligned to 64 bytes, for free(). NULL if memory is out. */
void *tctl_loader_memory(size_t size_bytes);

#endif
