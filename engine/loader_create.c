/* SPDX-License-Identifier: Apache-2.0 */
/* See loader.h and loader_ring.h: making a loader and taking it apart. */
#include "engine/loader_ring.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "seed/stream.h"

enum { MAX_WORKERS = 1024 };

static size_t pad64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* Cuts slot `s` out of the loader's memory: *storage and *indices move on by what it takes. */
static void lay_out_slot(tctl_loader *loader, tctl_loader_slot *s, uint64_t room, unsigned char **storage,
                         uint64_t **indices)
{
    const tctl_plan_step *last = &loader->plan.steps[loader->plan.n_steps - 1];
    for (uint32_t f = 0; f < loader->plan.n_fields; f++) {
        const tctl_field *field = &last->fields[f];
        tctl_tensor *t = &s->tensors[f];
        t->data = *storage;
        t->dtype = field->dtype;
        t->rank = field->rank + 1;
        memcpy(t->dims + 1, field->dims, (size_t)field->rank * sizeof field->dims[0]);
        *storage += pad64((size_t)room * last->bytes[f]);
    }
    s->batch.n_fields = loader->plan.n_fields;
    s->batch.fields = loader->fields;
    s->batch.tensors = s->tensors;
    s->batch.indices = s->indices = *indices;
    *indices += room;
}

/* Bytes of one slot's tensors, each padded to 64; SIZE_MAX if that is more than memory can address. */
static size_t slot_size(const tctl_loader *loader, uint64_t room)
{
    const size_t *bytes = loader->plan.steps[loader->plan.n_steps - 1].bytes;
    size_t total = 0;
    for (uint32_t f = 0; f < loader->plan.n_fields; f++) {
        size_t size = 0;
        if (!tctl_mul_size((size_t)room, bytes[f], &size) || size > SIZE_MAX - 64 ||
            !tctl_add_size(total, pad64(size), &total))
            return SIZE_MAX;
    }
    return total;
}

static tctl_status make_slots(tctl_loader *loader, tctl_error *err)
{
    uint64_t room = loader->batch < loader->plan.count ? loader->batch : loader->plan.count;
    size_t size = slot_size(loader, room), n_indices = 0;
    if (!tctl_mul_size(size, loader->n_slots, &size) ||
        !tctl_mul_size((size_t)room, loader->n_slots, &n_indices))
        size = SIZE_MAX;
    if (size < SIZE_MAX) {
        loader->slots = calloc(loader->n_slots, sizeof *loader->slots);
        loader->indices = calloc(n_indices, sizeof *loader->indices);
        loader->storage = tctl_loader_memory(size);
    }
    if (!loader->slots || !loader->indices || !loader->storage) {
        tctl_fail_memory(err, size);
        tctl_note(err, "for %u batches of %llu samples of '%s'", loader->n_slots, (unsigned long long)room,
                  loader->plan.dataset);
        tctl_hint(err, "a smaller 'prefetch' under 'resources' gives the same results");
        return TCTL_ENOMEM;
    }
    unsigned char *storage = loader->storage;
    uint64_t *indices = loader->indices;
    for (uint32_t i = 0; i < loader->n_slots; i++)
        lay_out_slot(loader, &loader->slots[i], room, &storage, &indices);
    return TCTL_OK;
}

/* Starts the threads with all signals blocked: those are for the thread that waits for them. */
static tctl_status start_workers(tctl_loader *loader, tctl_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = 0;
    while (failed == 0 && loader->n_started < loader->n_workers) {
        tctl_loader_worker *w = &loader->workers[loader->n_started];
        failed = pthread_create(&w->thread, NULL, tctl_loader_worker_main, w);
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
    free(loader->storage);
    free(loader->indices);
    free(loader->workers);
    free(loader->slots);
    tctl_sample_cache_release(&loader->cache);
    tctl_plan_release(&loader->plan);
    free(loader);
}
