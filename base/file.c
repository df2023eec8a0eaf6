/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. Every descriptor is close-on-exec. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    tctl_status status = read_descriptor(fd, path, limit, ret, err);
    close(fd);
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

static tctl_status write_and_sync(int fd, const char *temporary, const void *data, size_t size, mode_t mode,
                                  tctl_error *err)
{
    tctl_status status = tctl_write_all(fd, data, size, temporary, err);
    if (status == TCTL_OK && (fchmod(fd, mode) != 0 || fsync(fd) != 0))
        status = tctl_fail_errno(err, errno, "cannot write '%s'", temporary);
    return status;
}

tctl_status tctl_file_replace(const char *path, const void *data, size_t size, mode_t mode, tctl_error *err)
{
    size_t length = strlen(path) + sizeof ".tmp.XXXXXX";
    char *temporary = malloc(length);
    if (!temporary)
        return tctl_fail_memory(err, length);
    snprintf(temporary, length, "%s.tmp.XXXXXX", path);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        tctl_status status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
        free(temporary);
        return status;
    }
    tctl_status status = write_and_sync(fd, temporary, data, size, mode, err);
    if (close(fd) != 0 && status == TCTL_OK)
        status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
    if (status == TCTL_OK && rename(temporary, path) != 0)
        status = tctl_fail_errno(err, errno, "cannot replace '%s'", path);
    if (status == TCTL_OK)
        status = tctl_fsync_parent(path, err);
    else
        unlink(temporary);
    free(temporary);
    return status;
}

tctl_status tctl_make_folders(const char *path, mode_t mode, tctl_error *err)
{
    char *copy = strdup(path);
    if (!copy)
        return tctl_fail_memory(err, strlen(path) + 1);
    tctl_status status = TCTL_OK;
    for (char *p = copy + 1; status == TCTL_OK; p++) {
        bool end = *copy == '\0' || *p == '\0';
        if (!end && *p != '/')
            continue;
        *p = '\0';
        if (*copy && mkdir(copy, mode) != 0 && errno != EEXIST)
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

static tctl_status remove_at(int parent, const char *name, const char *shown, tctl_error *err);

static tctl_status empty_folder(int fd, const char *shown, tctl_error *err)
{
    DIR *dir = fdopendir(fd);
    if (!dir) {
        close(fd);
        return tctl_fail_errno(err, errno, "cannot read folder '%s'", shown);
    }
    tctl_status status = TCTL_OK;
    struct dirent *entry;
    while (status == TCTL_OK && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = remove_at(dirfd(dir), entry->d_name, shown, err);
    }
    closedir(dir);
    return status;
}

static tctl_status remove_at(int parent, const char *name, const char *shown, tctl_error *err)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return TCTL_OK;
    if (errno != EISDIR && errno != EPERM)
        return tctl_fail_errno(err, errno, "cannot remove '%s' in '%s'", name, shown);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot remove '%s' in '%s'", name, shown);
    tctl_status status = empty_folder(fd, shown, err);
    if (status == TCTL_OK && unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        status = tctl_fail_errno(err, errno, "cannot remove '%s' in '%s'", name, shown);
    return status;
}

tctl_status tctl_remove_tree(const char *path, tctl_error *err)
{
    return remove_at(AT_FDCWD, path, path, err);
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
