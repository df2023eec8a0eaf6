/* SPDX-License-Identifier: Apache-2.0 */
/* See loader_sample.h: from a data set's parts to a checked plan. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "engine/loader_sample.h"
#include "seed/stream.h"

void *tctl_loader_memory(size_t size_bytes)
{
    size_t padded = 0;
    if (!tctl_add_size(size_bytes ? size_bytes : 1, 63, &padded))
        return NULL;
    padded &= ~(size_t)63;
    void *memory = aligned_alloc(64, padded);
    if (memory)
        memset(memory, 0, padded);
    return memory;
}

static size_t pad64(size_t n)
{
    return (n + 63) & ~(size_t)63;
}

/* Size in bytes of a field that a part described; a broken description is the part's fault. */
static tctl_status check_field(const tctl_plan_step *step, const tctl_field *field, size_t *ret_bytes,
                               tctl_error *err)
{
    size_t bytes = tctl_dtype_size(field->dtype);
    if (!field->name || bytes == 0)
        return tctl_fail(err, TCTL_EPLUGIN, "'%s' describes a field without a name or with unknown dtype %d",
                         step->part.name, field->dtype);
    if (field->rank < 0 || field->rank >= TCTL_MAX_RANK)
        return tctl_fail(err, TCTL_EPLUGIN,
                         "'%s' describes field '%s' with rank %d; 0 to %d can be put in a batch",
                         step->part.name, field->name, field->rank, TCTL_MAX_RANK - 1);
    for (int32_t i = 0; i < field->rank; i++) {
        if (field->dims[i] < 1 || field->dims[i] > INT32_MAX)
            return tctl_fail(err, TCTL_EPLUGIN, "'%s' describes field '%s' with %lld as dimension %d",
                             step->part.name, field->name, (long long)field->dims[i], i);
        if (!tctl_mul_size(bytes, (size_t)field->dims[i], &bytes) || bytes > SIZE_MAX / 4)
            return tctl_fail(err, TCTL_EPLUGIN, "'%s' describes field '%s' as larger than memory",
                             step->part.name, field->name);
    }
    *ret_bytes = bytes;
    return TCTL_OK;
}

static tctl_status plan_source(tctl_plan *plan, const tctl_part *part, tctl_error *err)
{
    tctl_plan_step *step = &plan->steps[0];
    step->part = *part;
    plan->source = tctl_plugin_extension(part->plugin, TCTL_SOURCE_ID);
    if (!plan->source)
        return tctl_fail(err, TCTL_EPLUGIN, "'%s' cannot be read from: plugin '%s' does not provide '%s'",
                         part->name, part->plugin->name, TCTL_SOURCE_ID);
    plan->count = plan->source->count(part->stage);
    if (plan->count < 1 || plan->count > (uint64_t)1 << 62)
        return tctl_fail(err, TCTL_EPLUGIN, "'%s' says that it has %llu samples", part->name,
                         (unsigned long long)plan->count);
    plan->n_fields = plan->source->describe(part->stage, step->fields, TCTL_LOADER_MAX_FIELDS);
    if (plan->n_fields < 1 || plan->n_fields > TCTL_LOADER_MAX_FIELDS)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has %u fields; samples have 1 to %d", part->name,
                         plan->n_fields, TCTL_LOADER_MAX_FIELDS);
    for (uint32_t f = 0; f < plan->n_fields; f++) {
        tctl_status status = check_field(step, &step->fields[f], &step->bytes[f], err);
        if (status != TCTL_OK)
            return status;
        step->fields[f].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    }
    return TCTL_OK;
}

static bool same_shape(const tctl_field *a, const tctl_field *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static tctl_status plan_transform(tctl_plan *plan, uint32_t k, const tctl_part *part, uint64_t seed,
                                  tctl_error *err)
{
    tctl_plan_step *step = &plan->steps[k];
    tctl_field in[TCTL_LOADER_MAX_FIELDS];
    step->part = *part;
    step->transform = tctl_plugin_extension(part->plugin, TCTL_TRANSFORM_ID);
    if (!step->transform)
        return tctl_fail(err, TCTL_EPLUGIN, "'%s' cannot transform: plugin '%s' does not provide '%s'",
                         part->name, part->plugin->name, TCTL_TRANSFORM_ID);
    for (uint32_t i = 1; i < k; i++) {
        if (strcmp(plan->steps[i].part.name, part->name) == 0) /* they would draw the same numbers */
            return tctl_fail(err, TCTL_EINVAL, "two transforms of '%s' are called '%s'", plan->dataset,
                             part->name);
    }
    char stream[512];
    int length = snprintf(stream, sizeof stream, "%s.transform.%s", plan->dataset, part->name);
    if (length < 0 || (size_t)length >= sizeof stream)
        return tctl_fail(err, TCTL_EINVAL, "the name of transform %u of '%.64s' is too long", k - 1,
                         plan->dataset);
    step->stream = tctl_stream(seed, stream, 0, 0);
    memcpy(in, step[-1].fields, sizeof in);
    for (uint32_t f = 0; f < plan->n_fields; f++)
        in[f].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    tctl_status status = step->transform->describe(part->stage, in, plan->n_fields, step->fields, err);
    if (status != TCTL_OK) {
        tctl_note(err, "as transform %u of '%s'", k - 1, plan->dataset);
        return status;
    }
    for (uint32_t f = 0; f < plan->n_fields; f++) {
        status = check_field(step, &step->fields[f], &step->bytes[f], err);
        if (status != TCTL_OK)
            return status;
        if (strcmp(step->fields[f].name, in[f].name) != 0)
            return tctl_fail(err, TCTL_EPLUGIN,
                             "'%s' renames field '%s' to '%s'; fields keep names and order", part->name,
                             in[f].name, step->fields[f].name);
        if ((step->fields[f].flags & TCTL_FIELD_UNCHANGED) && !same_shape(&in[f], &step->fields[f]))
            return tctl_fail(err, TCTL_EPLUGIN, "'%s' calls field '%s' unchanged and changes its shape",
                             part->name, in[f].name);
    }
    return TCTL_OK;
}

/* Decides where each step's result of field f lies, and gives it scratch and cache room. */
static tctl_status place_field(tctl_plan *plan, uint32_t f, tctl_error *err)
{
    uint32_t last = 0;
    for (uint32_t k = 1; k < plan->n_steps; k++)
        last = plan->steps[k].fields[f].flags & TCTL_FIELD_UNCHANGED ? last : k;
    uint32_t turn = 0;
    size_t room[2] = {0, 0};
    for (uint32_t k = 0; k < plan->n_steps; k++) {
        tctl_plan_step *step = &plan->steps[k];
        if (k > 0 && (step->fields[f].flags & TCTL_FIELD_UNCHANGED)) {
            step->places[f] = TCTL_PLACE_SAME;
        } else if (k == last) {
            step->places[f] = TCTL_PLACE_FINAL;
        } else {
            step->places[f] = (uint8_t)(TCTL_PLACE_SCRATCH_0 + turn);
            room[turn] = step->bytes[f] > room[turn] ? step->bytes[f] : room[turn];
            turn ^= 1;
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        plan->scratch_at[f][i] = plan->scratch_bytes;
        if (!tctl_add_size(plan->scratch_bytes, pad64(room[i]), &plan->scratch_bytes))
            return tctl_fail(err, TCTL_EPLUGIN, "the fields of '%s' are larger than memory", plan->dataset);
    }
    plan->cache_at[f] = plan->cache_stride;
    if (!tctl_add_size(plan->cache_stride, pad64(plan->steps[0].bytes[f]), &plan->cache_stride))
        return tctl_fail(err, TCTL_EPLUGIN, "the fields of '%s' are larger than memory", plan->dataset);
    return TCTL_OK;
}

tctl_status tctl_plan_make(const tctl_dataset *dataset, uint64_t seed, tctl_plan *ret, tctl_error *err)
{
    tctl_plan plan = {.dataset = dataset->name, .n_steps = dataset->n_transforms + 1};
    plan.steps = calloc(plan.n_steps, sizeof *plan.steps);
    if (!plan.steps)
        return tctl_fail_memory(err, plan.n_steps * sizeof *plan.steps);
    tctl_status status = plan_source(&plan, &dataset->source, err);
    for (uint32_t k = 1; status == TCTL_OK && k < plan.n_steps; k++)
        status = plan_transform(&plan, k, &dataset->transforms[k - 1], seed, err);
    for (uint32_t f = 0; status == TCTL_OK && f < plan.n_fields; f++)
        status = place_field(&plan, f, err);
    if (status != TCTL_OK) {
        tctl_plan_release(&plan);
        return status;
    }
    *ret = plan;
    return TCTL_OK;
}

void tctl_plan_release(tctl_plan *plan)
{
    free(plan->steps);
    plan->steps = NULL;
}
