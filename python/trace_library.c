/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See trace_library.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "python/trace_library.h"

enum { ROOM = 4096 }; /* of a chunk whose NaNs are made one */

/* How an element's NaNs are recognised: bits above `infinity`, of `bytes` bytes, without the sign. */
typedef struct float_kind {
    uint32_t bytes;
    uint64_t infinity, canonical;
} float_kind;

/* The numbers are the shim's: 0 for anything that is no float. bfloat16 is 1, since it has float16's size. */
static const float_kind kinds[] = {
    {0, 0, 0},
    {2, 0x7f80, 0x7fc0},
    {2, 0x7c00, 0x7e00},
    {0, 0, 0},
    {4, 0x7f800000, 0x7fc00000},
    {0, 0, 0},
    {0, 0, 0},
    {0, 0, 0},
    {8, 0x7ff0000000000000, 0x7ff8000000000000},
};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

#define DEFINE_NANS(type, name)                                                                              \
    static int has_nan_##name(const type *x, size_t n, type infinity)                                        \
    {                                                                                                        \
        const type magnitude = (type)((type) ~(type)0 >> 1);                                                 \
        type found = 0;                                                                                      \
        for (size_t i = 0; i < n; i++)                                                                       \
            found |= (type)((type)(x[i] & magnitude) > infinity);                                            \
        return found != 0;                                                                                   \
    }                                                                                                        \
    static void mend_##name(type *x, size_t n, type infinity, type canonical)                                \
    {                                                                                                        \
        const type magnitude = (type)((type) ~(type)0 >> 1);                                                 \
        for (size_t i = 0; i < n; i++)                                                                       \
            x[i] = (type)(x[i] & magnitude) > infinity ? canonical : x[i];                                   \
    }
DEFINE_NANS(uint16_t, 16)
DEFINE_NANS(uint32_t, 32)
DEFINE_NANS(uint64_t, 64)

static int has_nan(const void *data, size_t bytes, const float_kind *kind)
{
    switch (kind->bytes) {
    case 2:
        return has_nan_16(data, bytes / 2, (uint16_t)kind->infinity);
    case 4:
        return has_nan_32(data, bytes / 4, (uint32_t)kind->infinity);
    case 8:
        return has_nan_64(data, bytes / 8, kind->infinity);
    default:
        return 0;
    }
}

static void mend(void *data, size_t bytes, const float_kind *kind)
{
    if (kind->bytes == 2)
        mend_16(data, bytes / 2, (uint16_t)kind->infinity, (uint16_t)kind->canonical);
    else if (kind->bytes == 4)
        mend_32(data, bytes / 4, (uint32_t)kind->infinity, (uint32_t)kind->canonical);
    else
        mend_64(data, bytes / 8, kind->infinity, kind->canonical);
}

static XXH128_hash_t digest_mended(const uint8_t *data, size_t bytes, const float_kind *kind, uint64_t salt)
{
    uint64_t room[ROOM / 8];
    XXH3_state_t *state = XXH3_createState();
    XXH128_hash_t none = {0, 0};
    if (state == NULL)
        return none;
    XXH3_128bits_reset_withSeed(state, salt);
    for (size_t at = 0; at < bytes; at += ROOM) {
        size_t n = bytes - at < ROOM ? bytes - at : ROOM;
        memcpy(room, data + at, n);
        mend(room, n, kind);
        XXH3_128bits_update(state, room, n);
    }
    none = XXH3_128bits_digest(state);
    XXH3_freeState(state);
    return none;
}

void trainctl_trace_digest(uint32_t n, const void *const *data, const uint64_t *sizes, const int32_t *kind,
                           const uint64_t *salts, uint64_t *ret)
{
    for (uint32_t i = 0; i < n; i++) {
        XXH128_hash_t hash = {0, 0};
        size_t bytes = (size_t)sizes[i];
        const float_kind *k = &kinds[kind[i] > 0 && kind[i] < N_KINDS ? kind[i] : 0];
        if (data[i] != NULL && k->bytes != 0 && has_nan(data[i], bytes, k))
            hash = digest_mended(data[i], bytes, k, salts[i]);
        else if (data[i] != NULL)
            hash = XXH3_128bits_withSeed(data[i], bytes, salts[i]);
        ret[2 * i] = hash.low64;
        ret[2 * i + 1] = hash.high64;
    }
}

uint64_t trainctl_trace_salt(const void *text, uint64_t size)
{
    return XXH3_64bits(text, (size_t)size);
}

static int say(const tctl_error *err, char *message, uint64_t size)
{
    snprintf(message, (size_t)size, "%s", err->message);
    return (int)err->code;
}

int trainctl_trace_open(const char *path, uint32_t n, const char *const *names, const int32_t *kind,
                        tctl_trace_file **ret, uint64_t *ret_last, char *message, uint64_t size)
{
    tctl_error err = {0};
    tctl_trace_field *fields = calloc(n + 1u, sizeof *fields);
    if (fields == NULL) {
        tctl_fail_memory(&err, n);
        return say(&err, message, size);
    }
    for (uint32_t i = 0; i < n; i++)
        fields[i] = (tctl_trace_field){.name = names[i], .kind = kind[i]};
    *ret_last = 0;
    tctl_status st = access(path, F_OK) == 0 ? tctl_trace_continue(path, fields, n, ret, ret_last, &err)
                                             : tctl_trace_create(path, fields, n, ret, &err);
    free(fields);
    return st == TCTL_OK ? 0 : say(&err, message, size);
}

int trainctl_trace_append(tctl_trace_file *file, uint64_t step, const tctl_trace_value *values, char *message,
                          uint64_t size)
{
    tctl_error err = {0};
    tctl_status st = tctl_trace_append(file, step, values, &err);
    if (st == TCTL_OK)
        st = tctl_trace_flush(file, &err);
    return st == TCTL_OK ? 0 : say(&err, message, size);
}
