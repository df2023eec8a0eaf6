/* SPDX-License-Identifier: Apache-2.0 */
/* See objects.h. */
#include "manifest/objects.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* So many objects of a set are synced one by one. */
enum { synced_singly = 64 };

/* "<store>/objects/ab/cdef…"; with `folder_only` up to "ab". From malloc, NULL if memory is out. */
static char *object_path(const char *store, const tctl_sha256 *digest, bool folder_only)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(digest, hex);
    size_t room = strlen(store) + sizeof "/objects/" + TCTL_SHA256_HEX + 1;
    char *path = malloc(room);
    if (path)
        snprintf(path, room, "%s/objects/%.2s%s%s", store, hex, folder_only ? "" : "/",
                 folder_only ? "" : hex + 2);
    return path;
}

/* True if the object is there with this many bytes. */
static bool have_object(const char *path, uint64_t size)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == size;
}

typedef struct temporary {
    char *path;
    int fd;
} temporary;

static tctl_status temporary_create(const char *store, temporary *ret, tctl_error *err)
{
    size_t room = strlen(store) + sizeof "/objects/.tmp.XXXXXX";
    char *path = malloc(room);
    if (!path)
        return tctl_fail_memory(err, room);
    snprintf(path, room, "%s/objects", store);
    tctl_status status = tctl_make_folders(path, 0777, err);
    if (status == TCTL_OK) {
        snprintf(path, room, "%s/objects/.tmp.XXXXXX", store);
        ret->fd = mkostemp(path, O_CLOEXEC);
        if (ret->fd < 0)
            status = tctl_fail_errno(err, errno, "cannot write to '%s/objects'", store);
    }
    if (status != TCTL_OK) {
        free(path);
        return status;
    }
    ret->path = path;
    return TCTL_OK;
}

/* Closes the temporary file and gives it the object's name, or removes it. Frees the path. */
static tctl_status temporary_finish(temporary *t, tctl_object_set *set, const tctl_sha256 *digest,
                                    tctl_status status, tctl_error *err)
{
    bool sync = set->written < synced_singly;
    char *folder = NULL, *path = NULL;
    if (status == TCTL_OK && (fchmod(t->fd, 0444) != 0 || (sync && fsync(t->fd) != 0)))
        status = tctl_fail_errno(err, errno, "cannot write '%s'", t->path);
    if (close(t->fd) != 0 && status == TCTL_OK)
        status = tctl_fail_errno(err, errno, "cannot write '%s'", t->path);
    if (status != TCTL_OK)
        goto out;
    folder = object_path(set->store, digest, true);
    path = object_path(set->store, digest, false);
    if (!folder || !path) {
        status = tctl_fail_memory(err, TCTL_SHA256_HEX);
        goto out;
    }
    status = tctl_make_folders(folder, 0777, err);
    if (status == TCTL_OK && rename(t->path, path) != 0)
        status = tctl_fail_errno(err, errno, "cannot name object '%s'", path);
    if (status == TCTL_OK && sync)
        status = tctl_fsync_parent(path, err);
    set->written += status == TCTL_OK;
out:
    if (status != TCTL_OK)
        unlink(t->path);
    free(t->path);
    free(folder);
    free(path);
    return status;
}

tctl_status tctl_object_put(tctl_object_set *set, const void *data, size_t size, tctl_sha256 *ret,
                            tctl_error *err)
{
    tctl_sha256 digest = tctl_sha256_of(data, size);
    char *path = object_path(set->store, &digest, false);
    if (!path)
        return tctl_fail_memory(err, TCTL_SHA256_HEX);
    bool have = have_object(path, size);
    free(path);
    if (!have) {
        temporary t;
        tctl_status status = temporary_create(set->store, &t, err);
        if (status != TCTL_OK)
            return status;
        status = tctl_write_all(t.fd, data, size, t.path, err);
        status = temporary_finish(&t, set, &digest, status, err);
        if (status != TCTL_OK)
            return status;
    }
    *ret = digest;
    return TCTL_OK;
}

/* Copies to the end of `fd`, hashing. */
static tctl_status copy_hashed(int fd, const char *name, const temporary *t, tctl_sha256 *ret,
                               uint64_t *ret_size, tctl_error *err)
{
    tctl_hasher *hasher = NULL;
    tctl_status status = tctl_hasher_create(&hasher, err);
    uint64_t total = 0;
    static const size_t room = 65536;
    char *chunk = malloc(room);
    if (status == TCTL_OK && !chunk)
        status = tctl_fail_memory(err, room);
    while (status == TCTL_OK) {
        ssize_t n = read(fd, chunk, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = tctl_fail_errno(err, errno, "cannot read '%s'", name);
        if (n <= 0)
            break;
        tctl_hasher_add(hasher, chunk, (size_t)n);
        total += (uint64_t)n;
        status = tctl_write_all(t->fd, chunk, (size_t)n, t->path, err);
    }
    if (status == TCTL_OK) {
        *ret = tctl_hasher_finish(hasher);
        *ret_size = total;
    }
    tctl_hasher_destroy(hasher);
    free(chunk);
    return status;
}

tctl_status tctl_object_put_fd(tctl_object_set *set, int fd, const char *name, const tctl_sha256 *known,
                               uint64_t size, tctl_sha256 *ret, uint64_t *ret_size, tctl_error *err)
{
    if (known) {
        char *path = object_path(set->store, known, false);
        if (!path)
            return tctl_fail_memory(err, TCTL_SHA256_HEX);
        bool have = have_object(path, size);
        free(path);
        if (have) {
            *ret = *known;
            *ret_size = size;
            return TCTL_OK;
        }
    }
    temporary t;
    tctl_status status = temporary_create(set->store, &t, err);
    if (status != TCTL_OK)
        return status;
    tctl_sha256 digest = {{0}};
    uint64_t total = 0;
    status = copy_hashed(fd, name, &t, &digest, &total, err);
    status = temporary_finish(&t, set, &digest, status, err);
    if (status == TCTL_OK) {
        *ret = digest;
        *ret_size = total;
    }
    return status;
}

tctl_status tctl_object_open(const char *store, const tctl_sha256 *digest, int *ret, tctl_error *err)
{
    char *path = object_path(store, digest, false);
    if (!path)
        return tctl_fail_memory(err, TCTL_SHA256_HEX);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    tctl_status status = TCTL_OK;
    if (fd < 0)
        status = tctl_fail_errno(err, errno, "cannot open object '%s'", path);
    else
        *ret = fd;
    free(path);
    return status;
}

tctl_status tctl_object_set_sync(const tctl_object_set *set, tctl_error *err)
{
    if (set->written <= synced_singly)
        return TCTL_OK;
    int fd = open(set->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tctl_status status = TCTL_OK;
    if (fd < 0 || syncfs(fd) != 0)
        status = tctl_fail_errno(err, errno, "cannot sync '%s'", set->store);
    if (fd >= 0)
        close(fd);
    return status;
}
