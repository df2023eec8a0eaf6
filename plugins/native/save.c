/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run leaves: model.safetensors and metrics.json.
 *
 * safetensors: 8 bytes little-endian, the length of the header; the header, a JSON object from a tensor's name to its
 * dtype, shape and data_offsets (from the end of the header), padded with blanks so that the data begin at a multiple
 * of 8; then the data, tensor after tensor in the order of their names, without holes, float32 little-endian
 * (https://github.com/huggingface/safetensors, "Format").
 *
 * Weights are turned into PyTorch's layout: a convolution's is [out, in/groups, kh, kw], a linear operator's
 * [out, in]; tables (TCTL_PARAMETER_LOOKUP) have it. Nothing that differs between two runs of one recipe is in either file.
 */
#include "plugins/native/trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/num.h"

/* One tensor of the file. */
typedef struct entry {
    const tctl_parameter *parameter;
    const float *data;
    uint64_t offset; /* in the data part */
} entry;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->parameter->name, ((const entry *)b)->parameter->name);
}

/* Whether the dimensions are turned round. */
static bool is_turned(const tctl_parameter *p)
{
    return p->rank > 1 && !(p->flags & TCTL_PARAMETER_LOOKUP);
}

static void describe(tctl_buf *json, const entry *e)
{
    const tctl_parameter *p = e->parameter;
    tctl_buf_add_format(json, "\"%s\":{\"dtype\":\"F32\",\"shape\":[", p->name);
    for (int32_t i = 0; i < p->rank; i++) {
        int32_t from = p->rank == 4 ? (const int32_t[]){3, 2, 0, 1}[i] : p->rank - 1 - i;
        tctl_buf_add_format(json, "%s%lld", i ? "," : "", (long long)p->dims[is_turned(p) ? from : i]);
    }
    tctl_buf_add_format(json, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)e->offset,
                        (unsigned long long)(e->offset + p->count * sizeof(float)));
}

/* The header with its length in front. */
static void make_header(tctl_buf *ret, const entry *entries, uint32_t n)
{
    tctl_buf_add(ret, (const char[8]){0}, 8);
    tctl_buf_add_text(ret, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (uint32_t i = 0; i < n; i++) {
        tctl_buf_add_char(ret, ',');
        describe(ret, &entries[i]);
    }
    tctl_buf_add_char(ret, '}');
    while (!ret->broken && ret->size % 8)
        tctl_buf_add_char(ret, ' ');
    for (int i = 0; !ret->broken && i < 8; i++)
        ret->data[i] = (char)((ret->size - 8) >> (8 * i) & 0xff);
}

static void put_float(unsigned char *to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(bits >> (8 * i));
}

/* Ours is [kh, kw, in, out] or [in, out]: the last dimension becomes the first, and `in` the second. */
static void transpose(const entry *e, unsigned char *to)
{
    const tctl_parameter *p = e->parameter;
    uint64_t out = is_turned(p) ? (uint64_t)p->dims[p->rank - 1] : 1,
             in = is_turned(p) ? (uint64_t)p->dims[p->rank - 2] : 1;
    uint64_t taps = p->count / (in * out), at = 0;
    for (uint64_t o = 0; o < out; o++) {
        for (uint64_t i = 0; i < in; i++) {
            for (uint64_t tap = 0; tap < taps; tap++)
                put_float(to + 4 * at++, e->data[(tap * in + i) * out + o]);
        }
    }
}

/* All tensors of the network, sorted by name; NULL if memory is out. */
static entry *list(tctl_arena *arena, const tctl_network_memory *m, uint32_t *ret_n)
{
    uint32_t n = m->n_parameters + m->n_buffers;
    entry *entries = tctl_arena_take_array(arena, n, sizeof *entries);
    for (uint32_t i = 0; entries && i < m->n_parameters; i++)
        entries[i] = (entry){&m->parameters[i], m->param + m->parameters[i].offset, 0};
    for (uint32_t i = 0; entries && i < m->n_buffers; i++)
        entries[m->n_parameters + i] = (entry){&m->buffers[i], m->buffer + m->buffers[i].offset, 0};
    if (!entries)
        return NULL;
    qsort(entries, n, sizeof *entries, by_name);
    uint64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        entries[i].offset = at;
        at += entries[i].parameter->count * sizeof(float);
    }
    *ret_n = n;
    return entries;
}

static tctl_status write_tensors(trainer *t, tctl_arena *arena, tctl_artifact *file, tctl_error *err)
{
    uint32_t n = 0;
    uint64_t largest = 0;
    const entry *entries = list(arena, t->memory, &n);
    for (uint32_t i = 0; entries && i < n; i++)
        largest = entries[i].parameter->count > largest ? entries[i].parameter->count : largest;
    unsigned char *room = tctl_arena_take_array(arena, (size_t)largest, sizeof(float));
    tctl_buf header = TCTL_BUF_INIT;
    if (entries)
        make_header(&header, entries, n);
    tctl_status st = TCTL_OK;
    if (!entries || !room || !tctl_buf_text(&header))
        st = tctl_fail(err, TCTL_ENOMEM, "out of memory for 'model.safetensors'");
    if (!st)
        st = t->options->artifacts->write(file, header.data, header.size, err);
    for (uint32_t i = 0; !st && i < n; i++) {
        transpose(&entries[i], room);
        st = t->options->artifacts->write(file, room, (size_t)entries[i].parameter->count * sizeof(float),
                                          err);
    }
    tctl_buf_release(&header);
    return st;
}

tctl_status tctl_native_save_model(trainer *t, tctl_error *err)
{
    const tctl_stage *o = t->options;
    if (!o->artifacts)
        return TCTL_OK;
    tctl_arena *arena = tctl_arena_create();
    if (!arena)
        return tctl_fail(err, TCTL_ENOMEM, "out of memory for 'model.safetensors'");
    tctl_artifact *file = NULL;
    tctl_status st = o->artifacts->begin(o->host, "model.safetensors", &file, err);
    if (!st) {
        st = write_tensors(t, arena, file, err);
        if (st)
            o->artifacts->abandon(file);
        else
            st = o->artifacts->commit(file, err);
    }
    tctl_arena_destroy(arena);
    return st;
}

tctl_status tctl_native_save_metrics(trainer *t, const tctl_metric *metrics, uint32_t n, tctl_error *err)
{
    const tctl_stage *o = t->options;
    if (!o->artifacts)
        return TCTL_OK;
    tctl_buf json = TCTL_BUF_INIT;
    tctl_buf_add_text(&json, "{\n");
    for (uint32_t i = 0; i < n; i++) {
        char number[TCTL_REAL_TEXT];
        tctl_format_real(metrics[i].value, number);
        tctl_buf_add_format(&json, "  \"%s\": %s%s\n", metrics[i].name, number, i + 1 < n ? "," : "");
    }
    tctl_buf_add_text(&json, "}\n");
    tctl_artifact *file = NULL;
    tctl_status st =
        tctl_buf_text(&json) ? TCTL_OK : tctl_fail(err, TCTL_ENOMEM, "out of memory for 'metrics.json'");
    if (!st)
        st = o->artifacts->begin(o->host, "metrics.json", &file, err);
    if (!st) {
        st = o->artifacts->write(file, json.data, json.size, err);
        if (st)
            o->artifacts->abandon(file);
        else
            st = o->artifacts->commit(file, err);
    }
    tctl_buf_release(&json);
    return st;
}
