/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading traces back, and finding where two of them part.
 *
 * The file may come from anywhere: every length is checked against the file's size before it is used, and every
 * record's checksum before its values are believed. Damage is an error with its offset; only an incomplete last
 * record, which a killed process leaves, is dropped.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/bytes.h"
#include "base/size.h"
#include "manifest/trace.h"
#include "manifest/trace_format.h"

enum { BUFFER_BYTES = 256 * 1024 };

uint64_t tctl_trace_check(uint8_t *record, uint32_t n_fields)
{
    memcpy(record + 8, record, 8);
    return XXH3_64bits(record + 8, 8 + 16 * (size_t)n_fields);
}

/* A buffered reader that knows how many bytes the file had when it was opened, and never goes beyond. */
typedef struct reader {
    int fd;
    const char *path;
    uint64_t size, at; /* of the file; of the next byte that `take` gives */
    uint8_t *buffer;
    size_t begin, end, room;
    tctl_error *err;
} reader;

static tctl_status malformed(const reader *r, uint64_t offset, const char *what)
{
    return tctl_fail(r->err, TCTL_EFORMAT, "trace '%s' is damaged at offset %llu: %s", r->path,
                     (unsigned long long)offset, what);
}

/* The next n bytes, n <= room; valid until the next call. */
static tctl_status take(reader *r, size_t n, uint8_t **ret)
{
    if (n > r->size - r->at)
        return malformed(r, r->size, "it ends too early");
    if (r->end - r->begin < n) {
        memmove(r->buffer, r->buffer + r->begin, r->end - r->begin);
        r->end -= r->begin;
        r->begin = 0;
    }
    while (r->end - r->begin < n) {
        ssize_t got = read(r->fd, r->buffer + r->end, r->room - r->end);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tctl_fail_errno(r->err, errno, "cannot read trace '%s'", r->path);
        if (got == 0)
            return malformed(r, r->at, "it became shorter while it was read");
        r->end += (size_t)got;
    }
    *ret = r->buffer + r->begin;
    r->begin += n;
    r->at += n;
    return TCTL_OK;
}

static tctl_status read_field(reader *r, tctl_arena *arena, tctl_trace_field *field)
{
    uint8_t *p;
    tctl_status status = take(r, 8, &p);
    if (status != TCTL_OK)
        return status;
    uint32_t kind = tctl_get_u32(p), length = tctl_get_u32(p + 4);
    if (kind != TCTL_TRACE_DIGEST && kind != TCTL_TRACE_F32)
        return malformed(r, r->at - 8, "unknown kind of field");
    if (length < 1 || length > TCTL_TRACE_MAX_NAME)
        return malformed(r, r->at - 4, "impossible length of a field's name");
    status = take(r, length, &p);
    if (status != TCTL_OK)
        return status;
    if (memchr(p, '\0', length))
        return malformed(r, r->at - length, "a field's name holds a zero byte");
    field->kind = (int32_t)kind;
    field->name = tctl_arena_copy(arena, (const char *)p, length);
    return field->name ? TCTL_OK : tctl_fail_memory(r->err, length + 1);
}

static tctl_status read_header(reader *r, tctl_arena *arena, tctl_trace_data *data)
{
    uint8_t *p;
    if (r->size < 16)
        return malformed(r, r->size, "it ends within its header");
    tctl_status status = take(r, 16, &p);
    if (status != TCTL_OK)
        return status;
    if (memcmp(p, TCTL_TRACE_MAGIC, 8) != 0)
        return malformed(r, 0, "it does not begin with '" TCTL_TRACE_MAGIC "'");
    data->n_fields = tctl_get_u32(p + 8);
    if (tctl_get_u32(p + 12) != 0)
        return malformed(r, 12, "a reserved word is not zero");
    /* A field takes at least 9 bytes, which bounds the allocation by the size of the file. */
    if (data->n_fields < 1 || data->n_fields > TCTL_TRACE_MAX_FIELDS || data->n_fields > (r->size - 16) / 9)
        return malformed(r, 8, "impossible number of fields");
    data->fields = tctl_arena_take_array(arena, data->n_fields, sizeof *data->fields);
    if (!data->fields)
        return tctl_fail_memory(r->err, data->n_fields * sizeof *data->fields);
    for (uint32_t i = 0; i < data->n_fields && status == TCTL_OK; i++)
        status = read_field(r, arena, &data->fields[i]);
    size_t padding = (16 - r->at % 16) % 16;
    if (status == TCTL_OK)
        status = take(r, padding, &p);
    for (size_t i = 0; i < padding && status == TCTL_OK; i++) {
        if (p[i] != 0)
            status = malformed(r, r->at - padding + i, "padding is not zero");
    }
    return status;
}

static tctl_status check_record(const reader *r, const tctl_trace_data *data, uint8_t *p, uint64_t least)
{
    uint64_t begin = r->at - tctl_trace_record_bytes(data->n_fields);
    uint64_t check = tctl_get_u64(p + 8);
    if (check != tctl_trace_check(p, data->n_fields))
        return malformed(r, begin, "a record does not match its checksum");
    if (tctl_get_u64(p) < least || tctl_get_u64(p) == UINT64_MAX)
        return malformed(r, begin, "steps do not grow");
    for (uint32_t i = 0; i < data->n_fields; i++) {
        const uint8_t *value = p + 16 + 16 * (size_t)i;
        if (data->fields[i].kind == TCTL_TRACE_F32 &&
            (tctl_get_u64(value) > UINT32_MAX || tctl_get_u64(value + 8)))
            return malformed(r, begin + 16 + 16 * (uint64_t)i, "a float has more than 32 bits");
    }
    return TCTL_OK;
}

static tctl_status read_records(reader *r, tctl_arena *arena, tctl_trace_data *data)
{
    size_t record_bytes = tctl_trace_record_bytes(data->n_fields), n_values;
    uint64_t n = (r->size - r->at) / record_bytes;
    data->torn_bytes = (r->size - r->at) % record_bytes;
    if (!tctl_mul_size(n, data->n_fields, &n_values))
        return tctl_fail_memory(r->err, SIZE_MAX);
    uint64_t *steps = tctl_arena_take_array(arena, n, sizeof *steps);
    tctl_trace_value *values = tctl_arena_take_array(arena, n_values, sizeof *values);
    if (!steps || !values)
        return tctl_fail_memory(r->err, n_values * sizeof *values);
    uint64_t least = 0; /* the first one may be step 0 */
    for (uint64_t i = 0; i < n; i++) {
        uint8_t *p;
        tctl_status status = take(r, record_bytes, &p);
        if (status == TCTL_OK)
            status = check_record(r, data, p, least);
        if (status != TCTL_OK)
            return status;
        steps[i] = tctl_get_u64(p);
        least = steps[i] + 1;
        for (uint32_t f = 0; f < data->n_fields; f++) {
            tctl_trace_value *value = &values[i * data->n_fields + f];
            value->lo = tctl_get_u64(p + 16 + 16 * (size_t)f);
            value->hi = tctl_get_u64(p + 24 + 16 * (size_t)f);
        }
    }
    data->n_records = n;
    data->steps = steps;
    data->values = values;
    return TCTL_OK;
}

static tctl_status read_open(reader *r, tctl_arena *arena, tctl_trace_data *data)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0)
        return tctl_fail_errno(r->err, errno, "cannot read trace '%s'", r->path);
    if (!S_ISREG(st.st_mode))
        return tctl_fail(r->err, TCTL_EINVAL, "cannot read trace '%s': not a regular file", r->path);
    r->size = (uint64_t)st.st_size;
    r->room = BUFFER_BYTES;
    r->buffer = malloc(r->room);
    if (!r->buffer)
        return tctl_fail_memory(r->err, r->room);
    tctl_status status = read_header(r, arena, data);
    size_t record_bytes = tctl_trace_record_bytes(data->n_fields);
    if (status == TCTL_OK && record_bytes > r->room) {
        uint8_t *larger = realloc(r->buffer, record_bytes);
        if (!larger)
            return tctl_fail_memory(r->err, record_bytes);
        r->buffer = larger;
        r->room = record_bytes;
    }
    return status == TCTL_OK ? read_records(r, arena, data) : status;
}

tctl_status tctl_trace_read(tctl_arena *arena, const char *path, tctl_trace_data **ret, tctl_error *err)
{
    tctl_trace_data *data = tctl_arena_take(arena, sizeof *data);
    if (!data)
        return tctl_fail_memory(err, sizeof *data);
    reader r = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path, .err = err};
    if (r.fd < 0)
        return tctl_fail_errno(err, errno, "cannot open trace '%s'", path);
    tctl_status status = read_open(&r, arena, data);
    free(r.buffer);
    close(r.fd);
    if (status == TCTL_OK)
        *ret = data;
    return status;
}

/* Floats in the order of their values: -0 and 0 both at 2^31. */
static int64_t ordered(uint32_t bits)
{
    int64_t magnitude = bits & 0x7fffffff;
    return bits >> 31 ? -magnitude : magnitude;
}

static uint32_t ulps_between(uint64_t a, uint64_t b)
{
    uint32_t x = (uint32_t)a, y = (uint32_t)b;
    if ((x & 0x7fffffff) > 0x7f800000 || (y & 0x7fffffff) > 0x7f800000)
        return UINT32_MAX;
    int64_t distance = ordered(x) - ordered(y);
    return (uint32_t)(distance < 0 ? -distance : distance);
}

static bool same_fields(const tctl_trace_data *a, const tctl_trace_data *b)
{
    if (a->n_fields != b->n_fields)
        return false;
    for (uint32_t i = 0; i < a->n_fields; i++) {
        if (a->fields[i].kind != b->fields[i].kind || strcmp(a->fields[i].name, b->fields[i].name) != 0)
            return false;
    }
    return true;
}

/* Where record `i` of both parts; kind TCTL_DIVERGE_NONE if it does not. */
static tctl_divergence compare_record(const tctl_trace_data *a, const tctl_trace_data *b, uint64_t i)
{
    tctl_divergence d = {.kind = TCTL_DIVERGE_NONE, .step = a->steps[i], .is_first = i == 0};
    d.after = i == 0 ? 0 : a->steps[i - 1];
    if (a->steps[i] != b->steps[i]) {
        d.kind = TCTL_DIVERGE_STEPS;
        d.step = a->steps[i] < b->steps[i] ? a->steps[i] : b->steps[i];
        return d;
    }
    const tctl_trace_value *x = a->values + i * a->n_fields, *y = b->values + i * a->n_fields;
    for (uint32_t f = 0; f < a->n_fields; f++) {
        if (x[f].lo == y[f].lo && x[f].hi == y[f].hi)
            continue;
        d.n_fields_differ++;
        if (d.kind != TCTL_DIVERGE_NONE)
            continue;
        d.kind = TCTL_DIVERGE_VALUE;
        d.field = a->fields[f].name;
        d.field_kind = a->fields[f].kind;
        d.a = x[f];
        d.b = y[f];
        d.ulps = d.field_kind == TCTL_TRACE_F32 ? ulps_between(x[f].lo, y[f].lo) : 0;
    }
    return d;
}

tctl_divergence tctl_trace_compare(const tctl_trace_data *a, const tctl_trace_data *b)
{
    if (!same_fields(a, b))
        return (tctl_divergence){.kind = TCTL_DIVERGE_FIELDS};
    uint64_t n = a->n_records < b->n_records ? a->n_records : b->n_records;
    for (uint64_t i = 0; i < n; i++) {
        tctl_divergence d = compare_record(a, b, i);
        if (d.kind != TCTL_DIVERGE_NONE)
            return d;
    }
    if (a->n_records != b->n_records)
        return (tctl_divergence){.kind = TCTL_DIVERGE_LENGTH,
                                 .step = n > 0 ? a->steps[n - 1] : 0,
                                 .after = n > 0 ? a->steps[n - 1] : 0,
                                 .is_first = n == 0};
    return (tctl_divergence){.kind = TCTL_DIVERGE_NONE};
}
