/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of sources and transforms: samples in, digests out. Memory behind each output is watched. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "host/conform_probe.h"
#include "manifest/digest.h"
#include "seed/stream.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/transform.h"

#define MAX_FIELDS  16
#define GUARD       64
#define GUARD_BYTE  0x5c
#define N_SAMPLES   64
#define LIMIT_BYTES ((uint64_t)1 << 30)

/* Memory for one sample's fields, each with guard bytes behind it. */
typedef struct sample {
    uint32_t n;
    tctl_tensor tensors[MAX_FIELDS];
    bool own[MAX_FIELDS];
} sample;

static void free_sample(sample *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->own[i])
            free(s->tensors[i].data);
    }
}

static tctl_status check_field(const tctl_field *f, uint64_t *ret_bytes, tctl_error *err)
{
    size_t bytes = tctl_dtype_size(f->dtype);
    if (!f->name || !*f->name)
        return tctl_fail(err, TCTL_EPLUGIN, "describe leaves a field without a name");
    if (!bytes)
        return tctl_fail(err, TCTL_EPLUGIN, "field '%s' has the unknown dtype %d", f->name, f->dtype);
    if (f->rank < 0 || f->rank > TCTL_MAX_RANK)
        return tctl_fail(err, TCTL_EPLUGIN, "field '%s' has rank %d; 0 to %d are possible", f->name, f->rank,
                         TCTL_MAX_RANK);
    for (int32_t d = 0; d < f->rank; d++) {
        if (f->dims[d] < 1 || f->dims[d] > INT32_MAX || !tctl_mul_size(bytes, (size_t)f->dims[d], &bytes) ||
            bytes > LIMIT_BYTES)
            return tctl_fail(err, TCTL_EPLUGIN, "field '%s' has dimension %d of %lld", f->name, d,
                             (long long)f->dims[d]);
    }
    *ret_bytes = bytes;
    return TCTL_OK;
}

static tctl_status make_sample(const tctl_field *fields, uint32_t n, uint8_t fill, sample *ret,
                               tctl_error *err)
{
    memset(ret, 0, sizeof *ret);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t bytes = 0;
        tctl_status status = check_field(&fields[i], &bytes, err);
        if (status)
            return status;
        size_t room = (size_t)(bytes + 2 * GUARD - 1) / GUARD * GUARD;
        room = room - bytes < GUARD ? room + GUARD : room;
        uint8_t *data = aligned_alloc(GUARD, room);
        if (!data)
            return tctl_fail_memory(err, room);
        memset(data, fill, bytes);
        memset(data + bytes, GUARD_BYTE, room - bytes);
        ret->n = i + 1;
        ret->own[i] = true;
        ret->tensors[i] = (tctl_tensor){.data = data, .size_bytes = bytes, .dtype = fields[i].dtype};
        ret->tensors[i].rank = fields[i].rank;
        memcpy(ret->tensors[i].dims, fields[i].dims, sizeof ret->tensors[i].dims);
    }
    return TCTL_OK;
}

/* Digest of all fields; TCTL_EPLUGIN if the stage wrote behind one of them. */
static tctl_status digest_sample(const sample *s, const tctl_field *fields, tctl_trace_value *ret,
                                 tctl_error *err)
{
    tctl_trace_value parts[MAX_FIELDS] = {{0, 0}};
    for (uint32_t i = 0; i < s->n; i++) {
        const uint8_t *data = s->tensors[i].data;
        uint64_t size = s->tensors[i].size_bytes;
        for (uint32_t k = 0; s->own[i] && k < GUARD; k++) {
            if (data[size + k] != GUARD_BYTE)
                return tctl_fail(err, TCTL_EPLUGIN, "field '%s' was written %u bytes behind its end",
                                 fields[i].name, k + 1);
        }
        parts[i] = tctl_xxh128(data, size);
    }
    *ret = tctl_xxh128(parts, s->n * sizeof parts[0]);
    return TCTL_OK;
}

/* ---- source ------------------------------------------------------------------------------------------ */

typedef struct source_job {
    uint64_t count;
    uint32_t n_fields;
    tctl_field fields[MAX_FIELDS];
} source_job;

static tctl_status read_item(tctl_trial *t, uint32_t item, void *arg, tctl_error *err)
{
    const source_job *job = arg;
    const tctl_source *source = t->vtable;
    /* The first half of the items are the first samples, the second half the last ones. */
    uint64_t index = item < t->n / 2 ? item : job->count - (t->n - item);
    sample s;
    tctl_status status = make_sample(job->fields, job->n_fields, t->fill, &s, err);
    if (!status)
        status = source->read(t->single.use->part.stage, index, s.tensors, err);
    if (!status)
        status = digest_sample(&s, job->fields, &t->digests[item], err);
    free_sample(&s);
    return status;
}

static tctl_status run_source(tctl_trial *t, tctl_error *err)
{
    tctl_stage *stage = t->single.use->part.stage;
    const tctl_source *source = t->vtable;
    source_job job = {.count = source->count(stage), .n_fields = source->describe(stage, NULL, 0)};
    if (job.count == 0)
        return tctl_fail(err, TCTL_EPLUGIN, "count is 0");
    if (job.n_fields == 0 || job.n_fields > MAX_FIELDS)
        return tctl_fail(err, TCTL_EPLUGIN, "describe says %u fields; this suite takes 1 to %d", job.n_fields,
                         MAX_FIELDS);
    if (source->describe(stage, job.fields, job.n_fields) != job.n_fields)
        return tctl_fail(err, TCTL_EPLUGIN, "describe says another number of fields the second time");
    t->unit = "sample";
    t->n = job.count < N_SAMPLES ? (uint32_t)job.count : N_SAMPLES;
    return tctl_trial_items(t, t->n, read_item, &job, err);
}

const tctl_probe tctl_probe_source = {TCTL_SOURCE_ID, run_source};

/* ---- transform --------------------------------------------------------------------------------------- */

/* What a transform may be made for; the first that it accepts is used. */
static const tctl_field inputs[][2] = {
    {{.name = "image", .dtype = TCTL_U8, .rank = 3, .dims = {32, 32, 3}},
     {.name = "label", .dtype = TCTL_I64}},
    {{.name = "image", .dtype = TCTL_U8, .rank = 3, .dims = {28, 28, 1}},
     {.name = "label", .dtype = TCTL_I64}},
    {{.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {32, 32, 3}},
     {.name = "label", .dtype = TCTL_I64}},
    {{.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {28, 28, 1}},
     {.name = "label", .dtype = TCTL_I64}},
    {{.name = "value", .dtype = TCTL_F32, .rank = 1, .dims = {64}}, {.name = "label", .dtype = TCTL_I64}},
};

typedef struct transform_job {
    const tctl_field *in;
    tctl_field out[2];
    tctl_random_address address;
} transform_job;

static void fill_inputs(const transform_job *job, sample *in, uint32_t item)
{
    for (uint32_t i = 0; i < in->n; i++) {
        if (job->in[i].dtype == TCTL_F32)
            tctl_trial_floats(job->in[i].name, item, in->tensors[i].data, in->tensors[i].size_bytes / 4);
        else
            tctl_trial_bytes(job->in[i].name, item, in->tensors[i].data, in->tensors[i].size_bytes);
        if (job->in[i].dtype == TCTL_I64) {
            const int64_t label = item % 10;
            memcpy(in->tensors[i].data, &label, sizeof label);
        }
    }
}

/* Output memory, except for fields that pass through: those share the input's. */
static tctl_status make_outputs(const transform_job *job, uint8_t fill, const sample *in, sample *out,
                                tctl_error *err)
{
    tctl_status status = make_sample(job->out, 2, fill, out, err);
    for (uint32_t i = 0; i < out->n && !status; i++) {
        if (!(job->out[i].flags & TCTL_FIELD_UNCHANGED))
            continue;
        free(out->tensors[i].data);
        out->own[i] = false;
        out->tensors[i] = in->tensors[i];
    }
    return status;
}

static tctl_status apply_item(tctl_trial *t, uint32_t item, void *arg, tctl_error *err)
{
    const transform_job *job = arg;
    const tctl_transform *transform = t->vtable;
    tctl_random_address address = job->address;
    tctl_trace_value before, after;
    sample in, out = {0};
    address.index = item;
    tctl_status status = make_sample(job->in, 2, 0, &in, err);
    if (!status) {
        fill_inputs(job, &in, item);
        status = digest_sample(&in, job->in, &before, err);
    }
    if (!status)
        status = make_outputs(job, t->fill, &in, &out, err);
    if (!status)
        status = transform->apply(t->single.use->part.stage, &address, in.tensors, out.tensors, err);
    if (!status)
        status = digest_sample(&out, job->out, &t->digests[item], err);
    if (!status)
        status = digest_sample(&in, job->in, &after, err);
    if (!status && memcmp(&before, &after, sizeof after) != 0)
        status = tctl_fail(err, TCTL_EPLUGIN, "apply changed its input");
    free_sample(&out);
    free_sample(&in);
    return status;
}

static tctl_status run_transform(tctl_trial *t, tctl_error *err)
{
    const tctl_transform *transform = t->vtable;
    transform_job job = {.address = tctl_stream(TCTL_TRIAL_SEED, t->single.use->name, 3, 0)};
    tctl_status status = TCTL_EUNSUPPORTED;
    for (size_t i = 0; i < TCTL_COUNT_OF(inputs) && status == TCTL_EUNSUPPORTED; i++) {
        job.in = inputs[i];
        memset(job.out, 0, sizeof job.out);
        tctl_error_clear(err);
        status = transform->describe(t->single.use->part.stage, job.in, 2, job.out, err);
    }
    if (status)
        return status;
    for (uint32_t i = 0; i < 2; i++) {
        if (!job.out[i].name || strcmp(job.out[i].name, job.in[i].name) != 0)
            return tctl_fail(err, TCTL_EPLUGIN, "describe gives field %u another name", i);
        if ((job.out[i].flags & TCTL_FIELD_UNCHANGED) && job.out[i].dtype != job.in[i].dtype)
            return tctl_fail(err, TCTL_EPLUGIN, "describe calls field '%s' unchanged and changes its dtype",
                             job.in[i].name);
    }
    t->unit = "sample";
    t->n = N_SAMPLES;
    return tctl_trial_items(t, t->n, apply_item, &job, err);
}

const tctl_probe tctl_probe_transform = {TCTL_TRANSFORM_ID, run_transform};
