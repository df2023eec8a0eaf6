/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See loader.h: the ring of batch slots and the threads that fill it.
 *
 * Batch b of an epoch lives in slot b mod n_slots. Workers claim pieces of PIECE consecutive positions, in order, under
 * one mutex, as long as the batch's slot is free: b < released + n_slots, where `released` counts the batches
 * that the caller has given back. A slot is ready when all its samples are done. Which worker makes a piece
 * decides nothing: every sample is a function of (seed, epoch, index). Of the failures in a batch the one at the
 * lowest position is kept, so that the same failure is reported every time.
 */
#include "engine/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "engine/loader_sample.h"
#include "seed/permutation.h"
#include "seed/stream.h"

enum { PIECE = 8, MAX_WORKERS = 1024 };

typedef struct slot {
    tctl_loaded_batch batch;
    tctl_tensor tensors[TCTL_LOADER_MAX_FIELDS];
    uint64_t *indices;
    uint64_t done;      /* samples made or failed or skipped after a failure */
    uint64_t failed_at; /* lowest position in the batch that failed; UINT64_MAX: none */
    tctl_error error;
} slot;

typedef struct worker {
    tctl_loader *loader;
    pthread_t thread;
    tctl_maker maker;
    tctl_error error;
} worker;

typedef struct piece {
    slot *slot;
    uint64_t first, n; /* positions in the batch */
} piece;

struct tctl_loader {
    tctl_plan plan;
    tctl_sample_cache cache;
    tctl_field fields[TCTL_LOADER_MAX_FIELDS]; /* of a sample, as handed out */
    bool shuffle;
    uint64_t batch, n_batches;
    tctl_random_address shuffle_stream;

    uint32_t n_slots, n_workers, n_started;
    slot *slots;
    worker *workers; /* one more than threads if there are none: the caller's */

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

/* ---- filling ---------------------------------------------------------------------------------------- */

static slot *slot_of(const tctl_loader *loader, uint64_t batch)
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
    slot *s = slot_of(loader, batch);
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
    slot *s = slot_of(loader, b);
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
static tctl_status fill(tctl_loader *loader, worker *w, const piece *p, uint64_t *ret_failed_at)
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
static bool work_once(tctl_loader *loader, worker *w)
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

static void *worker_main(void *arg)
{
    worker *w = arg;
    tctl_loader *loader = w->loader;
    pthread_mutex_lock(&loader->mutex);
    while (!loader->stop) {
        if (!work_once(loader, w))
            pthread_cond_wait(&loader->work, &loader->mutex);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- making and destroying ---------------------------------------------------------------------------- */

static tctl_status make_slot(tctl_loader *loader, slot *s, tctl_error *err)
{
    const tctl_plan_step *last = &loader->plan.steps[loader->plan.n_steps - 1];
    uint64_t room = loader->batch < loader->plan.count ? loader->batch : loader->plan.count;
    s->indices = calloc((size_t)room, sizeof *s->indices);
    if (!s->indices)
        return tctl_fail_memory(err, (size_t)room * sizeof *s->indices);
    for (uint32_t f = 0; f < loader->plan.n_fields; f++) {
        const tctl_field *field = &last->fields[f];
        tctl_tensor *t = &s->tensors[f];
        size_t size = SIZE_MAX;
        bool fits = tctl_mul_size((size_t)room, last->bytes[f], &size);
        t->data = fits ? tctl_loader_memory(size) : NULL;
        if (!t->data) {
            tctl_fail_memory(err, size);
            tctl_note(err, "for field '%s' of a batch of %llu samples", field->name,
                      (unsigned long long)room);
            return TCTL_ENOMEM;
        }
        t->dtype = field->dtype;
        t->rank = field->rank + 1;
        memcpy(t->dims + 1, field->dims, (size_t)field->rank * sizeof field->dims[0]);
    }
    s->batch.n_fields = loader->plan.n_fields;
    s->batch.fields = loader->fields;
    s->batch.tensors = s->tensors;
    s->batch.indices = s->indices;
    return TCTL_OK;
}

static tctl_status make_slots(tctl_loader *loader, tctl_error *err)
{
    loader->slots = calloc(loader->n_slots, sizeof *loader->slots);
    if (!loader->slots)
        return tctl_fail_memory(err, loader->n_slots * sizeof *loader->slots);
    tctl_status status = TCTL_OK;
    for (uint32_t i = 0; status == TCTL_OK && i < loader->n_slots; i++)
        status = make_slot(loader, &loader->slots[i], err);
    return status;
}

/* Starts the threads with all signals blocked: those are for the thread that waits for them. */
static tctl_status start_workers(tctl_loader *loader, tctl_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    while (failed == 0 && loader->n_started < loader->n_workers) {
        worker *w = &loader->workers[loader->n_started];
        failed = pthread_create(&w->thread, NULL, worker_main, w);
        loader->n_started += failed == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0)
        return tctl_fail_errno(err, failed, "cannot start loader thread %u of %u", loader->n_started + 1,
                               loader->n_workers);
    return TCTL_OK;
}

static tctl_status make_workers(tctl_loader *loader, tctl_error *err)
{
    uint32_t n = loader->n_workers > 0 ? loader->n_workers : 1;
    loader->workers = calloc(n, sizeof *loader->workers);
    if (!loader->workers)
        return tctl_fail_memory(err, n * sizeof *loader->workers);
    for (uint32_t i = 0; i < n; i++) {
        loader->workers[i].loader = loader;
        tctl_status status = tctl_maker_make(&loader->plan, &loader->cache, &loader->workers[i].maker, err);
        if (status != TCTL_OK)
            return status;
    }
    return start_workers(loader, err);
}

static tctl_status init_sync(tctl_loader *loader, tctl_error *err)
{
    int failed = pthread_mutex_init(&loader->mutex, NULL);
    if (failed != 0)
        return tctl_fail_errno(err, failed, "cannot make a mutex");
    /* With default attributes glibc and musl cannot fail here. */
    pthread_cond_init(&loader->work, NULL);
    pthread_cond_init(&loader->ready, NULL);
    pthread_cond_init(&loader->idle, NULL);
    loader->has_sync = true;
    return TCTL_OK;
}

static tctl_status check_request(const tctl_loader_request *request, tctl_error *err)
{
    if (request->batch == 0)
        return tctl_fail(err, TCTL_EINVAL, "a batch of 0 samples; at least 1 is needed");
    if (request->resources->workers > MAX_WORKERS)
        return tctl_fail(err, TCTL_EINVAL, "%u loader threads; at most %d are possible",
                         request->resources->workers, MAX_WORKERS);
    if (request->resources->prefetch >= UINT32_MAX)
        return tctl_fail(err, TCTL_EINVAL, "a prefetch of %u batches is too much",
                         request->resources->prefetch);
    return TCTL_OK;
}

/* Everything after the plan. On failure the caller destroys what there is. */
static tctl_status make_all(const tctl_loader_request *request, tctl_loader *loader, tctl_error *err)
{
    const tctl_resources *resources = request->resources;
    const tctl_plan *plan = &loader->plan;
    loader->batch = request->batch;
    loader->n_batches = plan->count / loader->batch;
    if (!request->drop_last && plan->count % loader->batch != 0)
        loader->n_batches++;
    if (loader->n_batches == 0)
        return tctl_fail(
            err, TCTL_EINVAL,
            "'%s' has %llu samples, fewer than a batch of %u, and an incomplete batch is left out",
            plan->dataset, (unsigned long long)plan->count, request->batch);
    char stream[512];
    int length = snprintf(stream, sizeof stream, "%s.shuffle", plan->dataset);
    if (length < 0 || (size_t)length >= sizeof stream)
        return tctl_fail(err, TCTL_EINVAL, "the name of data set '%.64s' is too long", plan->dataset);
    loader->shuffle = request->shuffle;
    loader->shuffle_stream = tctl_stream(request->seed, stream, 0, 0);
    for (uint32_t f = 0; f < plan->n_fields; f++) {
        loader->fields[f] = plan->steps[plan->n_steps - 1].fields[f];
        loader->fields[f].flags = 0;
    }
    /* No more slots than batches; without threads nobody fills a second one. */
    loader->n_workers = resources->workers;
    loader->n_slots = loader->n_workers > 0 ? resources->prefetch + 1 : 1;
    if (loader->n_slots > loader->n_batches)
        loader->n_slots = (uint32_t)loader->n_batches;
    tctl_status status = init_sync(loader, err);
    if (status == TCTL_OK)
        status = tctl_sample_cache_make(plan, resources->cache_bytes, &loader->cache, err);
    if (status == TCTL_OK)
        status = make_slots(loader, err);
    if (status == TCTL_OK)
        status = make_workers(loader, err);
    return status;
}

tctl_status tctl_loader_create(const tctl_loader_request *request, tctl_loader **ret, tctl_error *err)
{
    tctl_status status = check_request(request, err);
    if (status != TCTL_OK)
        return status;
    tctl_loader *loader = calloc(1, sizeof *loader);
    if (!loader)
        return tctl_fail_memory(err, sizeof *loader);
    status = tctl_plan_make(request->dataset, request->seed, &loader->plan, err);
    if (status == TCTL_OK)
        status = make_all(request, loader, err);
    if (status != TCTL_OK) {
        tctl_loader_destroy(loader);
        return status;
    }
    *ret = loader;
    return TCTL_OK;
}

static void stop_workers(tctl_loader *loader)
{
    pthread_mutex_lock(&loader->mutex);
    loader->stop = true;
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->mutex);
    for (uint32_t i = 0; i < loader->n_started; i++)
        pthread_join(loader->workers[i].thread, NULL);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->idle);
    pthread_mutex_destroy(&loader->mutex);
}

void tctl_loader_destroy(tctl_loader *loader)
{
    if (!loader)
        return;
    if (loader->has_sync)
        stop_workers(loader);
    uint32_t n_makers = loader->n_workers > 0 ? loader->n_workers : 1;
    for (uint32_t i = 0; loader->workers && i < n_makers; i++)
        tctl_maker_release(&loader->workers[i].maker);
    for (uint32_t i = 0; loader->slots && i < loader->n_slots; i++) {
        free(loader->slots[i].indices);
        for (uint32_t f = 0; f < loader->plan.n_fields; f++)
            free(loader->slots[i].tensors[f].data);
    }
    free(loader->workers);
    free(loader->slots);
    tctl_sample_cache_release(&loader->cache);
    tctl_plan_release(&loader->plan);
    free(loader);
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
static slot *await_wanted(tctl_loader *loader)
{
    uint64_t b = loader->wanted;
    slot *s = slot_of(loader, b);
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
        slot *s = await_wanted(loader);
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
