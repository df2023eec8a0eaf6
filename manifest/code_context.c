/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a capture: limits, the growing lists, what is left out and why.
 *
 * Does not know git.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/size.h"
#include "manifest/code_internal.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

static const uint64_t default_max_bytes = (uint64_t)64 << 20, default_max_total = (uint64_t)256 << 20;
static const uint64_t default_max_files = 20000;
static const double default_max_seconds = 10;
/* A file that is left out is still hashed up to this size. */
static const uint64_t cheap_to_hash = (uint64_t)256 << 20;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t or_default(uint64_t value, uint64_t standard)
{
    return value ? value : standard;
}

tctl_status tctl_code_ctx_init(tctl_code_ctx *ctx, const tctl_code_request *request, tctl_error *err)
{
    *ctx = (tctl_code_ctx){.request = request,
                           .max_bytes = or_default(request->max_bytes, default_max_bytes),
                           .max_total = or_default(request->max_total, default_max_total),
                           .max_files = or_default(request->max_files, default_max_files)};
    ctx->deadline = now() + (request->max_seconds > 0 ? request->max_seconds : default_max_seconds);
    ctx->arena = tctl_arena_create();
    ctx->notes = json_array();
    if (!ctx->arena || !ctx->notes)
        return tctl_fail_memory(err, sizeof *ctx);
    return TCTL_OK;
}

static void release_lists(tctl_code_ctx *ctx)
{
    free(ctx->files);
    free(ctx->changes);
    json_decref(ctx->skipped);
    json_decref(ctx->submodules);
    json_decref(ctx->lfs);
    json_decref(ctx->filters);
}

void tctl_code_ctx_release(tctl_code_ctx *ctx)
{
    release_lists(ctx);
    json_decref(ctx->notes);
    tctl_arena_destroy(ctx->arena);
}

/* The part of `path` below `root`, or NULL if it is not below (nor is root itself: ""). */
static const char *below(const char *root, const char *path)
{
    size_t n = strlen(root);
    while (n > 0 && root[n - 1] == '/')
        n--;
    if (strncmp(path, root, n) != 0 || (path[n] != '\0' && path[n] != '/'))
        return NULL;
    path += n;
    while (*path == '/')
        path++;
    return path;
}

/* Adds the place of `path` below the root, as written and with links resolved. */
static void exclude(tctl_code_ctx *ctx, size_t *n, const char *path)
{
    char real[PATH_MAX];
    const char *forms[2] = {path, realpath(path, real)};
    for (int i = 0; i < 2; i++) {
        const char *relative = forms[i] ? below(ctx->root, forms[i]) : NULL;
        if (!relative)
            continue;
        if (*relative == '\0') {
            if (i == 0)
                tctl_code_note(
                    ctx, "an input is the whole folder of the code: it is captured as code all the same");
            continue;
        }
        size_t length = strlen(relative);
        while (length > 0 && relative[length - 1] == '/')
            length--;
        char *copy = tctl_arena_copy(ctx->arena, relative, length);
        if (copy)
            ctx->excluded[(*n)++] = copy;
        else
            ctx->no_memory = true;
    }
}

tctl_status tctl_code_ctx_restart(tctl_code_ctx *ctx, const char *root, tctl_error *err)
{
    release_lists(ctx);
    ctx->files = NULL;
    ctx->changes = NULL;
    ctx->n_files = ctx->room_files = ctx->n_changes = ctx->room_changes = 0;
    ctx->n_skipped = ctx->new_bytes = ctx->new_files = 0;
    ctx->undigested = false;
    ctx->skipped = json_array();
    ctx->submodules = json_array();
    ctx->lfs = json_array();
    ctx->filters = json_object();
    ctx->root = tctl_arena_copy(ctx->arena, root, strlen(root));
    size_t n = 0;
    while (ctx->request->inputs && ctx->request->inputs[n])
        n++;
    ctx->excluded = tctl_arena_take_array(ctx->arena, 2 * n + 3, sizeof *ctx->excluded);
    if (!ctx->skipped || !ctx->submodules || !ctx->lfs || !ctx->filters || !ctx->root || !ctx->excluded)
        return tctl_fail_memory(err, sizeof *ctx);
    size_t used = 0;
    if (ctx->request->store)
        exclude(ctx, &used, ctx->request->store);
    for (size_t i = 0; i < n; i++)
        exclude(ctx, &used, ctx->request->inputs[i]);
    return ctx->no_memory ? tctl_fail_memory(err, strlen(root)) : TCTL_OK;
}

bool tctl_code_late(tctl_code_ctx *ctx)
{
    if (!ctx->late && now() > ctx->deadline) {
        ctx->late = true;
        tctl_code_note(ctx, "the time limit was met: what was not captured until then is missing");
    }
    return ctx->late;
}

void tctl_code_note(tctl_code_ctx *ctx, const char *fmt, ...)
{
    tctl_error text = {0}; /* only to format: bounded, no allocation */
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(&text, TCTL_EINVAL, fmt, ap);
    va_end(ap);
    /* A message may hold the bytes of a path, and may be cut within a character. */
    tctl_code_append(ctx, ctx->notes, tctl_path_to_json(text.message));
}

void tctl_code_skip(tctl_code_ctx *ctx, const char *path, uint64_t size, const tctl_sha256 *digest,
                    const char *why)
{
    if (ctx->n_skipped++ >= TCTL_CODE_LISTED)
        return;
    json_t *entry = json_object();
    tctl_code_set(ctx, entry, "path", tctl_path_to_json(path));
    tctl_code_set(ctx, entry, "size", tctl_json_count(size));
    tctl_code_set(ctx, entry, "reason", json_string(why));
    if (digest) {
        char hex[TCTL_SHA256_HEX];
        tctl_sha256_hex(digest, hex);
        tctl_code_set(ctx, entry, "sha256", json_string(hex));
    }
    tctl_code_append(ctx, ctx->skipped, entry);
}

bool tctl_code_excluded(const tctl_code_ctx *ctx, const char *path)
{
    for (const char **e = ctx->excluded; *e; e++) {
        size_t n = strlen(*e);
        if (strncmp(path, *e, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return true;
    }
    return false;
}

/* Room for one more of n elements. */
static bool grow(void **data, size_t n, size_t *room, size_t element)
{
    if (n < *room)
        return true;
    size_t more = *room ? 2 * *room : 256, bytes;
    void *bigger = tctl_mul_size(more, element, &bytes) ? realloc(*data, bytes) : NULL;
    if (!bigger)
        return false;
    *data = bigger;
    *room = more;
    return true;
}

tctl_code_file *tctl_code_add_file(tctl_code_ctx *ctx)
{
    void *data = ctx->files;
    if (!grow(&data, ctx->n_files, &ctx->room_files, sizeof *ctx->files))
        return NULL;
    ctx->files = data;
    tctl_code_file *file = &ctx->files[ctx->n_files++];
    memset(file, 0, sizeof *file);
    return file;
}

tctl_code_change *tctl_code_add_change(tctl_code_ctx *ctx)
{
    void *data = ctx->changes;
    if (!grow(&data, ctx->n_changes, &ctx->room_changes, sizeof *ctx->changes))
        return NULL;
    ctx->changes = data;
    tctl_code_change *change = &ctx->changes[ctx->n_changes++];
    memset(change, 0, sizeof *change);
    change->binary = -1;
    return change;
}

const char *tctl_code_disk_path(tctl_code_ctx *ctx, const char *path)
{
    return tctl_path_join(ctx->arena, ctx->root, path);
}

char tctl_code_type(const struct stat *st)
{
    if (S_ISLNK(st->st_mode))
        return 'l';
    if (!S_ISREG(st->st_mode))
        return 0;
    return st->st_mode & S_IXUSR ? 'x' : 'f';
}

bool tctl_code_admit(tctl_code_ctx *ctx, const char *path, const struct stat *st)
{
    uint64_t size = (uint64_t)st->st_size;
    const char *why = NULL;
    if (ctx->new_files >= ctx->max_files)
        why = "more files than the limit";
    else if (size > ctx->max_bytes)
        why = "larger than the limit for one file";
    else if (size > ctx->max_total - ctx->new_bytes)
        why = "larger than what is left of the limit for all files";
    else if (tctl_code_late(ctx))
        why = "time limit";
    if (!why) {
        ctx->new_files++;
        ctx->new_bytes += size;
        return true;
    }
    tctl_sha256 digest;
    uint64_t hashed = 0;
    /* Beyond the listed ones a digest would be thrown away. */
    bool wanted = ctx->n_skipped < TCTL_CODE_LISTED && size <= cheap_to_hash && !tctl_code_late(ctx);
    bool known = wanted && tctl_code_digest(ctx, path, st, &digest, &hashed, NULL) == TCTL_OK;
    tctl_code_skip(ctx, path, size, known ? &digest : NULL, why);
    return false;
}

static tctl_status digest_link(const char *disk, const struct stat *st, tctl_sha256 *ret, uint64_t *ret_size,
                               tctl_error *err)
{
    size_t room = (size_t)st->st_size + 2;
    char *target = malloc(room);
    if (!target)
        return tctl_fail_memory(err, room);
    ssize_t n = readlink(disk, target, room);
    tctl_status status = TCTL_OK;
    if (n < 0)
        status = tctl_fail_errno(err, errno, "cannot read link '%s'", disk);
    if (n >= 0) {
        *ret = tctl_sha256_of(target, (size_t)n);
        *ret_size = (uint64_t)n;
    }
    free(target);
    return status;
}

tctl_status tctl_code_digest(tctl_code_ctx *ctx, const char *path, const struct stat *st, tctl_sha256 *ret,
                             uint64_t *ret_size, tctl_error *err)
{
    const char *disk = tctl_code_disk_path(ctx, path);
    if (!disk)
        return tctl_fail_memory(err, strlen(path));
    if (S_ISLNK(st->st_mode))
        return digest_link(disk, st, ret, ret_size, err);
    tctl_stat_cache *cache = ctx->request->cache;
    if (cache && tctl_stat_cache_get(cache, disk, st, ret)) {
        *ret_size = (uint64_t)st->st_size;
        return TCTL_OK;
    }
    /* Non-blocking: somebody may have put a FIFO there since. */
    int fd = open(disk, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '%s'", disk);
    struct stat opened;
    tctl_status status = TCTL_OK;
    if (fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode))
        status = tctl_fail(err, TCTL_EIO, "cannot read '%s': not a regular file", disk);
    else
        status = tctl_sha256_fd(fd, disk, ret, ret_size, err);
    if (status == TCTL_OK && cache && *ret_size == (uint64_t)opened.st_size)
        tctl_stat_cache_put(cache, disk, &opened, ret);
    close(fd);
    return status;
}

void tctl_code_set(tctl_code_ctx *ctx, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) != 0)
        ctx->no_memory = true;
}

void tctl_code_append(tctl_code_ctx *ctx, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0)
        ctx->no_memory = true;
}
