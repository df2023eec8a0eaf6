/* SPDX-License-Identifier: Apache-2.0 */
/* See idx_format.h. */
#define ZLIB_CONST /* next_in points to const */

#include "idx_format.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { HEADER_MAX = 16, DIM_MAX = 1 << 16 };

/* zlib's densest code is 1032 bytes from one: more cannot come out of a member. */
static const uint64_t GZIP_EXPANSION = 1032;

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int
problem_at(idx_problem *problem, uint64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(problem->reason, sizeof problem->reason, fmt, ap);
    va_end(ap);
    problem->offset = offset;
    return 0;
}

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static size_t header_size(uint32_t magic)
{
    return 4 + 4 * (size_t)(magic & 0xff);
}

static const char *kind_of(uint32_t magic)
{
    return magic == IDX_IMAGES ? "images" : "labels";
}

static int check_magic(uint32_t got, uint32_t magic, idx_problem *problem)
{
    if (got == magic)
        return 1;
    if (got == IDX_IMAGES || got == IDX_LABELS)
        return problem_at(problem, 0, "these are %s, not %s (magic 0x%08x instead of 0x%08x)", kind_of(got),
                          kind_of(magic), got, magic);
    return problem_at(problem, 0, "not an IDX file of %s: the magic is 0x%08x instead of 0x%08x",
                      kind_of(magic), got, magic);
}

/* Reads the header from the first `size` bytes and says how many bytes of values must follow. */
static int read_header(const unsigned char *bytes, size_t size, uint32_t magic, idx_array *array,
                       uint64_t *values_size, idx_problem *problem)
{
    if (size >= 4 && !check_magic(big_endian(bytes), magic, problem))
        return 0;
    size_t header = header_size(magic);
    if (size < header)
        return problem_at(problem, size, "ends inside the header, which has %zu bytes", header);
    array->count = big_endian(bytes + 4);
    array->height = magic == IDX_IMAGES ? big_endian(bytes + 8) : 1;
    array->width = magic == IDX_IMAGES ? big_endian(bytes + 12) : 1;
    if (array->count == 0)
        return problem_at(problem, 4, "has no %s", kind_of(magic));
    if (array->height == 0 || array->height > DIM_MAX)
        return problem_at(problem, 8, "the height %u is not in 1 to %d", array->height, DIM_MAX);
    if (array->width == 0 || array->width > DIM_MAX)
        return problem_at(problem, 12, "the width %u is not in 1 to %d", array->width, DIM_MAX);
    *values_size = (uint64_t)array->count * array->height; /* < 2^49 */
    if (*values_size > SIZE_MAX / 2 / array->width)
        return problem_at(problem, 4, "the header promises more values than memory can address");
    *values_size *= array->width;
    return 1;
}

static int decode_plain(const unsigned char *file, size_t size, uint32_t magic, idx_array *array,
                        idx_problem *problem)
{
    uint64_t values = 0;
    if (!read_header(file, size, magic, array, &values, problem))
        return 0;
    size_t header = header_size(magic);
    if (size - header < values)
        return problem_at(problem, size,
                          "ends after %zu of the %llu bytes of values that the header promises",
                          size - header, (unsigned long long)values);
    if (size - header > values)
        return problem_at(problem, header + values, "%llu bytes too many follow the last value",
                          (unsigned long long)(size - header - values));
    array->values = file + header;
    return 1;
}

typedef struct inflater {
    z_stream z;
    const unsigned char *file;
    size_t size, consumed; /* of the file */
    uint64_t produced;
    int finished; /* the last member ended at the end of the file */
} inflater;

static int zlib_problem(const inflater *in, int code, idx_problem *problem)
{
    if (code == Z_MEM_ERROR) {
        problem->out_of_memory = 1;
        return problem_at(problem, in->consumed, "gzip: out of memory");
    }
    return problem_at(problem, in->consumed, "gzip: %s", in->z.msg ? in->z.msg : "damaged data");
}

/* The gzip member has ended: begins the next one, if there is one. */
static int next_member(inflater *in, idx_problem *problem)
{
    if (in->consumed == in->size) {
        in->finished = 1;
        return 1;
    }
    if (in->file[in->consumed] != 0x1f)
        return problem_at(problem, in->consumed,
                          "%zu bytes that are not gzip follow the end of the gzip data",
                          in->size - in->consumed);
    int code = inflateReset(&in->z);
    return code == Z_OK ? 1 : zlib_problem(in, code, problem);
}

/* Fills out[0..want-1] as far as the data goes; *ret_got < want only at its end. */
static int inflate_some(inflater *in, unsigned char *out, size_t want, size_t *ret_got, idx_problem *problem)
{
    size_t got = 0;
    while (got < want && !in->finished) {
        size_t left_in = in->size - in->consumed, left_out = want - got;
        in->z.next_in = in->file + in->consumed;
        in->z.avail_in = (uInt)(left_in < INT_MAX ? left_in : INT_MAX);
        in->z.next_out = out + got;
        in->z.avail_out = (uInt)(left_out < INT_MAX ? left_out : INT_MAX);
        uInt given_in = in->z.avail_in, given_out = in->z.avail_out;
        int code = inflate(&in->z, Z_NO_FLUSH);
        in->consumed += given_in - in->z.avail_in;
        got += given_out - in->z.avail_out;
        if (code == Z_STREAM_END) {
            if (!next_member(in, problem))
                return 0;
        } else if (code == Z_BUF_ERROR || (code == Z_OK && in->consumed == in->size && got < want)) {
            return problem_at(problem, in->size, "gzip: ends inside the compressed data");
        } else if (code != Z_OK) {
            return zlib_problem(in, code, problem);
        }
    }
    in->produced += got;
    *ret_got = got;
    return 1;
}

/* The values, their number known: read them, and nothing may follow. Frees nothing: the caller does. */
static int inflate_values(inflater *in, unsigned char *out, size_t want, idx_problem *problem)
{
    size_t got = 0, extra = 0;
    unsigned char byte[1];
    if (!inflate_some(in, out, want, &got, problem))
        return 0;
    if (got < want) {
        problem->in_gzip = 1;
        return problem_at(problem, in->produced,
                          "ends after %zu of the %zu bytes of values that the header promises", got, want);
    }
    if (!inflate_some(in, byte, 1, &extra, problem)) /* also checks the trailer of the last member */
        return 0;
    if (extra != 0) {
        problem->in_gzip = 1;
        return problem_at(problem, in->produced - 1, "more bytes follow the last value");
    }
    return 1;
}

static int decode_gzip(inflater *in, uint32_t magic, const idx_memory *memory, idx_array *array,
                       idx_problem *problem)
{
    unsigned char header[HEADER_MAX] = {0};
    size_t got = 0;
    uint64_t values = 0;
    if (!inflate_some(in, header, header_size(magic), &got, problem))
        return 0;
    if (!read_header(header, got, magic, array, &values, problem)) {
        problem->in_gzip = 1;
        return 0;
    }
    if (values / GZIP_EXPANSION > in->size) {
        problem->in_gzip = 1;
        return problem_at(problem, 4,
                          "the header promises %llu bytes of values, more than %zu compressed bytes can hold",
                          (unsigned long long)values, in->size);
    }
    unsigned char *out = memory->allocate(memory->owner, (size_t)values);
    if (!out) {
        problem->out_of_memory = 1;
        return problem_at(problem, 0, "out of memory: %llu bytes asked for", (unsigned long long)values);
    }
    if (!inflate_values(in, out, (size_t)values, problem)) {
        memory->release(memory->owner, out);
        return 0;
    }
    array->values = array->bytes = out;
    return 1;
}

int idx_decode(const unsigned char *file, size_t size, uint32_t magic, const idx_memory *memory,
               idx_array *ret, idx_problem *problem)
{
    idx_array array;
    memset(&array, 0, sizeof array);
    memset(problem, 0, sizeof *problem);
    int done = 0;
    if (size >= 2 && file[0] == 0x1f && file[1] == 0x8b) {
        inflater in;
        memset(&in, 0, sizeof in);
        in.file = file;
        in.size = size;
        int code = inflateInit2(&in.z, 16 + MAX_WBITS); /* 16: gzip, with its CRC checked */
        if (code != Z_OK)
            return zlib_problem(&in, code, problem);
        done = decode_gzip(&in, magic, memory, &array, problem);
        inflateEnd(&in.z);
    } else {
        done = decode_plain(file, size, magic, &array, problem);
    }
    if (done)
        *ret = array;
    return done;
}
