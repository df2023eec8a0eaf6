/* SPDX-License-Identifier: Apache-2.0 */
/* Files and memory as sources. See source.h. */
#include "manifest/content/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_source {
    tctl_source base;
    int fd;
} file_source;

typedef struct memory_source {
    tctl_source base;
    const unsigned char *data;
} memory_source;

tctl_status tctl_source_read(tctl_source *s, uint64_t offset, void *into, size_t n, tctl_error *err)
{
    if (offset > s->size || n > s->size - offset)
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' ends at byte %" PRIu64 ", where %zu bytes from byte %" PRIu64 " should be",
                         s->name, s->size, n, offset);
    return n == 0 ? TCTL_OK : s->read(s, offset, into, n, err);
}

void tctl_source_close(tctl_source *s)
{
    if (s != NULL && s->close != NULL)
        s->close(s);
}

static tctl_status read_file(tctl_source *s, uint64_t offset, void *into, size_t n, tctl_error *err)
{
    const file_source *f = (const file_source *)s;
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(f->fd, (char *)into + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", s->name);
        if (got == 0)
            return tctl_fail(err, TCTL_EIO, "'%s' became shorter while it was read", s->name);
        done += (size_t)got;
    }
    return TCTL_OK;
}

static void close_file(tctl_source *s)
{
    file_source *f = (file_source *)s;
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

tctl_status tctl_source_open(tctl_arena *arena, const char *path, tctl_source **ret, tctl_error *err)
{
    file_source *f = tctl_arena_take(arena, sizeof *f);
    const char *name = tctl_arena_copy(arena, path, strlen(path));
    struct stat st;
    if (f == NULL || name == NULL)
        return tctl_fail_memory(err, sizeof *f);
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (f->fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", path);
    tctl_status status = TCTL_OK;
    if (fstat(f->fd, &st) != 0)
        status = tctl_fail_errno(err, errno, "cannot read '%s'", path);
    else if (!S_ISREG(st.st_mode))
        status = tctl_fail(err, TCTL_EINVAL, "cannot look into '%s': not a regular file", path);
    if (status != TCTL_OK) {
        close(f->fd);
        return status;
    }
    f->base = (tctl_source){name, (uint64_t)st.st_size, false, read_file, close_file};
    *ret = &f->base;
    return TCTL_OK;
}

static tctl_status read_memory(tctl_source *s, uint64_t offset, void *into, size_t n, tctl_error *err)
{
    const memory_source *m = (const memory_source *)s;
    (void)err;
    memcpy(into, m->data + offset, n);
    return TCTL_OK;
}

tctl_status tctl_source_of(tctl_arena *arena, const char *name, const void *data, size_t size,
                           tctl_source **ret, tctl_error *err)
{
    memory_source *m = tctl_arena_take(arena, sizeof *m);
    if (m == NULL)
        return tctl_fail_memory(err, sizeof *m);
    m->base = (tctl_source){name, size, false, read_memory, NULL};
    m->data = data;
    *ret = &m->base;
    return TCTL_OK;
}
