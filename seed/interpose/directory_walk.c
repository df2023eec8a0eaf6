/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that read directories inside libc, where our readdir is not called: scandir is made here from our
 * stream, glob and fts are asked for the order that they can give; ftw and nftw have no such wish and are reported.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

TCTL_REAL(scandir)
TCTL_REAL(scandirat)
TCTL_REAL(glob)
TCTL_REAL(glob64)
TCTL_REAL(fts_open)
TCTL_REAL(fts64_open)
TCTL_REAL(ftw)
TCTL_REAL(ftw64)
TCTL_REAL(nftw)
TCTL_REAL(nftw64)

/* ---- scandir -------------------------------------------------------------------------------------------- */

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored                                                                               \
    "-Wanalyzer-malloc-leak" /* gcc 12 loses sight of what is in a list that grows in a loop */
#endif

typedef int (*filter_of)(const struct dirent *);
typedef int (*order_of)(const struct dirent **, const struct dirent **);

typedef struct scan {
    struct dirent **list;
    size_t n, room;
} scan;

static bool keep(scan *s, const struct dirent *e)
{
    size_t size = offsetof(struct dirent, d_name) + strlen(e->d_name) + 1;
    if (s->n == s->room) {
        size_t room = s->room == 0 ? 16 : 2 * s->room;
        struct dirent **bigger = realloc(s->list, room * sizeof(struct dirent *));
        if (bigger == NULL)
            return false;
        s->list = bigger;
        s->room = room;
    }
    struct dirent *copy = malloc(size > e->d_reclen ? size : e->d_reclen);
    if (copy == NULL)
        return false;
    memcpy(copy, e, size);
    s->list[s->n++] = copy;
    return true;
}

/* Closes `dir`. The number of entries, or -1 and errno. */
static int scan_stream(DIR *dir, struct dirent ***ret, filter_of filter, order_of order)
{
    scan s = {0};
    int saved = errno, error = 0;
    const struct dirent *e;
    errno = 0;
    while (error == 0 && (e = readdir(dir)) != NULL) {
        bool wanted = filter == NULL || filter(e) != 0;
        if (wanted && (s.n >= (size_t)INT32_MAX || !keep(&s, e)))
            error = ENOMEM;
        errno = 0; /* whatever the filter did */
    }
    error = error != 0 ? error : errno;
    closedir(dir);
    if (error != 0) {
        while (s.n > 0)
            free(s.list[--s.n]);
        free(s.list);
        errno = error;
        return -1;
    }
    if (order != NULL && s.n > 1) /* qsort takes void pointers, the caller's function the types of scandir */
        qsort(s.list, s.n, sizeof(struct dirent *),
              (int (*)(const void *, const void *))(void (*)(void))order);
    *ret = s.list;
    errno = saved;
    return (int)s.n;
}

TCTL_EXPORT int scandir(const char *restrict path, struct dirent ***restrict ret, filter_of filter,
                        order_of order)
{
    if (!tctl_this.sort)
        return real_scandir()(path, ret, filter, order);
    DIR *dir = opendir(path);
    return dir == NULL ? -1 : scan_stream(dir, ret, filter, order);
}

TCTL_EXPORT int scandirat(int folder, const char *restrict path, struct dirent ***restrict ret,
                          filter_of filter, order_of order)
{
    if (!tctl_this.sort)
        return real_scandirat()(folder, path, ret, filter, order);
    int fd = openat(folder, path, O_RDONLY | O_NDELAY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int saved = errno;
        if (fd >= 0)
            close(fd);
        errno = saved;
        return -1;
    }
    return scan_stream(dir, ret, filter, order);
}

/* One layout, see directory.c. */
TCTL_EXPORT int scandir64(const char *restrict path, struct dirent64 ***restrict ret,
                          int (*filter)(const struct dirent64 *),
                          int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    return scandir(path, (struct dirent ***)(void *)ret, (filter_of)(void (*)(void))filter,
                   (order_of)(void (*)(void))order);
}

TCTL_EXPORT int scandirat64(int folder, const char *restrict path, struct dirent64 ***restrict ret,
                            int (*filter)(const struct dirent64 *),
                            int (*order)(const struct dirent64 **, const struct dirent64 **))
{
    return scandirat(folder, path, (struct dirent ***)(void *)ret, (filter_of)(void (*)(void))filter,
                     (order_of)(void (*)(void))order);
}

/* ---- glob and fts --------------------------------------------------------------------------------------- */

TCTL_EXPORT int glob(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
                     glob_t *restrict ret)
{
    return real_glob()(pattern, tctl_this.sort ? flags & ~GLOB_NOSORT : flags, on_error, ret);
}

TCTL_EXPORT int glob64(const char *restrict pattern, int flags, int (*on_error)(const char *, int),
                       glob64_t *restrict ret)
{
    return real_glob64()(pattern, tctl_this.sort ? flags & ~GLOB_NOSORT : flags, on_error, ret);
}

/* fts sorts the paths that it is given as well as what it finds; those stay in the caller's order. */
static _Thread_local char *const *roots;

static int place_of(const char *path)
{
    int i = 0;
    while (roots != NULL && roots[i] != NULL && strcmp(roots[i], path) != 0)
        i++;
    return i;
}

static int compare(const char *a, int level_a, const char *b, int level_b)
{
    if (level_a == FTS_ROOTLEVEL && level_b == FTS_ROOTLEVEL) {
        int at_a = place_of(a), at_b = place_of(b);
        return (at_a > at_b) - (at_a < at_b);
    }
    return strcmp(a, b);
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return compare((*a)->fts_name, (*a)->fts_level, (*b)->fts_name, (*b)->fts_level);
}

static int by_name64(const FTSENT64 **a, const FTSENT64 **b)
{
    return compare((*a)->fts_name, (*a)->fts_level, (*b)->fts_name, (*b)->fts_level);
}

TCTL_EXPORT FTS *fts_open(char *const *paths, int options, int (*order)(const FTSENT **, const FTSENT **))
{
    if (order != NULL || !tctl_this.sort)
        return real_fts_open()(paths, options, order);
    roots = paths;
    FTS *walk = real_fts_open()(paths, options, by_name);
    roots = NULL;
    return walk;
}

TCTL_EXPORT FTS64 *fts64_open(char *const *paths, int options,
                              int (*order)(const FTSENT64 **, const FTSENT64 **))
{
    if (order != NULL || !tctl_this.sort)
        return real_fts64_open()(paths, options, order);
    roots = paths;
    FTS64 *walk = real_fts64_open()(paths, options, by_name64);
    roots = NULL;
    return walk;
}

/* ---- out of reach --------------------------------------------------------------------------------------- */

static void say_unsorted(const char *function)
{
    if (!tctl_this.sort)
        return;
    tctl_count(TCTL_COUNT_UNSORTED);
    tctl_report_event("unsorted", function, "walks in the file system's order");
}

TCTL_EXPORT int ftw(const char *path, __ftw_func_t visit, int descriptors)
{
    say_unsorted("ftw");
    return real_ftw()(path, visit, descriptors);
}

TCTL_EXPORT int ftw64(const char *path, __ftw64_func_t visit, int descriptors)
{
    say_unsorted("ftw");
    return real_ftw64()(path, visit, descriptors);
}

TCTL_EXPORT int nftw(const char *path, __nftw_func_t visit, int descriptors, int flags)
{
    say_unsorted("nftw");
    return real_nftw()(path, visit, descriptors, flags);
}

TCTL_EXPORT int nftw64(const char *path, __nftw64_func_t visit, int descriptors, int flags)
{
    say_unsorted("nftw");
    return real_nftw64()(path, visit, descriptors, flags);
}
