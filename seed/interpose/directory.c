/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directory streams in order of names' bytes.
 *
 * A stream that opendir or fdopendir made is read whole at its first readdir, sorted, and given from memory; a stream
 * that we did not see being opened is left to libc. Positions (telldir, seekdir, d_off) are places in the sorted
 * list; rewinddir reads anew. An error of libc's in the middle comes where the list ends. Where memory ends, what was
 * read is given in the order in which it came, then the rest.
 *
 * Locks: `table_lock` for the table of streams, held for a few instructions; each stream has one of its own, since
 * reading a directory may take long. As with libc, a stream must not be closed while it is read.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "seed/interpose/directory_sort.h"
#include "seed/interpose/interpose.h"

enum {
    BUCKETS = 256,
    AHEAD = 2 /* entries of a large folder lie all over its list: fetched before they are wanted */
};

typedef struct listing {
    struct listing *next; /* in its bucket */
    DIR *dir;
    pthread_mutex_t lock;
    char *bytes; /* the entries, one behind the other, as readdir gave them */
    size_t size, bytes_room;
    tctl_sort_item *items;
    size_t n, items_room;
    size_t at; /* the next to give */
    bool loaded;
    bool cut;  /* memory ended: libc has more */
    int error; /* of libc's at the end */
} listing;

static listing *table[BUCKETS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned
    n_closed; /* streams taken out, or that would have been: while it stays, what was found is true */
static _Thread_local struct {
    const DIR *dir;
    listing *found;
    unsigned n_closed;
} last; /* what this thread looked for last */

TCTL_REAL(opendir)
TCTL_REAL(fdopendir)
TCTL_REAL(readdir)
TCTL_REAL(closedir)
TCTL_REAL(rewinddir)
TCTL_REAL(telldir)
TCTL_REAL(seekdir)

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* readdir_r, which programs still call */
TCTL_REAL(readdir_r)

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one layout for both");
_Static_assert(offsetof(struct dirent, d_name) == offsetof(struct dirent64, d_name), "one layout for both");

/* ---- the table ------------------------------------------------------------------------------------------ */

static listing **bucket_of(const DIR *dir)
{
    uintptr_t v = (uintptr_t)dir;
    return &table[(v >> 4 ^ v >> 12 ^ v >> 20) % BUCKETS];
}

static listing *find(const DIR *dir)
{
    unsigned now = atomic_load_explicit(&n_closed, memory_order_acquire);
    if (last.dir == dir && last.n_closed == now)
        return last.found;
    pthread_mutex_lock(&table_lock);
    listing *l = *bucket_of(dir);
    while (l != NULL && l->dir != dir)
        l = l->next;
    last.n_closed = atomic_load_explicit(&n_closed, memory_order_relaxed);
    last.dir = dir;
    last.found = l;
    pthread_mutex_unlock(&table_lock);
    return l;
}

static listing *take_out(const DIR *dir)
{
    pthread_mutex_lock(&table_lock);
    listing **at = bucket_of(dir);
    while (*at != NULL && (*at)->dir != dir)
        at = &(*at)->next;
    listing *l = *at;
    if (l != NULL)
        *at = l->next;
    atomic_fetch_add_explicit(&n_closed, 1, memory_order_release);
    pthread_mutex_unlock(&table_lock);
    return l;
}

static void release(listing *l)
{
    if (l == NULL)
        return;
    pthread_mutex_destroy(&l->lock);
    free(l->bytes);
    free(l->items);
    free(l);
}

/* A new stream. One that was closed behind our back may have left its address. */
static DIR *put_in(DIR *dir)
{
    if (dir == NULL || !tctl_this.sort)
        return dir;
    int saved = errno;
    release(take_out(dir));
    listing *l = calloc(1, sizeof *l);
    if (l == NULL) {
        tctl_count(TCTL_COUNT_UNSORTED);
    } else {
        l->dir = dir;
        pthread_mutex_init(&l->lock, NULL);
        pthread_mutex_lock(&table_lock);
        listing **bucket = bucket_of(dir);
        l->next = *bucket;
        *bucket = l;
        pthread_mutex_unlock(&table_lock);
        tctl_count(TCTL_COUNT_DIRECTORIES);
    }
    errno = saved;
    return dir;
}

void tctl_directories_fork(bool prepare)
{
    if (prepare)
        pthread_mutex_lock(&table_lock);
    else
        pthread_mutex_unlock(&table_lock);
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static struct dirent *entry_at(const listing *l, size_t i)
{
    return (struct dirent *)(void *)(l->bytes + l->items[i].at);
}

static bool make_room(void **array, size_t *room, size_t wanted, size_t first, size_t item)
{
    size_t bigger = *room == 0 ? first : 2 * *room;
    if (wanted <= *room)
        return true;
    if (bigger < wanted)
        bigger = wanted;
    void *moved = realloc(*array, bigger * item);
    if (moved == NULL)
        return false;
    *array = moved;
    *room = bigger;
    return true;
}

static bool append(listing *l, const struct dirent *e)
{
    size_t size = ((size_t)e->d_reclen + 7) & ~(size_t)7;
    void *bytes = l->bytes, *items = l->items;
    bool good = make_room(&bytes, &l->bytes_room, l->size + size + TCTL_SORT_SLACK, 2048, 1);
    l->bytes = bytes;
    good = good && make_room(&items, &l->items_room, l->n + 1, 32, sizeof *l->items);
    l->items = items;
    if (!good)
        return false;
    memcpy(l->bytes + l->size, e, e->d_reclen);
    l->items[l->n++] = (tctl_sort_item){.at = l->size};
    l->size += size;
    return true;
}

static void load(listing *l)
{
    struct dirent *e;
    int saved = errno;
    errno = 0;
    while (!l->cut && (e = real_readdir()(l->dir)) != NULL) {
        if (append(l, e))
            continue;
        l->cut = true; /* this one comes again: libc is put back in front of it */
        real_seekdir()(l->dir, l->n == 0 ? 0 : entry_at(l, l->n - 1)->d_off);
    }
    l->error = l->cut ? 0 : errno;
    size_t name = offsetof(struct dirent, d_name);
    if (!l->cut && !tctl_sort_names(l->bytes, name, l->items, l->n))
        l->cut = true;
    if (l->cut)
        tctl_count(TCTL_COUNT_UNSORTED);
    l->loaded = true;
    errno = saved;
}

static struct dirent *next(listing *l)
{
    struct dirent *e = NULL;
    pthread_mutex_lock(&l->lock);
    if (!l->loaded)
        load(l);
    if (l->at < l->n) {
        e = entry_at(l, l->at++);
        if (!l->cut)
            e->d_off = (off_t)l->at;
        if (l->n - l->at > AHEAD)
            __builtin_prefetch(entry_at(l, l->at + AHEAD), 1);
    } else if (l->cut)
        e = real_readdir()(l->dir);
    else if (l->error != 0)
        errno = l->error;
    pthread_mutex_unlock(&l->lock);
    return e;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

TCTL_EXPORT DIR *opendir(const char *path)
{
    return put_in(real_opendir()(path));
}

TCTL_EXPORT DIR *fdopendir(int fd)
{
    return put_in(real_fdopendir()(fd));
}

TCTL_EXPORT struct dirent *readdir(DIR *dir)
{
    listing *l = find(dir);
    return l == NULL ? real_readdir()(dir) : next(l);
}

TCTL_EXPORT struct dirent64 *readdir64(DIR *dir)
{
    return (struct dirent64 *)(void *)readdir(dir);
}

TCTL_EXPORT int readdir_r(DIR *restrict dir, struct dirent *restrict entry, struct dirent **restrict ret)
{
    listing *l = find(dir);
    if (l == NULL)
        return real_readdir_r()(dir, entry, ret);
    int saved = errno;
    errno = 0;
    struct dirent *e = next(l);
    int status = e == NULL ? errno : 0;
    errno = saved;
    if (e != NULL) {
        size_t size = offsetof(struct dirent, d_name) + strlen(e->d_name) + 1;
        memcpy(entry, e, size);
        *ret = entry;
    } else {
        *ret = NULL;
    }
    return status;
}

TCTL_EXPORT int readdir64_r(DIR *restrict dir, struct dirent64 *restrict entry,
                            struct dirent64 **restrict ret)
{
    struct dirent *given = NULL;
    int status = readdir_r(dir, (struct dirent *)(void *)entry, &given);
    *ret = (struct dirent64 *)(void *)given;
    return status;
}

TCTL_EXPORT int closedir(DIR *dir)
{
    listing *l = take_out(dir); /* first: another thread may get the address as soon as libc has closed it */
    int status = real_closedir()(dir);
    int saved = errno;
    release(l);
    errno = saved;
    return status;
}

TCTL_EXPORT void rewinddir(DIR *dir)
{
    listing *l = find(dir);
    if (l == NULL) {
        real_rewinddir()(dir);
        return;
    }
    pthread_mutex_lock(&l->lock);
    real_rewinddir()(dir);
    l->size = l->n = l->at = 0;
    l->loaded = l->cut = false;
    l->error = 0;
    pthread_mutex_unlock(&l->lock);
}

TCTL_EXPORT long telldir(DIR *dir)
{
    listing *l = find(dir);
    if (l == NULL)
        return real_telldir()(dir);
    pthread_mutex_lock(&l->lock);
    long at = (long)l->at;
    pthread_mutex_unlock(&l->lock);
    return at;
}

TCTL_EXPORT void seekdir(DIR *dir, long position)
{
    listing *l = find(dir);
    if (l == NULL) {
        real_seekdir()(dir, position);
        return;
    }
    pthread_mutex_lock(&l->lock);
    if (!l->loaded && position > 0)
        load(l);
    l->at = position < 0 ? 0 : (size_t)position < l->n ? (size_t)position : l->n;
    pthread_mutex_unlock(&l->lock);
}
