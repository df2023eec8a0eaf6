/* SPDX-License-Identifier: Apache-2.0 */
/* See loader_sample.h: the cache, and one sample through the chain. */
#include "engine/loader_sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { EMPTY, BEING_WRITTEN, THERE };

tctl_status tctl_sample_cache_make(const tctl_plan *plan, uint64_t bytes, tctl_sample_cache *ret,
                                   tctl_error *err)
{
    tctl_sample_cache cache = {.capacity = bytes / plan->cache_stride};
    if (cache.capacity > plan->count)
        cache.capacity = plan->count;
    *ret = cache;
    if (cache.capacity == 0)
        return TCTL_OK;
    size_t size = 0;
    if (!tctl_mul_size((size_t)cache.capacity, plan->cache_stride, &size))
        return tctl_fail_memory(err, SIZE_MAX);
    /* calloc leaves pages untouched until a sample is put in them */
    cache.data = calloc(1, size);
    cache.states = calloc((size_t)cache.capacity, sizeof *cache.states);
    if (!cache.data || !cache.states) {
        tctl_sample_cache_release(&cache);
        tctl_fail_memory(err, size);
        tctl_hint(err, "a smaller 'cache' under 'resources' gives the same results");
        return TCTL_ENOMEM;
    }
    *ret = cache;
    return TCTL_OK;
}

void tctl_sample_cache_release(tctl_sample_cache *cache)
{
    free(cache->data);
    free(cache->states);
    *cache = (tctl_sample_cache){0};
}

static tctl_tensor *tensors_of(const tctl_maker *maker, uint32_t step)
{
    return maker->tensors + (size_t)step * maker->plan->n_fields;
}

tctl_status tctl_maker_make(const tctl_plan *plan, tctl_sample_cache *cache, tctl_maker *ret, tctl_error *err)
{
    tctl_maker maker = {.plan = plan, .cache = cache};
    maker.scratch = tctl_loader_memory(plan->scratch_bytes);
    maker.tensors = calloc((size_t)plan->n_steps * plan->n_fields, sizeof *maker.tensors);
    if (!maker.scratch || !maker.tensors) {
        tctl_maker_release(&maker);
        return tctl_fail_memory(err, plan->scratch_bytes);
    }
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        for (uint32_t f = 0; f < plan->n_fields; f++) {
            const tctl_field *field = &plan->steps[k].fields[f];
            tctl_tensor *t = &tensors_of(&maker, k)[f];
            t->dtype = field->dtype;
            t->rank = field->rank;
            t->size_bytes = plan->steps[k].bytes[f];
            memcpy(t->dims, field->dims, sizeof t->dims);
        }
    }
    fegetenv(&maker.environment);
    *ret = maker;
    return TCTL_OK;
}

void tctl_maker_release(tctl_maker *maker)
{
    free(maker->scratch);
    free(maker->tensors);
    *maker = (tctl_maker){0};
}

/* Rounding mode, flush-to-zero, exception masks: what a plugin must leave as it was. Costs nothing to ask. */
static uint32_t fp_control(void)
{
#if defined(__SSE__)
    return __builtin_ia32_stmxcsr() & ~(uint32_t)0x3f; /* without the sticky flags */
#else
    return (uint32_t)fegetround();
#endif
}

/* What every call of a plugin is followed by: its status and its manners. */
static tctl_status judge(const tctl_maker *maker, uint32_t step, uint64_t index, uint32_t control,
                         tctl_status status, tctl_error *err)
{
    const char *name = maker->plan->steps[step].part.name;
    if (fp_control() != control) {
        fesetenv(&maker->environment);
        status = tctl_fail(err, TCTL_EPLUGIN, "'%s' changed the floating-point environment", name);
    }
    if (status == TCTL_OK)
        return status;
    if (err && err->code != status)
        tctl_fail(err, status, "'%s' failed without a message: %s", name, tctl_status_text(status));
    if (step == 0)
        tctl_note(err, "at sample %llu of '%s'", (unsigned long long)index, maker->plan->dataset);
    else
        tctl_note(err, "in transform %u ('%s') of sample %llu of '%s'", step - 1, name,
                  (unsigned long long)index, maker->plan->dataset);
    return status;
}

static void place_outputs(tctl_maker *maker, uint32_t step, void *const *final)
{
    const tctl_plan *plan = maker->plan;
    tctl_tensor *out = tensors_of(maker, step);
    for (uint32_t f = 0; f < plan->n_fields; f++) {
        uint8_t place = plan->steps[step].places[f];
        if (place == TCTL_PLACE_SAME)
            out[f].data = (out - plan->n_fields)[f].data;
        else if (place == TCTL_PLACE_FINAL)
            out[f].data = final[f];
        else
            out[f].data = maker->scratch + plan->scratch_at[f][place - TCTL_PLACE_SCRATCH_0];
    }
}

/* Serves step 0 from the cache; false if the sample is not there (yet). */
static bool take_cached(tctl_maker *maker, uint64_t index)
{
    const tctl_plan *plan = maker->plan;
    tctl_sample_cache *cache = maker->cache;
    if (index >= cache->capacity ||
        atomic_load_explicit(&cache->states[index], memory_order_acquire) != THERE)
        return false;
    unsigned char *sample = cache->data + (size_t)index * plan->cache_stride;
    tctl_tensor *out = tensors_of(maker, 0);
    for (uint32_t f = 0; f < plan->n_fields; f++) {
        if (plan->steps[0].places[f] == TCTL_PLACE_FINAL)
            memcpy(out[f].data, sample + plan->cache_at[f], plan->steps[0].bytes[f]);
        else
            out[f].data = sample + plan->cache_at[f]; /* transforms only read their input */
    }
    return true;
}

static void put_in_cache(tctl_maker *maker, uint64_t index)
{
    const tctl_plan *plan = maker->plan;
    tctl_sample_cache *cache = maker->cache;
    uint8_t empty = EMPTY;
    if (index >= cache->capacity ||
        !atomic_compare_exchange_strong_explicit(&cache->states[index], &empty, BEING_WRITTEN,
                                                 memory_order_relaxed, memory_order_relaxed))
        return;
    unsigned char *sample = cache->data + (size_t)index * plan->cache_stride;
    for (uint32_t f = 0; f < plan->n_fields; f++)
        memcpy(sample + plan->cache_at[f], tensors_of(maker, 0)[f].data, plan->steps[0].bytes[f]);
    atomic_store_explicit(&cache->states[index], THERE, memory_order_release);
}

tctl_status tctl_maker_run(tctl_maker *maker, uint32_t epoch, uint64_t index, void *const *final,
                           tctl_error *err)
{
    const tctl_plan *plan = maker->plan;
    uint32_t control = fp_control();
    tctl_status status = TCTL_OK;
    place_outputs(maker, 0, final);
    if (!take_cached(maker, index)) {
        status = plan->source->read(plan->steps[0].part.stage, index, tensors_of(maker, 0), err);
        status = judge(maker, 0, index, control, status, err);
        if (status != TCTL_OK)
            return status;
        put_in_cache(maker, index);
    }
    for (uint32_t k = 1; k < plan->n_steps; k++) {
        const tctl_plan_step *step = &plan->steps[k];
        tctl_random_address address = step->stream;
        address.when = epoch;
        address.index = index;
        place_outputs(maker, k, final);
        status = step->transform->apply(step->part.stage, &address, tensors_of(maker, k - 1),
                                        tensors_of(maker, k), err);
        status = judge(maker, k, index, control, status, err);
        if (status != TCTL_OK)
            return status;
    }
    return TCTL_OK;
}
