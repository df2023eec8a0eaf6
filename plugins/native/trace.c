/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bits of a step: one 128-bit digest per tensor, in the order in which a step computes them.
 *
 * A tensor up to CHUNK bytes has the digest of its bytes; a longer one the digest of its chunks' digests, 16
 * little-endian bytes each. So all chunks of all tensors are hashed at once by all threads, and the value depends on
 * the bytes alone. Floats are hashed with every NaN replaced by 0x7fc00000.
 */
#include "plugins/native/trainer.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"

enum { CHUNK = 256 * 1024 };
static const uint32_t CANONICAL_NAN = 0x7fc00000;

typedef struct subject {
    const void *data;
    uint64_t size_bytes;
    bool is_float;
    int32_t rank;        /* 0: a list of floats */
    const int64_t *dims; /* [rank] */
    uint64_t first_chunk, n_chunks;
} subject;

typedef struct piece {
    const unsigned char *data;
    uint64_t size_bytes;
    bool is_float;
} piece;

struct tracer {
    tctl_arena *arena;
    const tctl_trace *service;
    uint32_t n_fields;
    tctl_trace_field *fields;
    subject *subjects; /* [n_fields]; of the loss: no data */
    tctl_trace_value *values;
    uint64_t n_pieces, room;
    piece *pieces;            /* [room] */
    tctl_trace_value *hashes; /* [room] */
    unsigned char *scratch;   /* [threads * CHUNK]: a chunk with its NaNs made canonical */
    uint32_t buffers, loss,
        gradients; /* first field of each kind; `buffers` and the loss have what is before */
};

/* ---- hashing ----------------------------------------------------------------------------------------- */

static bool has_nan(const uint32_t *bits, uint64_t n)
{
    uint32_t found = 0;
    for (uint64_t i = 0; i < n; i++)
        found |= (uint32_t)((bits[i] & 0x7fffffff) > 0x7f800000);
    return found;
}

static void hash_piece(void *arg, uint64_t chunk, uint32_t thread)
{
    const tracer *tr = arg;
    const piece *p = &tr->pieces[chunk];
    const void *data = p->data;
    uint64_t n = p->size_bytes / 4;
    if (p->is_float && has_nan(data, n)) {
        uint32_t *copy = (uint32_t *)(void *)(tr->scratch + (size_t)thread * CHUNK);
        memcpy(copy, data, (size_t)p->size_bytes);
        for (uint64_t i = 0; i < n; i++)
            copy[i] = (copy[i] & 0x7fffffff) > 0x7f800000 ? CANONICAL_NAN : copy[i];
        data = copy;
    }
    tr->hashes[chunk] = tr->service->digest(data, (size_t)p->size_bytes);
}

static void cut(tracer *tr, subject *s)
{
    s->first_chunk = tr->n_pieces;
    uint64_t at = 0;
    do {
        uint64_t rest = s->size_bytes - at, size = rest < CHUNK ? rest : CHUNK;
        tr->pieces[tr->n_pieces++] = (piece){(const unsigned char *)s->data + at, size, s->is_float};
        at += size;
    } while (at < s->size_bytes);
    s->n_chunks = tr->n_pieces - s->first_chunk;
}

static void put_u64(unsigned char *to, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

/* The digests of the chunks of a long tensor become one. They are rewritten in place, as bytes. */
static tctl_trace_value join(tracer *tr, const subject *s)
{
    tctl_trace_value *h = &tr->hashes[s->first_chunk];
    if (s->n_chunks == 1)
        return h[0];
    unsigned char *bytes = (unsigned char *)h;
    for (uint64_t i = 0; i < s->n_chunks; i++) {
        const tctl_trace_value v = h[i];
        put_u64(bytes + 16 * i, v.lo);
        put_u64(bytes + 16 * i + 8, v.hi);
    }
    return tr->service->digest(bytes, (size_t)s->n_chunks * 16);
}

/* ---- the fields -------------------------------------------------------------------------------------- */

static void add(tracer *tr, const char *kind, const char *name, const char *part, const float *data,
                uint64_t n, int32_t rank, const int64_t *dims)
{
    const char *full = part   ? tctl_arena_format(tr->arena, "%s/%s.%s", kind, name, part)
                       : name ? tctl_arena_format(tr->arena, "%s/%s", kind, name)
                              : kind;
    tr->fields[tr->n_fields] = (tctl_trace_field){.name = full, .kind = TCTL_TRACE_DIGEST};
    tr->subjects[tr->n_fields] = (subject){
        .data = data, .size_bytes = n * sizeof(float), .is_float = true, .rank = rank, .dims = dims};
    tr->room += (n * sizeof(float) + CHUNK) / CHUNK + 1;
    tr->n_fields++;
}

enum { INDICES, BATCH, LABELS, FIRST_BUFFER };

static void list_fields(trainer *t, tracer *tr)
{
    const tctl_network_memory *m = t->memory;
    uint32_t n_fields;
    const tctl_field *input = &tctl_loader_fields(t->train.loader, &n_fields)[t->train.input];
    const uint64_t batch = t->options->batch, words = (tctl_dtype_size(input->dtype) + 3) / 4;
    add(tr, "indices", NULL, NULL, NULL, 2 * batch, 0, NULL);
    add(tr, "batch", NULL, NULL, NULL, batch * words * (uint64_t)tctl_dims_count(input->dims, input->rank), 0,
        NULL);
    add(tr, "labels", NULL, NULL, NULL, 2 * tctl_native_labels(&t->train, batch), 0, NULL);
    for (uint32_t i = 0; i < m->n_buffers; i++)
        add(tr, "buffer", m->buffers[i].name, NULL, m->buffer + m->buffers[i].offset, m->buffers[i].count, 0,
            NULL);
    tr->loss = tr->n_fields;
    add(tr, "loss", NULL, NULL, NULL, 0, 0, NULL);
    tr->fields[tr->loss].kind = TCTL_TRACE_F32;
    for (uint32_t i = 0; i < m->n_parameters; i++)
        add(tr, "gradient", m->parameters[i].name, NULL, m->grad + m->parameters[i].offset,
            m->parameters[i].count, m->parameters[i].rank, m->parameters[i].dims);
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        const tctl_parameter *p = &m->parameters[i];
        for (uint32_t k = 0; k < t->optimizer->n_slots; k++)
            add(tr, "optimizer", p->name, t->optimizer->slot_names[k], t->view.slot[k] + p->offset, p->count,
                p->rank, p->dims);
    }
    for (uint32_t i = 0; i < m->n_parameters; i++)
        add(tr, "parameter", m->parameters[i].name, NULL, m->param + m->parameters[i].offset,
            m->parameters[i].count, m->parameters[i].rank, m->parameters[i].dims);
}

static bool allocate(trainer *t, tracer *tr)
{
    tr->arena = tctl_arena_create();
    if (!tr->arena)
        return false;
    const tctl_network_memory *m = t->memory;
    size_t most =
        FIRST_BUFFER + 1 + (size_t)m->n_buffers + (size_t)m->n_parameters * (2 + t->optimizer->n_slots);
    tr->fields = tctl_arena_take_array(tr->arena, most, sizeof *tr->fields);
    tr->subjects = tctl_arena_take_array(tr->arena, most, sizeof *tr->subjects);
    tr->values = tctl_arena_take_array(tr->arena, most, sizeof *tr->values);
    if (!tr->fields || !tr->subjects || !tr->values)
        return false;
    list_fields(t, tr);
    for (uint32_t i = 0; i < tr->n_fields; i++) {
        if (!tr->fields[i].name)
            return false;
    }
    tr->pieces = tctl_arena_take_array(tr->arena, (size_t)tr->room, sizeof *tr->pieces);
    tr->hashes = tctl_arena_take_array(tr->arena, (size_t)tr->room, sizeof *tr->hashes);
    tr->scratch = tctl_arena_take_array(tr->arena, tctl_pool_threads(t->pool), CHUNK);
    return tr->pieces && tr->hashes && tr->scratch;
}

/* What the host wants of a step, and of step 0 whether it ever will; an older host never wants anything. */
static int32_t wanted(const tctl_stage *o, uint64_t step)
{
    bool can = o->trace->struct_size >= offsetof(tctl_trace, tensor) + sizeof o->trace->tensor;
    return can && o->trace->wanted && o->trace->tensor ? o->trace->wanted(o->host, step) : 0;
}

tctl_status tctl_native_trace_begin(trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    if (!o->trace || (o->trace_every == 0 && !wanted(o, 0)))
        return TCTL_OK;
    tracer *tr = o->memory->allocate(o->host, sizeof *tr);
    if (!tr)
        return tctl_fail_memory(err, sizeof *tr);
    t->tracer = tr;
    tr->service = o->trace;
    if (!allocate(t, tr))
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for the trace");
    return o->trace->begin(o->host, tr->fields, tr->n_fields, err);
}

void tctl_native_trace_end(trainer *t)
{
    if (!t->tracer)
        return;
    tctl_arena_destroy(t->tracer->arena);
    t->options->memory->release(t->options->host, t->tracer);
    t->tracer = NULL;
}

/* ---- a record ---------------------------------------------------------------------------------------- */

static bool is_due(const trainer *t)
{
    const tctl_stage *o = t->options;
    if (o->trace_every == 0)
        return false;
    if (o->trace_in_epochs)
        return t->view.batches_left == 0 && (t->view.epoch + 1) % o->trace_every == 0;
    return t->batches % o->trace_every == 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void look_at_batch(trainer *t, const tctl_loaded_batch *batch)
{
    subject *s = t->tracer->subjects;
    const tctl_tensor *input = &batch->tensors[t->train.input], *label = &batch->tensors[t->train.label];
    s[INDICES] = (subject){.data = batch->indices, .size_bytes = batch->n * sizeof *batch->indices};
    s[BATCH] = (subject){.data = input->data, .size_bytes = input->size_bytes, .is_float = !t->train.tokens};
    s[LABELS] = (subject){.data = label->data, .size_bytes = label->size_bytes};
    s[BATCH].rank = input->rank;
    s[BATCH].dims = input->dims;
    s[LABELS].rank = label->rank;
    s[LABELS].dims = label->dims;
}

/* The tensors behind a record. */
static tctl_status write_tensors(trainer *t, const tctl_loaded_batch *batch, tctl_error *err)
{
    const tracer *tr = t->tracer;
    tctl_status st = TCTL_OK;
    for (uint32_t i = 0; i < tr->n_fields && !st; i++) {
        const subject *s = &tr->subjects[i];
        int32_t dtype = i == INDICES || i == LABELS ? TCTL_I64 : TCTL_F32;
        if (i == BATCH)
            dtype = batch->tensors[t->train.input].dtype;
        tctl_tensor tensor = {
            .data = (void *)(uintptr_t)s->data, .size_bytes = s->size_bytes, .dtype = dtype};
        if (i == tr->loss) {
            tensor.data = &t->view.loss;
            tensor.size_bytes = sizeof t->view.loss;
        } else {
            tensor.rank = s->rank > 0 ? s->rank : 1;
            tensor.dims[0] = (int64_t)(s->size_bytes / tctl_dtype_size(dtype));
            for (int32_t k = 0; k < s->rank; k++)
                tensor.dims[k] = s->dims[k];
        }
        st = tr->service->tensor(t->options->host, t->batches, tr->fields[i].name, &tensor, err);
    }
    return st;
}

tctl_status tctl_native_trace_record(trainer *t, const tctl_loaded_batch *batch, tctl_error *err)
{
    tracer *tr = t->tracer;
    if (!tr)
        return TCTL_OK;
    int32_t want = wanted(t->options, t->batches);
    if (!is_due(t) && !(want & TCTL_TRACE_WANT_RECORD))
        return TCTL_OK;
    uint64_t began = now_ns();
    look_at_batch(t, batch);
    tr->n_pieces = 0;
    for (uint32_t i = 0; i < tr->n_fields; i++) {
        if (i != tr->loss)
            cut(tr, &tr->subjects[i]);
    }
    tctl_pool_run(t->pool, tr->n_pieces, hash_piece, tr);
    for (uint32_t i = 0; i < tr->n_fields; i++) {
        if (i != tr->loss)
            tr->values[i] = join(tr, &tr->subjects[i]);
    }
    uint32_t bits;
    memcpy(&bits, &t->view.loss, sizeof bits);
    tr->values[tr->loss] = (tctl_trace_value){.lo = bits};
    tctl_status st = t->options->trace->record(t->options->host, t->batches, tr->values, err);
    t->trace_ns += now_ns() - began;
    t->ends = want & TCTL_TRACE_WANT_END;
    return !st && (want & TCTL_TRACE_WANT_TENSORS) ? write_tensors(t, batch, err) : st;
}
