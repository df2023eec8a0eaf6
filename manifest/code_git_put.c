/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of the working tree as blobs, as they are: no filter, one read for both digests.
 *
 * A repository that can't be written to is noted once in the context; digests are made all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "manifest/code_internal.h"

/* Larger files are streamed into the repository rather than read into memory. */
static const uint64_t whole_limit = (uint64_t)8 << 20;

static bool looks_binary(const void *data, size_t size)
{
    return size > 0 && memchr(data, '\0', size < 8000 ? size : 8000) != NULL;
}

static void unwritable(tctl_code_ctx *ctx)
{
    if (!ctx->unwritable)
        tctl_code_note(ctx, "the repository cannot be written to: %s", tctl_git_message());
    ctx->unwritable = true;
}

/* `known`: the blob that is there already, or NULL. */
static void put_whole(tctl_code_ctx *ctx, tctl_code_level *level, const void *data, size_t size,
                      const git_oid *known, tctl_code_content *ret)
{
    ret->digest = tctl_sha256_of(data, size);
    ret->size = size;
    ret->binary = looks_binary(data, size);
    if (git_odb_hash(&ret->id, data, size, GIT_OBJECT_BLOB) != 0)
        unwritable(ctx);
    else if (!(known && git_oid_equal(known, &ret->id)) &&
             git_blob_create_from_buffer(&ret->id, level->repo, data, size) != 0)
        unwritable(ctx);
}

static tctl_status read_whole(int fd, const char *path, void *data, size_t size, tctl_error *err)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = read(fd, (char *)data + have, size - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", path);
        if (n == 0)
            return tctl_fail(err, TCTL_EIO, "cannot read '%s': it became shorter meanwhile", path);
        have += (size_t)n;
    }
    return TCTL_OK;
}

static tctl_status put_streamed(tctl_code_ctx *ctx, tctl_code_level *level, int fd, const char *path,
                                uint64_t size, tctl_code_content *ret, tctl_error *err)
{
    static const size_t room = (size_t)1 << 20;
    tctl_hasher *hasher = NULL;
    git_odb_stream *stream = NULL;
    char *chunk = malloc(room);
    if (!chunk)
        return tctl_fail_memory(err, room);
    tctl_status status = tctl_hasher_create(&hasher, err);
    if (status == TCTL_OK && git_odb_open_wstream(&stream, level->odb, size, GIT_OBJECT_BLOB) != 0)
        unwritable(ctx);
    for (uint64_t done = 0; status == TCTL_OK && done < size;) {
        size_t n = size - done < room ? (size_t)(size - done) : room;
        status = read_whole(fd, path, chunk, n, err);
        if (status != TCTL_OK)
            break;
        if (done == 0)
            ret->binary = looks_binary(chunk, n);
        tctl_hasher_add(hasher, chunk, n);
        if (stream && !ctx->unwritable && git_odb_stream_write(stream, chunk, n) != 0)
            unwritable(ctx);
        done += n;
    }
    if (status == TCTL_OK) {
        ret->digest = tctl_hasher_finish(hasher);
        ret->size = size;
        if (stream && !ctx->unwritable && git_odb_stream_finalize_write(&ret->id, stream) != 0)
            unwritable(ctx);
    }
    git_odb_stream_free(stream);
    tctl_hasher_destroy(hasher);
    free(chunk);
    return status;
}

static tctl_status put_file(tctl_code_ctx *ctx, tctl_code_level *level, const char *disk,
                            const git_oid *known, tctl_code_content *ret, tctl_error *err)
{
    int fd = open(disk, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    void *data = NULL;
    tctl_status status = TCTL_OK;
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", disk);
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        status = tctl_fail(err, TCTL_EIO, "cannot read '%s': not a regular file", disk);
    } else if ((uint64_t)st.st_size > whole_limit) {
        status = put_streamed(ctx, level, fd, disk, (uint64_t)st.st_size, ret, err);
    } else {
        size_t size = (size_t)st.st_size;
        data = malloc(size + 1);
        if (!data) {
            status = TCTL_ENOMEM;
            tctl_fail_memory(err, size);
        } else {
            status = read_whole(fd, disk, data, size, err);
            if (status == TCTL_OK)
                put_whole(ctx, level, data, size, known, ret);
        }
    }
    free(data);
    close(fd);
    return status;
}

tctl_status tctl_code_git_put(tctl_code_ctx *ctx, tctl_code_level *level, const char *path,
                              const struct stat *st, const git_oid *known, tctl_code_content *ret,
                              tctl_error *err)
{
    const char *disk = tctl_code_disk_path(ctx, path);
    if (!disk)
        return tctl_fail_memory(err, strlen(path));
    *ret = (tctl_code_content){.size = 0};
    if (!S_ISLNK(st->st_mode))
        return put_file(ctx, level, disk, known, ret, err);
    char target[PATH_MAX];
    ssize_t n = readlink(disk, target, sizeof target);
    if (n < 0)
        return tctl_fail_errno(err, errno, "cannot read link '%s'", disk);
    put_whole(ctx, level, target, (size_t)n, known, ret);
    return TCTL_OK;
}
