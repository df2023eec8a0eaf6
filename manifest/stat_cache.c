/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See stat_cache.h. What was read from the file never changes and is read without a lock; what this process adds is in
 * a second table under a mutex, in the form in which it will be appended.
 */
#include "manifest/stat_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "manifest/stat_cache_file.h"

/* Timestamps lag behind by a tick of the kernel's clock (10 ms where it ticks slowest). */
#define SECOND        INT64_C(1000000000)
#define TICK_SLACK    (SECOND / 50)
#define COARSE_SLACK  (2 * SECOND)
#define LARGEST_TIME  INT64_C(9000000000)
#define REWRITE_ABOVE 64

struct tctl_stat_cache {
    char *path; /* NULL: nothing is written */
    int64_t opened;
    bool damaged; /* the file is to be mended, even if nothing is new */
    tctl_stat_image old;
    pthread_mutex_t mutex; /* for all below */
    tctl_buf fresh;        /* records */
    size_t n_written;      /* bytes of `fresh` that are in the file */
    size_t n_replaced;     /* records of the file that `fresh` makes stale */
    tctl_stat_index index; /* of `fresh` */
    atomic_size_t n_fresh;
};

int64_t tctl_stat_cache_now(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

/* False for a file that is never remembered. */
static bool token_of(const struct stat *st, tctl_stat_token *ret)
{
    if (!S_ISREG(st->st_mode) || st->st_mtim.tv_sec > LARGEST_TIME || st->st_mtim.tv_sec < -LARGEST_TIME ||
        st->st_ctim.tv_sec > LARGEST_TIME || st->st_ctim.tv_sec < -LARGEST_TIME)
        return false;
    ret->inode = st->st_ino;
    ret->size = (uint64_t)st->st_size;
    ret->mtime = (int64_t)st->st_mtim.tv_sec * SECOND + st->st_mtim.tv_nsec;
    ret->ctime = (int64_t)st->st_ctim.tv_sec * SECOND + st->st_ctim.tv_nsec;
    return true;
}

static bool is_racy(const tctl_stat_token *token, int64_t looked)
{
    int64_t newest = token->mtime > token->ctime ? token->mtime : token->ctime;
    bool coarse = token->mtime % SECOND == 0 && token->ctime % SECOND == 0;
    return newest > looked - (coarse ? COARSE_SLACK : TICK_SLACK);
}

static tctl_status open_file(const char *path, int *ret, bool *ret_writable, tctl_error *why)
{
    tctl_arena *arena = tctl_arena_create();
    const char *folder = arena ? tctl_path_folder(arena, path) : NULL;
    if (folder)
        (void)tctl_make_folders(folder, 0700, NULL); /* if that fails, opening says so */
    tctl_arena_destroy(arena);
    *ret = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0600);
    *ret_writable = *ret >= 0;
    if (*ret >= 0)
        return TCTL_OK;
    tctl_status status = tctl_fail_errno(why, errno, "cannot write stat cache '%s'", path);
    *ret = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return status;
}

static void load(tctl_stat_cache *cache, const char *path, tctl_error *why)
{
    int fd = -1;
    bool writable = false;
    tctl_status opened = open_file(path, &fd, &writable, why);
    tctl_status status = fd >= 0 ? tctl_stat_image_read(fd, path, &cache->old, why) : opened;
    if (fd >= 0)
        close(fd);
    if (opened != TCTL_OK && status == TCTL_OK)
        tctl_note(why, "what it holds is used, but new digests are not remembered");
    cache->damaged = status == TCTL_EFORMAT;
    /* A damaged file is mended when the cache is written; one that can't be read or locked is left alone. */
    if (writable && (status == TCTL_OK || status == TCTL_EFORMAT)) {
        cache->path = strdup(path);
        if (!cache->path)
            tctl_fail_memory(why, strlen(path) + 1);
    }
}

tctl_stat_cache *tctl_stat_cache_open(const char *path, tctl_error *why)
{
    tctl_error_clear(why);
    tctl_stat_cache *cache = calloc(1, sizeof *cache);
    if (!cache) {
        tctl_fail_memory(why, sizeof *cache);
        return NULL;
    }
    cache->fresh = (tctl_buf)TCTL_BUF_INIT;
    cache->fresh.limit = SIZE_MAX / 2;
    cache->opened = tctl_stat_cache_now();
    pthread_mutex_init(&cache->mutex, NULL);
    if (path)
        load(cache, path, why);
    return cache;
}

static const uint8_t *bytes_of(const tctl_buf *buf)
{
    return (const uint8_t *)buf->data;
}

/* The digest under `path` if its token is this one. *ret_known: there is a record, whatever its token. */
static bool look_up(const tctl_stat_index *index, const uint8_t *data, const char *path, size_t length,
                    const tctl_stat_token *token, tctl_sha256 *ret, bool *ret_known)
{
    size_t at = tctl_stat_index_find(index, data, path, length);
    *ret_known = at != SIZE_MAX;
    if (!*ret_known || !tctl_stat_record_matches(data + at, token))
        return false;
    memcpy(ret->bytes, data + at + 48, sizeof ret->bytes);
    return true;
}

bool tctl_stat_cache_get(tctl_stat_cache *cache, const char *path, const struct stat *st, tctl_sha256 *ret)
{
    tctl_stat_token token;
    if (!cache || !token_of(st, &token))
        return false;
    size_t length = strlen(path);
    bool known = false, found = false;
    if (atomic_load_explicit(&cache->n_fresh, memory_order_acquire) > 0) {
        pthread_mutex_lock(&cache->mutex);
        found = look_up(&cache->index, bytes_of(&cache->fresh), path, length, &token, ret, &known);
        pthread_mutex_unlock(&cache->mutex);
    }
    return known ? found : look_up(&cache->old.index, cache->old.data, path, length, &token, ret, &known);
}

/* Appends a record to `fresh`; a cache whose memory is out forgets, and goes on. */
static void add_fresh(tctl_stat_cache *cache, const char *path, size_t length, const tctl_stat_token *token,
                      const tctl_sha256 *digest)
{
    static const char zeros[512] = {0};
    tctl_buf *fresh = &cache->fresh;
    size_t at = fresh->size, size = tctl_stat_record_bytes(length);
    if (fresh->broken || at / 8 >= UINT32_MAX - 1 ||
        !tctl_stat_index_reserve(&cache->index, bytes_of(fresh), cache->index.n + 1))
        return;
    for (size_t left = size; left > 0;) {
        size_t n = left < sizeof zeros ? left : sizeof zeros;
        tctl_buf_add(fresh, zeros, n);
        left -= n;
    }
    if (fresh->broken) {
        fresh->size = at;
        return;
    }
    tctl_stat_record_write((uint8_t *)fresh->data + at, path, length, token, digest);
    if (tctl_stat_index_add(&cache->index, bytes_of(fresh), at) ||
        tctl_stat_index_find(&cache->old.index, cache->old.data, path, length) != SIZE_MAX)
        cache->n_replaced++;
    atomic_fetch_add_explicit(&cache->n_fresh, 1, memory_order_release);
}

void tctl_stat_cache_put_at(tctl_stat_cache *cache, const char *path, const struct stat *st, int64_t looked,
                            const tctl_sha256 *digest)
{
    tctl_stat_token token;
    size_t length = strlen(path);
    if (!cache || length < 1 || length > TCTL_STAT_MAX_PATH || !token_of(st, &token) ||
        is_racy(&token, looked))
        return;
    tctl_sha256 have;
    if (tctl_stat_cache_get(cache, path, st, &have) && tctl_sha256_equal(&have, digest))
        return;
    pthread_mutex_lock(&cache->mutex);
    add_fresh(cache, path, length, &token, digest);
    pthread_mutex_unlock(&cache->mutex);
}

void tctl_stat_cache_put(tctl_stat_cache *cache, const char *path, const struct stat *st,
                         const tctl_sha256 *digest)
{
    if (cache)
        tctl_stat_cache_put_at(cache, path, st, cache->opened, digest);
}

/* More than half of the records stale, once the fresh ones are in. */
static bool is_stale(const tctl_stat_cache *cache)
{
    size_t total = cache->old.index.n + cache->old.n_stale + atomic_load(&cache->n_fresh);
    size_t stale = cache->old.n_stale + cache->n_replaced;
    return total > REWRITE_ABOVE && stale > total / 2;
}

tctl_status tctl_stat_cache_flush(tctl_stat_cache *cache, tctl_error *err)
{
    if (!cache || !cache->path)
        return TCTL_OK;
    tctl_status status = TCTL_OK;
    pthread_mutex_lock(&cache->mutex);
    size_t n = cache->fresh.size - cache->n_written;
    bool rewrite = is_stale(cache);
    const uint8_t *records = n > 0 ? bytes_of(&cache->fresh) + cache->n_written : NULL;
    if (n > 0 || rewrite || cache->damaged) {
        status = tctl_stat_file_append(cache->path, &cache->old, records, n, rewrite, err);
        if (status == TCTL_OK) {
            cache->n_written += n;
            cache->damaged = false;
        }
        if (rewrite)
            cache->n_replaced = cache->old.n_stale = 0;
    }
    pthread_mutex_unlock(&cache->mutex);
    return status;
}

void tctl_stat_cache_close(tctl_stat_cache *cache)
{
    if (!cache)
        return;
    (void)tctl_stat_cache_flush(cache, NULL);
    tctl_stat_image_release(&cache->old);
    tctl_stat_index_release(&cache->index);
    tctl_buf_release(&cache->fresh);
    pthread_mutex_destroy(&cache->mutex);
    free(cache->path);
    free(cache);
}

const char *tctl_stat_cache_default_path(tctl_arena *arena)
{
    /* The XDG base directory specification: a relative path in the variable is to be ignored. */
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        return tctl_arena_format(arena, "%s/trainctl/stat-v1", xdg);
    return home && home[0] == '/' ? tctl_arena_format(arena, "%s/.cache/trainctl/stat-v1", home) : NULL;
}
