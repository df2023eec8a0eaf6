/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting a recorded tree into a new folder.
 *
 * What is read (git's objects, a listing) may have been made by anybody: names are checked, nothing outside the
 * folder is ever opened for writing, and at the end the digest of all that was written is compared with the one that
 * was recorded.
 */
#include "manifest/code_restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "manifest/code.h"
#include "manifest/listing.h"

static bool is_safe_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
           strcasecmp(name, ".git") != 0;
}

static tctl_status check_name(const char *path, const char *name, tctl_error *err)
{
    if (is_safe_name(name))
        return TCTL_OK;
    return tctl_fail(err, TCTL_ECHANGED, "the kept tree has an entry '%s' that no capture makes", path);
}

tctl_status tctl_restore_folder(const char *path, int parent, const char *name, int *ret_fd, tctl_error *err)
{
    tctl_status status = check_name(path, name, err);
    if (status != TCTL_OK)
        return status;
    if (mkdirat(parent, name, 0777) != 0)
        return tctl_fail_errno(err, errno, "cannot make folder '%s'", path);
    *ret_fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*ret_fd < 0)
        return tctl_fail_errno(err, errno, "cannot open folder '%s'", path);
    return TCTL_OK;
}

static tctl_status record(tctl_restore *r, const char *path, char type, uint64_t size,
                          const tctl_sha256 *digest, tctl_error *err)
{
    if (r->n == r->room) {
        size_t room = r->room ? 2 * r->room : 256;
        tctl_tree_entry *bigger = realloc(r->written, room * sizeof *bigger);
        if (!bigger)
            return tctl_fail_memory(err, room * sizeof *bigger);
        r->written = bigger;
        r->room = room;
    }
    r->written[r->n++] = (tctl_tree_entry){.path = path, .type = type, .size = size, .digest = *digest};
    return TCTL_OK;
}

static tctl_status create(int parent, const char *name, const char *path, char type, int *ret,
                          tctl_error *err)
{
    *ret =
        openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, type == 'x' ? 0777 : 0666);
    return *ret < 0 ? tctl_fail_errno(err, errno, "cannot write '%s'", path) : TCTL_OK;
}

static tctl_status make_link(tctl_restore *r, int parent, const char *name, const char *path,
                             const void *data, size_t size, tctl_error *err)
{
    char *target = tctl_arena_copy(r->arena, data, size);
    if (!target)
        return tctl_fail_memory(err, size);
    if (size == 0 || strlen(target) != size)
        return tctl_fail(err, TCTL_ECHANGED, "the target of link '%s' is empty or holds a NUL", path);
    if (symlinkat(target, parent, name) != 0)
        return tctl_fail_errno(err, errno, "cannot make link '%s'", path);
    return TCTL_OK;
}

tctl_status tctl_restore_bytes(tctl_restore *r, int parent, const char *name, const char *path, char type,
                               const void *data, size_t size, tctl_error *err)
{
    tctl_status status = check_name(path, name, err);
    if (status == TCTL_OK && type == 'l') {
        status = make_link(r, parent, name, path, data, size, err);
    } else if (status == TCTL_OK) {
        int fd;
        status = create(parent, name, path, type, &fd, err);
        if (status != TCTL_OK)
            return status;
        status = tctl_write_all(fd, data, size, path, err);
        if (close(fd) != 0 && status == TCTL_OK)
            status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
    }
    if (status != TCTL_OK)
        return status;
    tctl_sha256 digest = tctl_sha256_of(data, size);
    return record(r, path, type, size, &digest, err);
}

static tctl_status copy(int from, int to, const char *path, tctl_sha256 *ret, uint64_t *ret_size,
                        tctl_error *err)
{
    static const size_t room = 65536;
    tctl_hasher *hasher = NULL;
    char *chunk = malloc(room);
    tctl_status status = tctl_hasher_create(&hasher, err);
    if (status == TCTL_OK && !chunk)
        status = tctl_fail_memory(err, room);
    *ret_size = 0;
    while (status == TCTL_OK) {
        ssize_t n = read(from, chunk, room);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            status = tctl_fail_errno(err, errno, "cannot read what was kept of '%s'", path);
        if (n <= 0)
            break;
        tctl_hasher_add(hasher, chunk, (size_t)n);
        *ret_size += (uint64_t)n;
        status = tctl_write_all(to, chunk, (size_t)n, path, err);
    }
    if (status == TCTL_OK)
        *ret = tctl_hasher_finish(hasher);
    tctl_hasher_destroy(hasher);
    free(chunk);
    return status;
}

tctl_status tctl_restore_fd(tctl_restore *r, int parent, const char *name, const char *path, char type,
                            int fd, const tctl_sha256 *want, tctl_error *err)
{
    tctl_sha256 digest = {{0}};
    uint64_t size = 0;
    int to = -1;
    tctl_status status = check_name(path, name, err);
    if (status == TCTL_OK)
        status = create(parent, name, path, type, &to, err);
    if (status != TCTL_OK)
        return status;
    status = copy(fd, to, path, &digest, &size, err);
    if (close(to) != 0 && status == TCTL_OK)
        status = tctl_fail_errno(err, errno, "cannot write '%s'", path);
    if (status == TCTL_OK && !tctl_sha256_equal(&digest, want))
        status =
            tctl_fail(err, TCTL_ECHANGED, "what was kept of '%s' has changed: its digest is another", path);
    return status == TCTL_OK ? record(r, path, type, size, &digest, err) : status;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const tctl_tree_entry *)a)->path, ((const tctl_tree_entry *)b)->path);
}

/* Compares what was written with what was recorded. */
static tctl_status check_digest(tctl_restore *r, tctl_error *err)
{
    const json_t *recorded = json_object_get(r->code, "digest");
    tctl_buf listing = TCTL_BUF_INIT;
    tctl_sha256 want;
    if (json_is_null(recorded)) /* the time limit was met */
        return TCTL_OK;
    if (!json_is_string(recorded) || !tctl_sha256_parse(json_string_value(recorded), &want))
        return tctl_fail(err, TCTL_EFORMAT, "the manifest's 'code' has no usable 'digest'");
    if (r->n > 1)
        qsort(r->written, r->n, sizeof *r->written, by_path);
    tctl_listing_begin(&listing);
    for (size_t i = 0; i < r->n; i++)
        tctl_listing_add(&listing, &r->written[i]);
    tctl_status status = TCTL_OK;
    if (!tctl_buf_text(&listing)) {
        status = tctl_fail_memory(err, listing.size);
    } else {
        tctl_sha256 is = tctl_sha256_of(listing.data, listing.size);
        if (!tctl_sha256_equal(&is, &want))
            status = tctl_fail(err, TCTL_ECHANGED,
                               "the kept tree is not what was recorded: its digest is another");
    }
    tctl_buf_release(&listing);
    return status;
}

/* Opens the folder, made if it is missing, which must be empty. */
static tctl_status open_empty(const char *folder, int *ret, tctl_error *err)
{
    tctl_status status = tctl_make_folders(folder, 0777, err);
    if (status != TCTL_OK)
        return status;
    DIR *dir = opendir(folder);
    if (!dir)
        return tctl_fail_errno(err, errno, "cannot open folder '%s'", folder);
    const struct dirent *entry;
    bool empty = true;
    while ((entry = readdir(dir)) != NULL)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(dir);
    if (!empty)
        return tctl_fail(err, TCTL_EINVAL, "cannot restore into '%s': it is not empty", folder);
    *ret = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret < 0 ? tctl_fail_errno(err, errno, "cannot open folder '%s'", folder) : TCTL_OK;
}

static tctl_status restore(tctl_restore *r, int fd, tctl_error *err)
{
    const json_t *kept = json_object_get(r->code, "kept");
    const json_t *objects = json_object_get(kept, "objects");
    tctl_status status;
    if (json_is_string(objects))
        status = tctl_restore_from_objects(r, json_string_value(objects), fd, err);
    else
        status = tctl_restore_from_git(r, kept, fd, err);
    return status == TCTL_OK ? check_digest(r, err) : status;
}

tctl_status tctl_code_restore(const json_t *code, const char *store, const char *folder, tctl_error *err)
{
    tctl_restore r = {.arena = tctl_arena_create(), .code = code, .store = store, .folder = folder};
    int fd = -1;
    tctl_status status = TCTL_OK;
    const json_t *kept = json_object_get(code, "kept");
    if (!r.arena)
        status = tctl_fail_memory(err, sizeof r);
    else if (json_is_null(kept))
        status = tctl_fail(err, TCTL_EINVAL, "the code of this run was not kept");
    else if (!json_is_object(kept))
        status = tctl_fail(err, TCTL_EFORMAT, "the manifest's 'code' has no usable 'kept'");
    if (status == TCTL_OK)
        status = open_empty(folder, &fd, err);
    if (status == TCTL_OK)
        status = restore(&r, fd, err);
    if (fd >= 0)
        close(fd);
    free(r.written);
    tctl_arena_destroy(r.arena);
    return status;
}
