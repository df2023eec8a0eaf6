/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See trace.h. Writing: records gather in a buffer of 64 kB that goes out with one write(2), so that a step costs
 * a copy and a checksum. A process that is killed loses at most that buffer; the file stays readable, since only
 * its last record can be torn.
 *
 * Reading and comparing are in trace_read.c.
 */
#include "manifest/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/size.h"
#include "manifest/trace_format.h"

enum { BUFFER_BYTES = 64 * 1024 };

struct tctl_trace_file {
    int fd;
    uint32_t n_fields;
    bool *is_f32;       /* [n_fields] */
    uint64_t next_step; /* the least that may come */
    size_t record_bytes, used, room;
    uint8_t *buffer;
    tctl_status broken; /* the first failure to write: nothing is written after it */
    char *path;
};

static tctl_status check_fields(const tctl_trace_field *fields, uint32_t n, tctl_error *err)
{
    if (n < 1 || n > TCTL_TRACE_MAX_FIELDS)
        return tctl_fail(err, TCTL_EINVAL, "a trace of %u fields; 1 to %d are possible", n,
                         TCTL_TRACE_MAX_FIELDS);
    for (uint32_t i = 0; i < n; i++) {
        size_t length = fields[i].name ? strlen(fields[i].name) : 0;
        if (length < 1 || length > TCTL_TRACE_MAX_NAME)
            return tctl_fail(err, TCTL_EINVAL,
                             "the name of trace field %u has %zu bytes; 1 to %d are possible", i, length,
                             TCTL_TRACE_MAX_NAME);
        if (fields[i].kind != TCTL_TRACE_DIGEST && fields[i].kind != TCTL_TRACE_F32)
            return tctl_fail(err, TCTL_EINVAL, "trace field '%s' has the unknown kind %d", fields[i].name,
                             (int)fields[i].kind);
    }
    return TCTL_OK;
}

static void add_header(tctl_buf *out, const tctl_trace_field *fields, uint32_t n)
{
    uint8_t words[8];
    tctl_buf_add(out, TCTL_TRACE_MAGIC, 8);
    tctl_put_u32(words, n);
    tctl_put_u32(words + 4, 0);
    tctl_buf_add(out, words, sizeof words);
    for (uint32_t i = 0; i < n; i++) {
        tctl_put_u32(words, (uint32_t)fields[i].kind);
        tctl_put_u32(words + 4, (uint32_t)strlen(fields[i].name));
        tctl_buf_add(out, words, sizeof words);
        tctl_buf_add_text(out, fields[i].name);
    }
    while (!out->broken && out->size % 16 != 0)
        tctl_buf_add_char(out, '\0');
}

static tctl_status write_header(tctl_trace_file *file, const tctl_trace_field *fields, tctl_error *err)
{
    tctl_buf header = TCTL_BUF_INIT;
    add_header(&header, fields, file->n_fields);
    tctl_status status = header.broken ? tctl_fail_memory(err, header.size)
                                       : tctl_write_all(file->fd, header.data, header.size, file->path, err);
    tctl_buf_release(&header);
    return status;
}

static void release(tctl_trace_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    free(file->buffer);
    free(file->is_f32);
    free(file->path);
    free(file);
}

static tctl_status allocate(tctl_trace_file *file, const char *path, const tctl_trace_field *fields,
                            uint32_t n, tctl_error *err)
{
    file->n_fields = n;
    file->record_bytes = tctl_trace_record_bytes(n);
    file->room = file->record_bytes > BUFFER_BYTES ? file->record_bytes
                                                   : BUFFER_BYTES - BUFFER_BYTES % file->record_bytes;
    file->buffer = malloc(file->room);
    file->is_f32 = calloc(n, sizeof *file->is_f32);
    file->path = strdup(path);
    if (!file->buffer || !file->is_f32 || !file->path)
        return tctl_fail_memory(err, file->room + n + strlen(path));
    for (uint32_t i = 0; i < n; i++)
        file->is_f32[i] = fields[i].kind == TCTL_TRACE_F32;
    return TCTL_OK;
}

/* A file that is not open yet. */
static tctl_status begin(const char *path, const tctl_trace_field *fields, uint32_t n, tctl_trace_file **ret,
                         tctl_error *err)
{
    tctl_status status = check_fields(fields, n, err);
    if (status != TCTL_OK)
        return status;
    tctl_trace_file *file = calloc(1, sizeof *file);
    if (!file)
        return tctl_fail_memory(err, sizeof *file);
    file->fd = -1;
    status = allocate(file, path, fields, n, err);
    if (status != TCTL_OK)
        release(file);
    else
        *ret = file;
    return status;
}

/* One writer at a time; the lock goes with the last process that has the descriptor. */
static tctl_status open_locked(tctl_trace_file *file, int flags, tctl_error *err)
{
    file->fd = open(file->path, flags | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return tctl_fail_errno(err, errno, "cannot %s trace '%s'", flags & O_CREAT ? "create" : "open",
                               file->path);
    if (flock(file->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return tctl_fail(err, TCTL_EBUSY, "trace '%s' is being written by another process", file->path);
    return TCTL_OK;
}

tctl_status tctl_trace_create(const char *path, const tctl_trace_field *fields, uint32_t n,
                              tctl_trace_file **ret, tctl_error *err)
{
    tctl_trace_file *file = NULL;
    tctl_status status = begin(path, fields, n, &file, err);
    if (status != TCTL_OK)
        return status;
    /* A trace is evidence: one that is there already is never overwritten. */
    status = open_locked(file, O_WRONLY | O_CREAT | O_EXCL, err);
    if (status == TCTL_OK)
        status = write_header(file, fields, err);
    if (status != TCTL_OK)
        release(file);
    else
        *ret = file;
    return status;
}

static bool same_fields(const tctl_trace_data *data, const tctl_trace_field *fields, uint32_t n)
{
    bool same = data->n_fields == n;
    for (uint32_t i = 0; same && i < n; i++)
        same = data->fields[i].kind == fields[i].kind && strcmp(data->fields[i].name, fields[i].name) == 0;
    return same;
}

/* Where the next record belongs, in the file and among the steps. */
static tctl_status find_end(tctl_trace_file *file, const tctl_trace_field *fields, uint64_t *ret_last,
                            tctl_error *err)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_trace_data *data = NULL;
    struct stat st;
    tctl_status status = arena ? tctl_trace_read(arena, file->path, &data, err) : tctl_fail_memory(err, 0);
    if (status == TCTL_OK && !same_fields(data, fields, file->n_fields))
        status = tctl_fail(err, TCTL_EINVAL, "trace '%s' has other fields", file->path);
    if (status == TCTL_OK &&
        (fstat(file->fd, &st) != 0 || ftruncate(file->fd, st.st_size - (off_t)data->torn_bytes) != 0 ||
         lseek(file->fd, 0, SEEK_END) < 0))
        status = tctl_fail_errno(err, errno, "cannot go on with trace '%s'", file->path);
    if (status == TCTL_OK) {
        *ret_last = data->n_records ? data->steps[data->n_records - 1] : 0;
        file->next_step = data->n_records ? *ret_last + 1 : 0;
    }
    tctl_arena_destroy(arena);
    return status;
}

tctl_status tctl_trace_continue(const char *path, const tctl_trace_field *fields, uint32_t n,
                                tctl_trace_file **ret, uint64_t *ret_last, tctl_error *err)
{
    tctl_trace_file *file = NULL;
    uint64_t last = 0;
    tctl_status status = begin(path, fields, n, &file, err);
    if (status != TCTL_OK)
        return status;
    status = open_locked(file, O_WRONLY, err);
    if (status == TCTL_OK)
        status = find_end(file, fields, &last, err);
    if (status != TCTL_OK) {
        release(file);
        return status;
    }
    *ret = file;
    *ret_last = last;
    return TCTL_OK;
}

tctl_status tctl_trace_flush(tctl_trace_file *file, tctl_error *err)
{
    if (file->broken == TCTL_OK && file->used > 0)
        file->broken = tctl_write_all(file->fd, file->buffer, file->used, file->path, err);
    file->used = 0;
    return file->broken;
}

tctl_status tctl_trace_append(tctl_trace_file *file, uint64_t step, const tctl_trace_value *values,
                              tctl_error *err)
{
    if (file->broken != TCTL_OK)
        return tctl_fail(err, file->broken, "trace '%s' could not be written earlier", file->path);
    if (step < file->next_step || step == UINT64_MAX)
        return tctl_fail(err, TCTL_EINVAL, "trace of step %llu after step %llu; steps grow",
                         (unsigned long long)step, (unsigned long long)(file->next_step - 1));
    uint8_t *record = file->buffer + file->used;
    tctl_put_u64(record, step);
    for (uint32_t i = 0; i < file->n_fields; i++) {
        if (file->is_f32[i] && (values[i].hi != 0 || values[i].lo > UINT32_MAX))
            return tctl_fail(err, TCTL_EINVAL,
                             "trace field %u of step %llu is a float, but has more than 32 bits", i,
                             (unsigned long long)step);
        tctl_put_u64(record + 16 + 16 * (size_t)i, values[i].lo);
        tctl_put_u64(record + 24 + 16 * (size_t)i, values[i].hi);
    }
    tctl_put_u64(record + 8, tctl_trace_check(record, file->n_fields));
    file->next_step = step + 1;
    file->used += file->record_bytes;
    return file->used == file->room ? tctl_trace_flush(file, err) : TCTL_OK;
}

tctl_status tctl_trace_close(tctl_trace_file *file, tctl_error *err)
{
    if (!file)
        return TCTL_OK;
    bool told = file->broken != TCTL_OK;
    tctl_status status = tctl_trace_flush(file, err);
    if (told)
        tctl_fail(err, status, "trace '%s' is not complete: it could not be written", file->path);
    if (status == TCTL_OK && fsync(file->fd) != 0)
        status = tctl_fail_errno(err, errno, "cannot write trace '%s'", file->path);
    int fd = file->fd;
    file->fd = -1;
    if (close(fd) != 0 && status == TCTL_OK)
        status = tctl_fail_errno(err, errno, "cannot write trace '%s'", file->path);
    release(file);
    return status;
}
