/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors: u64 length, a JSON header, the data (docs: huggingface/safetensors, README, "Format").
 *
 * Checked as the reference reader checks: offsets leave no hole and no overlap, sizes fit shapes and types, nothing
 * lies behind the data. The order of names in the header and the order of the tensors in the file do not count; names
 * are listed sorted, metadata first. A number type of less than a byte is listed by its bytes, its shape beside them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/json.h"
#include "manifest/content/walk.h"

/* The format allows 100 MB; parsed JSON takes ten times its text. */
#define HEADER_LIMIT ((uint64_t)16 << 20)
#define FORMAT_LIMIT ((uint64_t)100000000)

typedef struct entry {
    const char *name;
    json_t *json;
    uint64_t begin, end;
} entry;

typedef struct type {
    const char *name, *ours;
    uint32_t bits;
} type;

static const type types[] = {
    {"BOOL", "bool", 8},
    {"F4", "f4", 4},
    {"F6_E2M3", "f6_e2m3", 6},
    {"F6_E3M2", "f6_e3m2", 6},
    {"U8", "u8", 8},
    {"I8", "i8", 8},
    {"F8_E5M2", "f8_e5m2", 8},
    {"F8_E4M3", "f8_e4m3fn", 8},
    {"F8_E8M0", "f8_e8m0fnu", 8},
    {"F8_E4M3FNUZ", "f8_e4m3fnuz", 8},
    {"F8_E5M2FNUZ", "f8_e5m2fnuz", 8},
    {"I16", "i16", 16},
    {"U16", "u16", 16},
    {"F16", "f16", 16},
    {"BF16", "bf16", 16},
    {"I32", "i32", 32},
    {"U32", "u32", 32},
    {"F32", "f32", 32},
    {"C64", "c64", 64},
    {"F64", "f64", 64},
    {"I64", "i64", 64},
    {"U64", "u64", 64},
};

static tctl_status damaged(const tctl_source *s, const char *name, const char *why, tctl_error *err)
{
    if (name == NULL)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is cut short or damaged: %s", s->name, why);
    return tctl_fail(err, TCTL_EFORMAT, "'%s' is cut short or damaged: tensor '%s' %s", s->name, name, why);
}

static tctl_status read_header(tctl_source *s, uint64_t *ret_data, json_t **ret, tctl_error *err)
{
    unsigned char length[8];
    tctl_status st = tctl_source_read(s, 0, length, sizeof length, err);
    uint64_t n = tctl_get_u64(length);
    if (st != TCTL_OK)
        return st;
    if (n > FORMAT_LIMIT)
        return damaged(s, NULL, "its header would have more than 100 MB", err);
    if (n > HEADER_LIMIT)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has a header of %" PRIu64 " bytes", s->name, n);
    if (n > s->size - 8)
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' is cut short: it has %" PRIu64
                         " bytes, and its header alone would end at byte %" PRIu64,
                         s->name, s->size, n + 8);
    char *text = malloc((size_t)n + 1);
    if (text == NULL)
        return tctl_fail_memory(err, (size_t)n);
    st = tctl_source_read(s, 8, text, (size_t)n, err);
    if (st == TCTL_OK)
        st = tctl_json_parse(s->name, text, (size_t)n, ret, err);
    if (st == TCTL_EFORMAT)
        tctl_note(err, "the header of a safetensors file, from byte 8 on");
    if (st == TCTL_OK && !json_is_object(*ret)) {
        json_decref(*ret);
        *ret = NULL;
        st = damaged(s, NULL, "its header is no object", err);
    }
    free(text);
    *ret_data = n + 8;
    return st;
}

static bool read_count(const json_t *value, uint64_t *ret)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret = (uint64_t)json_integer_value(value);
    return true;
}

static tctl_status read_entry(const tctl_source *s, const char *name, json_t *json, entry *ret,
                              tctl_error *err)
{
    const json_t *offsets = json_object_get(json, "data_offsets");
    *ret = (entry){.name = name, .json = json};
    if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &ret->begin) ||
        !read_count(json_array_get(offsets, 1), &ret->end) || ret->end < ret->begin)
        return damaged(s, name, "has no 'data_offsets' of two numbers", err);
    return TCTL_OK;
}

static int by_offset(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->name, ((const entry *)b)->name);
}

static tctl_status check_layout(const tctl_source *s, entry *entries, size_t n, uint64_t data,
                                tctl_error *err)
{
    uint64_t end = 0;
    qsort(entries, n, sizeof *entries, by_offset);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].begin != end)
            return damaged(s, entries[i].name, "does not begin where the one before it ends", err);
        end = entries[i].end;
        if (end > s->size - data)
            return tctl_fail(
                err, TCTL_EFORMAT,
                "'%s' is cut short: it has %" PRIu64 " bytes, and tensor '%s' would end at byte %" PRIu64,
                s->name, s->size, entries[i].name, end > UINT64_MAX - data ? UINT64_MAX : data + end);
    }
    if (end != s->size - data)
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' is damaged: there is something behind its tensors, from byte %" PRIu64,
                         s->name, data + end);
    qsort(entries, n, sizeof *entries, by_name);
    return TCTL_OK;
}

static bool read_shape(const json_t *json, tctl_array *t, uint64_t shape[TCTL_ARRAY_RANK])
{
    size_t n = json_array_size(json);
    if (!json_is_array(json) || n > TCTL_ARRAY_RANK)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!read_count(json_array_get(json, i), &shape[i]))
            return false;
    }
    t->rank = (uint32_t)n;
    t->shape = shape;
    return tctl_shape_elements(shape, t->rank, &t->n_elements);
}

static const type *find_type(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    }
    return NULL;
}

/* A type of less than a byte: its bytes, and the shape in words. */
static tctl_status list_packed(tctl_listing *l, const entry *e, tctl_array *t, tctl_error *err)
{
    tctl_buf more = TCTL_BUF_INIT;
    uint64_t bytes = e->end - e->begin;
    tctl_buf_add_text(&more, " of [");
    for (uint32_t i = 0; i < t->rank; i++)
        tctl_buf_add_format(&more, "%s%" PRIu64, i > 0 ? "," : "", t->shape[i]);
    tctl_buf_add_text(&more, "]");
    t->rank = 1;
    t->shape = &bytes;
    t->n_elements = bytes;
    t->element_bytes = 1;
    tctl_status st = tctl_buf_text(&more) == NULL
                         ? tctl_fail_memory(err, more.size)
                         : tctl_list_tensor(l, e->name, t, NULL, tctl_buf_text(&more), err);
    tctl_buf_release(&more);
    return st;
}

static tctl_status list_tensor(tctl_listing *l, tctl_source *s, const entry *e, uint64_t data,
                               tctl_error *err)
{
    uint64_t shape[TCTL_ARRAY_RANK], bits = 0;
    const type *ty = find_type(json_string_value(json_object_get(e->json, "dtype")));
    tctl_array t = {.source = s, .offset = data + e->begin};
    if (!read_shape(json_object_get(e->json, "shape"), &t, shape))
        return damaged(s, e->name, "has no 'shape' that can be", err);
    if (ty == NULL)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s': tensor '%s' has a type that is not known", s->name,
                         e->name);
    t.dtype = ty->ours;
    t.element_bytes = ty->bits / 8;
    if (__builtin_mul_overflow(t.n_elements, (uint64_t)ty->bits, &bits) || bits % 8 != 0 ||
        bits / 8 != e->end - e->begin)
        return damaged(s, e->name, "does not have the bytes that its shape and type ask for", err);
    return ty->bits < 8 ? list_packed(l, e, &t, err) : tctl_list_tensor(l, e->name, &t, NULL, "", err);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tctl_status list_metadata(tctl_listing *l, tctl_source *s, json_t *metadata, tctl_error *err)
{
    size_t n = 0, room = json_object_size(metadata);
    const char *key;
    json_t *value;
    tctl_status st = TCTL_OK;
    if (metadata == NULL)
        return TCTL_OK;
    if (!json_is_object(metadata))
        return damaged(s, NULL, "'__metadata__' is no object", err);
    const char **keys = calloc(room + 1, sizeof *keys);
    if (keys == NULL)
        return tctl_fail_memory(err, room * sizeof *keys);
    json_object_foreach(metadata, key, value) keys[n++] = key;
    qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; i < n && st == TCTL_OK; i++) {
        const char *text = json_string_value(json_object_get(metadata, keys[i]));
        tctl_buf words = TCTL_BUF_INIT, name = TCTL_BUF_INIT;
        tctl_buf_add_format(&words, "text %s", text == NULL ? "" : text);
        tctl_buf_add_format(&name, "__metadata__/%s", keys[i]);
        if (text == NULL)
            st = damaged(s, NULL, "'__metadata__' has something else than text", err);
        else if (words.broken || name.broken)
            st = tctl_fail_memory(err, words.size);
        else
            st = tctl_list_value(l, name.data, words.data, err);
        tctl_buf_release(&words);
        tctl_buf_release(&name);
    }
    free(keys);
    return st;
}

static tctl_status list_all(tctl_listing *l, tctl_source *s, json_t *header, uint64_t data, tctl_error *err)
{
    size_t n = 0;
    const char *name;
    json_t *value;
    tctl_status st = TCTL_OK;
    entry *entries = calloc(json_object_size(header) + 1, sizeof *entries);
    if (entries == NULL)
        return tctl_fail_memory(err, json_object_size(header) * sizeof *entries);
    json_object_foreach(header, name, value)
    {
        if (st == TCTL_OK && strcmp(name, "__metadata__") != 0)
            st = read_entry(s, name, value, &entries[n++], err);
    }
    if (st == TCTL_OK)
        st = check_layout(s, entries, n, data, err);
    if (st == TCTL_OK)
        st = list_metadata(l, s, json_object_get(header, "__metadata__"), err);
    for (size_t i = 0; i < n && st == TCTL_OK; i++)
        st = list_tensor(l, s, &entries[i], data, err);
    free(entries);
    return st;
}

tctl_status tctl_list_safetensors(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    json_t *header = NULL;
    uint64_t data = 0;
    tctl_status st = read_header(s, &data, &header, err);
    if (st == TCTL_OK)
        st = list_all(l, s, header, data, err);
    json_decref(header);
    *ret_format = "safetensors";
    return st;
}
