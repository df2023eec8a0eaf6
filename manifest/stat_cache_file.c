/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stat_cache_file.h.
 *
 * Readers take no lock: they see whole records and perhaps part of one that is being appended, which its length or
 * checksum gives away. They read into memory rather than map the file, since another process may cut off a torn
 * tail, and a mapping beyond the end of a file is a SIGBUS.
 *
 * Writers hold flock(2) on the file. A file that was replaced while a writer waited is no longer the one at `path`;
 * the writer notices and starts over. Nothing is synced: after a power cut the tail is torn or missing, and the files
 * in it are hashed again.
 */
#include "manifest/stat_cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"

/* A file of more than MAX_BYTES is not read; a rewritten one keeps the newest KEEP_BYTES (some millions of files). */
#define MAX_BYTES  ((uint64_t)4 << 30)
#define KEEP_BYTES ((size_t)1 << 30)

enum { LOCK_TRIES = 100, LOCK_WAIT_NS = 10 * 1000 * 1000 };

void tctl_stat_image_release(tctl_stat_image *image)
{
    free(image->data);
    tctl_stat_index_release(&image->index);
    *image = (tctl_stat_image){0};
}

/* At most `room` bytes from offset `at`; *ret_size may be less at the end of the file. */
static tctl_status read_range(int fd, const char *path, uint64_t at, uint8_t *data, size_t room,
                              size_t *ret_size, tctl_error *err)
{
    size_t size = 0;
    while (size < room) {
        ssize_t n = pread(fd, data + size, room - size, (off_t)(at + size));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read stat cache '%s'", path);
        if (n == 0)
            break;
        size += (size_t)n;
    }
    *ret_size = size;
    return TCTL_OK;
}

/* Walks over the good records from `at` on. Returns where they end; *ret_damaged says why. */
static size_t skip_good(const uint8_t *data, size_t size, size_t at, bool *ret_damaged)
{
    int64_t length = 0;
    while (at < size && (length = tctl_stat_record_check(data, size, at)) > 0)
        at += (size_t)length;
    *ret_damaged = at < size && length < 0;
    return at;
}

static tctl_status index_records(tctl_stat_image *image, size_t size, const char *path, tctl_error *err)
{
    /* The shortest record bounds their number; the table's unused pages are never touched. */
    if (!tctl_stat_index_reserve(&image->index, image->data, size / TCTL_STAT_FIXED))
        return tctl_fail_memory(err, size / TCTL_STAT_FIXED * sizeof(tctl_stat_slot));
    size_t at = TCTL_STAT_HEADER;
    int64_t length = 0;
    while (at < size && (length = tctl_stat_record_check(image->data, size, at)) > 0) {
        image->n_stale += tctl_stat_index_add(&image->index, image->data, at);
        at += (size_t)length;
    }
    image->size = at;
    if (at < size && length < 0)
        return tctl_fail(err, TCTL_EFORMAT,
                         "stat cache '%s' is damaged at offset %zu; what follows is forgotten", path, at);
    return TCTL_OK;
}

static tctl_status read_all(int fd, const char *path, uint8_t **ret, size_t *ret_size, tctl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot read stat cache '%s'", path);
    if (!S_ISREG(st.st_mode))
        return tctl_fail(err, TCTL_EINVAL, "stat cache '%s' is not a regular file", path);
    if ((uint64_t)st.st_size > MAX_BYTES)
        return tctl_fail(err, TCTL_EINVAL, "stat cache '%s' is larger than 4 GiB; remove it", path);
    size_t room = (size_t)st.st_size, size = 0;
    uint8_t *data = malloc(room ? room : 1);
    if (!data)
        return tctl_fail_memory(err, room);
    tctl_status status = read_range(fd, path, 0, data, room, &size, err);
    if (status != TCTL_OK) {
        free(data);
        return status;
    }
    *ret = data;
    *ret_size = size;
    return TCTL_OK;
}

tctl_status tctl_stat_image_read(int fd, const char *path, tctl_stat_image *ret, tctl_error *err)
{
    tctl_stat_image image = {0};
    size_t size = 0;
    tctl_status status = read_all(fd, path, &image.data, &size, err);
    if (status != TCTL_OK)
        return status;
    size_t magic = size < 8 ? size : 8;
    if (memcmp(image.data, TCTL_STAT_MAGIC, magic) != 0) {
        status = tctl_fail(err, TCTL_EFORMAT, "'%s' is not a stat cache, or its beginning is damaged", path);
    } else if (size >= TCTL_STAT_HEADER) {
        image.id = tctl_get_u64(image.data + 8);
        status = index_records(&image, size, path, err);
    }
    if (status == TCTL_ENOMEM)
        tctl_stat_image_release(&image);
    *ret = image;
    return status;
}

/* ---- writing ---------------------------------------------------------------------------------------- */

static tctl_status take_lock(int fd, const char *path, tctl_error *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return TCTL_OK;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return tctl_fail_errno(err, errno, "cannot lock stat cache '%s'", path);
        const struct timespec wait = {0, LOCK_WAIT_NS};
        nanosleep(&wait, NULL);
    }
    return tctl_fail(err, TCTL_EBUSY,
                     "stat cache '%s' is held by another process; new digests are not remembered", path);
}

/* The file at `path`, locked. It is still there under its name: a writer that waited may hold a replaced one. */
static tctl_status open_locked(const char *path, int *ret, tctl_error *err)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct stat held, named;
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0600);
        if (fd < 0)
            return tctl_fail_errno(err, errno, "cannot write stat cache '%s'", path);
        tctl_status status = take_lock(fd, path, err);
        if (status == TCTL_OK && fstat(fd, &held) == 0 && stat(path, &named) == 0 &&
            held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
            *ret = fd;
            return TCTL_OK;
        }
        close(fd);
        if (status != TCTL_OK)
            return status;
    }
    return tctl_fail(err, TCTL_EBUSY, "stat cache '%s' is replaced again and again", path);
}

static void make_header(uint8_t header[TCTL_STAT_HEADER])
{
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, GRND_NONBLOCK) != sizeof id) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        id = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    memcpy(header, TCTL_STAT_MAGIC, 8);
    tctl_put_u64(header + 8, id ? id : 1);
}

/* Where the good records of the locked file end; TCTL_STAT_HEADER also for a file that has no header yet. */
static tctl_status find_end(int fd, const char *path, const tctl_stat_image *known, size_t *ret,
                            tctl_error *err)
{
    uint8_t header[TCTL_STAT_HEADER];
    size_t size = 0;
    bool damaged;
    tctl_status status = read_range(fd, path, 0, header, sizeof header, &size, err);
    if (status != TCTL_OK)
        return status;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot read stat cache '%s'", path);
    if (memcmp(header, TCTL_STAT_MAGIC, size < 8 ? size : 8) != 0)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is not a stat cache", path);
    size_t end = TCTL_STAT_HEADER;
    if (known->id != 0 && size == sizeof header && tctl_get_u64(header + 8) == known->id &&
        (uint64_t)st.st_size >= known->size)
        end = known->size;
    if (size == sizeof header && (uint64_t)st.st_size > end && (uint64_t)st.st_size <= MAX_BYTES) {
        size_t room = (size_t)st.st_size - end;
        uint8_t *tail = malloc(room);
        if (!tail)
            return tctl_fail_memory(err, room);
        status = read_range(fd, path, end, tail, room, &size, err);
        if (status == TCTL_OK)
            end += skip_good(tail, size, 0, &damaged);
        free(tail);
    }
    *ret = end;
    return status;
}

static tctl_status append_locked(int fd, const char *path, const tctl_stat_image *known,
                                 const uint8_t *records, size_t size, tctl_error *err)
{
    size_t end = 0;
    tctl_status status = find_end(fd, path, known, &end, err);
    if (status != TCTL_OK)
        return status;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot write stat cache '%s'", path);
    if ((uint64_t)st.st_size < TCTL_STAT_HEADER) {
        uint8_t header[TCTL_STAT_HEADER];
        make_header(header);
        if (ftruncate(fd, 0) != 0)
            return tctl_fail_errno(err, errno, "cannot write stat cache '%s'", path);
        status = tctl_write_all(fd, header, sizeof header, path, err);
    } else if ((uint64_t)st.st_size > end && ftruncate(fd, (off_t)end) != 0) {
        return tctl_fail_errno(err, errno, "cannot write stat cache '%s'", path);
    }
    if (status == TCTL_OK)
        status = tctl_write_all(fd, records, size, path, err);
    if (status != TCTL_OK && ftruncate(fd, (off_t)end) != 0)
        tctl_note(err, "the file now has a torn tail, which readers pass over");
    return status;
}

/* The records of `image` that are not stale, oldest first, at most KEEP_BYTES of them: the newest. */
static void add_live(const tctl_stat_image *image, tctl_buf *out)
{
    size_t live = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t to_drop = live > KEEP_BYTES ? live - KEEP_BYTES : 0, length;
        for (size_t at = TCTL_STAT_HEADER; at < image->size; at += length) {
            const uint8_t *record = image->data + at;
            length = tctl_get_u32(record + 8);
            size_t newest =
                tctl_stat_index_find(&image->index, image->data, (const char *)record + TCTL_STAT_FIXED,
                                     tctl_get_u32(record + 12));
            if (newest != at)
                continue;
            if (pass == 0)
                live += length;
            else if (to_drop > 0)
                to_drop -= to_drop < length ? to_drop : length;
            else
                tctl_buf_add(out, record, length);
        }
    }
}

static tctl_status rewrite_locked(int fd, const char *path, tctl_error *err)
{
    tctl_stat_image image = {0};
    tctl_status status = tctl_stat_image_read(fd, path, &image, err);
    tctl_buf out = TCTL_BUF_INIT;
    out.limit = SIZE_MAX / 2;
    if (status == TCTL_OK && image.id != 0) {
        uint8_t header[TCTL_STAT_HEADER];
        make_header(header);
        tctl_buf_add(&out, header, sizeof header);
        add_live(&image, &out);
        status = out.broken ? tctl_fail_memory(err, out.size)
                            : tctl_file_replace(path, out.data, out.size, 0600, err);
    }
    tctl_buf_release(&out);
    tctl_stat_image_release(&image);
    return status;
}

/* What is not ours is kept, under another name. */
static tctl_status set_aside(const char *path, tctl_error *err)
{
    tctl_buf aside = TCTL_BUF_INIT;
    tctl_buf_add_format(&aside, "%s.damaged", path);
    const char *name = tctl_buf_text(&aside);
    tctl_status status = TCTL_OK;
    if (!name)
        status = tctl_fail_memory(err, strlen(path));
    else if (rename(path, name) != 0 && errno != ENOENT)
        status = tctl_fail_errno(err, errno, "cannot rename '%s' to '%s'", path, name);
    tctl_buf_release(&aside);
    return status;
}

tctl_status tctl_stat_file_append(const char *path, const tctl_stat_image *known, const uint8_t *records,
                                  size_t size, bool rewrite, tctl_error *err)
{
    tctl_status status = TCTL_EFORMAT;
    for (int i = 0; i < 2 && status == TCTL_EFORMAT; i++) {
        int fd = -1;
        status = open_locked(path, &fd, err);
        if (status != TCTL_OK)
            return status;
        status = append_locked(fd, path, known, records, size, err);
        if (status == TCTL_OK && rewrite)
            status = rewrite_locked(fd, path, err);
        else if (status == TCTL_EFORMAT && set_aside(path, err) != TCTL_OK)
            i = 2;
        close(fd); /* and with it the lock */
    }
    return status;
}
