/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. Every descriptor is close-on-exec. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static tctl_status read_descriptor(int fd, const char *path, size_t limit, tctl_buf *ret, tctl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot read '%s'", path);
    if (!S_ISREG(st.st_mode))
        return tctl_fail(err, TCTL_EINVAL, "cannot read '%s': not a regular file", path);
    char chunk[16384];
    size_t total = 0;
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", path);
        if (n == 0)
            return ret->broken ? tctl_fail_memory(err, total) : TCTL_OK;
        total += (size_t)n;
        if (total > limit)
            return tctl_fail(err, TCTL_EINVAL, "'%s' is larger than %zu bytes", path, limit);
        tctl_buf_add(ret, chunk, (size_t)n);
    }
}

tctl_status tctl_file_read(const char *path, size_t limit, tctl_buf *ret, tctl_error *err)
{
    /* Non-blocking, so that opening a FIFO does not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", path);
    size_t before = ret->size;
    tctl_status status = read_descriptor(fd, path, limit, ret, err);
    close(fd);
    if (status != TCTL_OK && ret->size > before) {
        ret->size = before;
        ret->data[before] = '\0';
    }
    return status;
}

tctl_status tctl_write_all(int fd, const void *data, size_t size, const char *name, tctl_error *err)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot write '%s'", name);
        p += n;
        size -= (size_t)n;
    }
    return TCTL_OK;
}

tctl_status tctl_fsync_parent(const char *path, tctl_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    char *folder = slash ? strndup(path, length ? length : 1) : strdup(".");
    if (!folder)
        return tctl_fail_memory(err, length + 1);
    tctl_status status = TCTL_OK;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some network file systems can't sync a folder and say EINVAL; there is nothing more to be done there. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = tctl_fail_errno(err, errno, "cannot sync folder '%s'", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

/* A new file beside `path`, its name in `temporary`. Not mkstemp: that ignores the umask. */
static int open_temporary(const char *path, mode_t mode, char *temporary, size_t size)
{
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t number = 0;
        if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number)
            number = (uint32_t)getpid() * 1000u + i;
        snprintf(temporary, size, "%s.tmp.%08x", path, (unsigned)number);
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static tctl_status put(const char *path, const void *data, size_t size, mode_t mode, bool durable,
                       tctl_error *err)
{
    size_t length = strlen(path) + sizeof ".tmp.01234567";
    char *temporary = malloc(length);
    if (!temporary)
        return tctl_fail_memory(err, length);
    int fd = open_temporary(path, mode, temporary, length);
    if (fd < 0) {
        tctl_status status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
        free(temporary);
        return status;
    }
    tctl_status status = tctl_write_all(fd, data, size, path, err);
    if (status == TCTL_OK && durable && fsync(fd) != 0)
        status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
    if (close(fd) != 0 && status == TCTL_OK)
        status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
    if (status == TCTL_OK && rename(temporary, path) != 0)
        status = tctl_fail_errno(err, errno, "cannot replace '%s'", path);
    if (status != TCTL_OK)
        unlink(temporary);
    else if (durable)
        status = tctl_fsync_parent(path, err);
    free(temporary);
    return status;
}

tctl_status tctl_file_replace(const char *path, const void *data, size_t size, mode_t mode, tctl_error *err)
{
    return put(path, data, size, mode, true, err);
}

tctl_status tctl_file_put(const char *path, const void *data, size_t size, mode_t mode, tctl_error *err)
{
    return put(path, data, size, mode, false, err);
}

tctl_status tctl_file_sync(const char *path, tctl_error *err)
{
    tctl_status status = TCTL_OK;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0)
        status = tctl_fail_errno(err, errno, "cannot sync '%s'", path);
    if (fd >= 0)
        close(fd);
    return status;
}

tctl_status tctl_make_folders(const char *path, mode_t mode, tctl_error *err)
{
    if (!path[0])
        return tctl_fail(err, TCTL_EINVAL, "cannot make folder '': the name is empty");
    char *copy = strdup(path);
    if (!copy)
        return tctl_fail_memory(err, strlen(path) + 1);
    tctl_status status = TCTL_OK;
    for (char *p = copy + 1; status == TCTL_OK; p++) {
        bool end = *p == '\0';
        if (!end && *p != '/')
            continue;
        *p = '\0';
        if (mkdir(copy, mode) != 0 && errno != EEXIST)
            status = tctl_fail_errno(err, errno, "cannot make folder '%s'", copy);
        if (end)
            break;
        *p = '/';
    }
    struct stat st;
    if (status == TCTL_OK && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        status = tctl_fail(err, TCTL_EIO, "cannot make folder '%s': something else has that name", path);
    free(copy);
    return status;
}

/* ---- removing --------------------------------------------------------------------------------------- */

/* Folders this deep below `top` are moved up into it, so that the depth of a tree costs neither descriptors nor stack. */
enum { MAX_LEVELS = 32 };

typedef struct remover {
    const char *shown;
    int top; /* -1: none yet */
    uint64_t n_moved;
    tctl_error *err;
} remover;

static tctl_status remove_at(remover *r, int parent, const char *name, int level);

static tctl_status fail_remove(const remover *r, int errnum, const char *name)
{
    return tctl_fail_errno(r->err, errnum, "cannot remove '%s' in '%s'", name, r->shown);
}

/* Removes what is in the open folder, once; closes it. */
static tctl_status remove_entries(remover *r, int fd, const char *name, int level)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        tctl_status status = fail_remove(r, errno, name);
        close(fd);
        return status;
    }
    if (level == 0)
        r->top = fd;
    tctl_status status = TCTL_OK;
    while (status == TCTL_OK) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = remove_at(r, fd, entry->d_name, level + 1);
    }
    if (status == TCTL_OK && errno != 0)
        status = fail_remove(r, errno, name);
    closedir(dir);
    return status;
}

static tctl_status move_up(remover *r, int parent, const char *name)
{
    for (;;) {
        char moved[48];
        snprintf(moved, sizeof moved, ".trainctl-removed-%llu", (unsigned long long)r->n_moved++);
        if (renameat(parent, name, r->top, moved) == 0)
            return TCTL_OK;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return fail_remove(r, errno, name);
    }
}

static tctl_status remove_at(remover *r, int parent, const char *name, int level)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return TCTL_OK;
    int reason = errno;
    if (reason != EISDIR && reason != EPERM)
        return fail_remove(r, reason, name);
    if (level > MAX_LEVELS)
        return move_up(r, parent, name);
    for (;;) {
        int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return fail_remove(r, errno == ENOTDIR ? reason : errno, name);
        uint64_t before = r->n_moved;
        tctl_status status = remove_entries(r, fd, name, level);
        if (status != TCTL_OK)
            return status;
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return TCTL_OK;
        /* Folders that were moved up may have come behind what was read. */
        if (level != 0 || errno != ENOTEMPTY || r->n_moved == before)
            return fail_remove(r, errno, name);
    }
}

tctl_status tctl_remove_tree(const char *path, tctl_error *err)
{
    remover r = {.shown = path, .top = -1, .err = err};
    return remove_at(&r, AT_FDCWD, path, 0);
}

bool tctl_path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

char *tctl_path_join(tctl_arena *arena, const char *folder, const char *name)
{
    size_t n = strlen(folder);
    if (name[0] == '/' || n == 0)
        return tctl_arena_copy(arena, name, strlen(name));
    return tctl_arena_format(arena, "%s%s%s", folder, folder[n - 1] == '/' ? "" : "/", name);
}

char *tctl_path_folder(tctl_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return tctl_arena_copy(arena, ".", 1);
    return tctl_arena_copy(arena, path, slash == path ? 1 : (size_t)(slash - path));
}

const char *tctl_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
