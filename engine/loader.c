/* SPDX-License-Identifier: Apache-2.0 */
/* See loader.h and loader_ring.h: claiming, filling and handing over. */
#include "engine/loader_ring.h"

#include <string.h>

enum { PIECE = 8 }; /* samples that a worker claims at a time: small enough that several share a batch */

typedef struct piece {
    tctl_loader_slot *slot;
    uint64_t first, n; /* positions in the batch */
} piece;

/* ---- filling ---------------------------------------------------------------------------------------- */

static tctl_loader_slot *slot_of(const tctl_loader *loader, uint64_t batch)
{
    return &loader->slots[batch % loader->n_slots];
}

static uint64_t samples_in(const tctl_loader *loader, uint64_t batch)
{
    uint64_t left = loader->plan.count - batch * loader->batch;
    return left < loader->batch ? left : loader->batch;
}

static void begin_slot(tctl_loader *loader, uint64_t batch)
{
    tctl_loader_slot *s = slot_of(loader, batch);
    s->batch.n = samples_in(loader, batch);
    s->batch.number = batch;
    for (uint32_t f = 0; f < loader->plan.n_fields; f++) {
        s->tensors[f].dims[0] = (int64_t)s->batch.n;
        s->tensors[f].size_bytes = s->batch.n * loader->plan.steps[loader->plan.n_steps - 1].bytes[f];
    }
    s->done = 0;
    s->failed_at = UINT64_MAX;
}

/* Takes the next piece if there is one to take now. With the mutex held. */
static bool claim(tctl_loader *loader, piece *ret)
{
    uint64_t b = loader->next_batch;
    if (!loader->open || b >= loader->n_batches || b >= loader->released + loader->n_slots)
        return false;
    if (loader->next_position == 0)
        begin_slot(loader, b);
    tctl_loader_slot *s = slot_of(loader, b);
    uint64_t left = s->batch.n - loader->next_position;
    *ret = (piece){s, loader->next_position, left < PIECE ? left : PIECE};
    loader->next_position += ret->n;
    if (loader->next_position == s->batch.n) {
        loader->next_batch++;
        loader->next_position = 0;
    }
    loader->active++;
    return true;
}

/* Makes the samples of a piece, up to the first that fails. Without the mutex: touches only what is the piece's. */
static tctl_status fill(tctl_loader *loader, tctl_loader_worker *w, const piece *p, uint64_t *ret_failed_at)
{
    const tctl_plan *plan = &loader->plan;
    const size_t *bytes = plan->steps[plan->n_steps - 1].bytes;
    for (uint64_t i = p->first; i < p->first + p->n; i++) {
        uint64_t position = p->slot->batch.number * loader->batch + i;
        uint64_t index = loader->shuffle ? tctl_permute(&loader->permutation, position) : position;
        void *final[TCTL_LOADER_MAX_FIELDS];
        for (uint32_t f = 0; f < plan->n_fields; f++)
            final[f] = (unsigned char *)p->slot->tensors[f].data + (size_t)i * bytes[f];
        p->slot->indices[i] = index;
        w->error.code = TCTL_OK; /* the words are written when there is something to say */
        tctl_status status = tctl_maker_run(&w->maker, loader->epoch, index, final, &w->error);
        if (status != TCTL_OK) {
            *ret_failed_at = i;
            return status;
        }
    }
    return TCTL_OK;
}

/* Claims and fills one piece, dropping the mutex meanwhile. False if there was nothing to do. */
static bool work_once(tctl_loader *loader, tctl_loader_worker *w)
{
    piece p;
    if (!claim(loader, &p))
        return false;
    pthread_mutex_unlock(&loader->mutex);
    uint64_t failed_at = UINT64_MAX;
    tctl_status status = fill(loader, w, &p, &failed_at);
    pthread_mutex_lock(&loader->mutex);
    loader->active--;
    p.slot->done += p.n;
    if (status != TCTL_OK && failed_at < p.slot->failed_at) {
        p.slot->failed_at = failed_at;
        p.slot->error = w->error;
    }
    if (p.slot->done == p.slot->batch.n)
        pthread_cond_signal(&loader->ready);
    if (loader->active == 0)
        pthread_cond_signal(&loader->idle);
    return true;
}

void *tctl_loader_worker_main(void *arg)
{
    tctl_loader_worker *w = arg;
    tctl_loader *loader = w->loader;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        if (!work_once(loader, w))
            pthread_cond_wait(&loader->work, &loader->mutex);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- handing over --------------------------------------------------------------------------------------- */

uint64_t tctl_loader_batches(const tctl_loader *loader)
{
    return loader->n_batches;
}

uint64_t tctl_loader_samples(const tctl_loader *loader)
{
    return loader->plan.count;
}

const tctl_field *tctl_loader_fields(const tctl_loader *loader, uint32_t *ret_n)
{
    *ret_n = loader->plan.n_fields;
    return loader->fields;
}

tctl_status tctl_loader_start(tctl_loader *loader, uint32_t epoch, uint64_t first, tctl_error *err)
{
    if (first > loader->n_batches)
        return tctl_fail(err, TCTL_EINVAL, "cannot begin at batch %llu of '%s': an epoch has %llu",
                         (unsigned long long)first, loader->plan.dataset,
                         (unsigned long long)loader->n_batches);
    tctl_random_address stream = loader->shuffle_stream;
    stream.when = epoch;
    pthread_mutex_lock(&loader->mutex);
    loader->open = false; /* nobody begins anything more of the epoch before */
    while (loader->active > 0)
        pthread_cond_wait(&loader->idle, &loader->mutex);
    loader->epoch = epoch;
    loader->permutation = tctl_permutation_at(&stream, loader->plan.count);
    loader->next_batch = loader->wanted = loader->released = first;
    loader->next_position = 0;
    loader->holding = false;
    loader->open = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    return TCTL_OK;
}

/* Waits until batch `wanted` is complete, or makes it in this thread. With the mutex held. */
static tctl_loader_slot *await_wanted(tctl_loader *loader)
{
    uint64_t b = loader->wanted;
    tctl_loader_slot *s = slot_of(loader, b);
    while (loader->next_batch <= b || s->done < s->batch.n) {
        if (loader->n_workers == 0)
            work_once(loader, &loader->workers[0]);
        else
            pthread_cond_wait(&loader->ready, &loader->mutex);
    }
    return s;
}

tctl_status tctl_loader_next(tctl_loader *loader, const tctl_loaded_batch **ret, tctl_error *err)
{
    tctl_status status = TCTL_OK;
    pthread_mutex_lock(&loader->mutex);
    if (loader->holding) {
        loader->holding = false;
        loader->released++;
        pthread_cond_broadcast(&loader->work);
    }
    if (!loader->open) {
        status = tctl_fail(err, TCTL_EINVAL, "no epoch of '%s' was started", loader->plan.dataset);
    } else if (loader->wanted == loader->n_batches) {
        *ret = NULL;
    } else {
        tctl_loader_slot *s = await_wanted(loader);
        if (s->failed_at != UINT64_MAX) { /* stays where it is: asked again, it says the same again */
            status = s->error.code;
            if (err)
                *err = s->error;
        } else {
            loader->wanted++;
            loader->holding = true;
            *ret = &s->batch;
        }
    }
    pthread_mutex_unlock(&loader->mutex);
    return status;
}
