/* SPDX-License-Identifier: Apache-2.0 */
/* listing HOW FOLDER: the names in a folder, one a line, by one of the ways in which programs list folders. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 8, TURNS = 40 };

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static int by_readdir(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return fail("opendir");
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        puts(e->d_name);
    return closedir(dir);
}

static int by_readdir_r(const char *folder)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct dirent entry, *e = NULL;
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return fail("opendir");
    while (readdir_r(dir, &entry, &e) == 0 && e != NULL)
        puts(e->d_name);
    return closedir(dir);
#pragma GCC diagnostic pop
}

static int by_fdopendir(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL || dirfd(dir) != fd)
        return fail("fdopendir");
    for (struct dirent64 *e; (e = readdir64(dir)) != NULL;)
        puts(e->d_name);
    return closedir(dir);
}

static int is_visible(const struct dirent *e)
{
    errno = EINVAL; /* a filter may leave what it likes */
    return e->d_name[0] != '.';
}

static int reversed(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static int by_scandir(const char *folder, int (*filter)(const struct dirent *),
                      int (*order)(const struct dirent **, const struct dirent **), int at)
{
    struct dirent **list = NULL;
    int n = at == AT_FDCWD ? scandir(folder, &list, filter, order) : scandirat(at, ".", &list, filter, order);
    if (n < 0)
        return fail("scandir");
    for (int i = 0; i < n; i++) {
        puts(list[i]->d_name);
        free(list[i]);
    }
    free(list);
    return 0;
}

static int by_glob(const char *folder)
{
    char pattern[4096];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return fail("glob");
    for (size_t i = 0; i < found.gl_pathc; i++)
        puts(strrchr(found.gl_pathv[i], '/') + 1);
    globfree(&found);
    return 0;
}

static int by_fts(char *first, char *second)
{
    char *const paths[] = {first, second, NULL};
    FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (walk == NULL)
        return fail("fts_open");
    for (FTSENT *e; (e = fts_read(walk)) != NULL;) {
        if (e->fts_info != FTS_DP)
            puts(e->fts_level == 0 ? e->fts_path : e->fts_name);
    }
    return fts_close(walk);
}

static int visit(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    puts(path + ftw->base);
    return 0;
}

/* What the kernel says, which nothing can stand in front of. */
static int by_system_call(const char *folder)
{
    char block[65536];
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long n; (n = syscall(SYS_getdents64, fd, block, sizeof block)) > 0;) {
        for (long at = 0; at < n;) {
            struct dirent64 e;
            memcpy(&e, block + at, offsetof(struct dirent64, d_name));
            puts(block + at + offsetof(struct dirent64, d_name));
            at += e.d_reclen;
        }
    }
    return close(fd);
}

/* Positions: a place that telldir gave is where seekdir returns to, and rewinddir sees what is new. */
static int by_positions(const char *folder)
{
    char third[256], path[4096];
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return fail("opendir");
    long begin = telldir(dir), place = 0;
    for (int i = 0; i < 5; i++) {
        if (i == 3)
            place = telldir(dir);
        struct dirent *e = readdir(dir);
        if (i == 3)
            snprintf(third, sizeof third, "%s", e->d_name);
    }
    seekdir(dir, place);
    struct dirent *again = readdir(dir);
    printf("%s\n", strcmp(again->d_name, third) == 0 ? "same" : "another");
    printf("%s\n", again->d_off == telldir(dir) ? "offset" : "no offset");
    seekdir(dir, begin);
    printf("%s\n", readdir(dir)->d_name);
    snprintf(path, sizeof path, "%s/0-new", folder);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
    rewinddir(dir);
    int n = 0, found = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL; n++) {
        found += strcmp(e->d_name, "0-new") == 0;
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (strcmp(e->d_name, "..") != 0 && (lstat(path, &st) != 0 || st.st_ino != e->d_ino))
            printf("inode of %s\n", e->d_name);
        if (e->d_type == DT_UNKNOWN)
            printf("type of %s\n", e->d_name);
    }
    printf("%d new\n%d\n", found, n);
    errno = 0;
    printf("%s %d\n", readdir(dir) == NULL ? "end" : "more", errno);
    return closedir(dir);
}

/* Each thread has a stream of its own, all the time. */
static void *in_thread(void *arg)
{
    const char *folder = arg;
    uintptr_t n = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        DIR *dir = opendir(folder);
        char last[256] = "";
        for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL; n++) {
            if (strcmp(last, e->d_name) >= 0)
                return (void *)UINTPTR_MAX;
            snprintf(last, sizeof last, "%s", e->d_name);
        }
        if (dir == NULL || closedir(dir) != 0)
            return (void *)UINTPTR_MAX;
    }
    return (void *)n; /* NOLINT: a number, not an address */
}

static int by_threads(char *folder)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, in_thread, folder);
    for (int i = 0; i < THREADS; i++) {
        void *n;
        pthread_join(threads[i], &n);
        printf("%lld\n", (long long)(intptr_t)n / (n == (void *)UINTPTR_MAX ? 1 : TURNS));
    }
    return 0;
}

/* What does not work must fail as it always did. */
static int failures(const char *folder)
{
    struct dirent **list;
    printf("%d", opendir("/nowhere/at/all") == NULL ? errno : 0);
    printf(" %d", scandir("/nowhere/at/all", &list, NULL, NULL) < 0 ? errno : 0);
    printf(" %d", fdopendir(-1) == NULL ? errno : 0);
    printf(" %d", open("/nowhere/at/all", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0);
    printf(" %d", fopen("/nowhere/at/all", "re") == NULL ? errno : 0);
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    char byte;
    printf(" %d\n", read(fd, &byte, 1) < 0 ? errno : 0);
    return close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *how = argv[1];
    char *folder = argv[2];
    if (strcmp(how, "readdir") == 0)
        return by_readdir(folder);
    if (strcmp(how, "readdir_r") == 0)
        return by_readdir_r(folder);
    if (strcmp(how, "fdopendir") == 0)
        return by_fdopendir(folder);
    if (strcmp(how, "scandir") == 0)
        return by_scandir(folder, NULL, NULL, AT_FDCWD);
    if (strcmp(how, "scandir-reversed") == 0)
        return by_scandir(folder, is_visible, reversed, AT_FDCWD);
    if (strcmp(how, "scandirat") == 0)
        return by_scandir(folder, NULL, NULL, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (strcmp(how, "glob") == 0)
        return by_glob(folder);
    if (strcmp(how, "fts") == 0)
        return by_fts(folder, argc > 3 ? argv[3] : NULL);
    if (strcmp(how, "nftw") == 0)
        return nftw(folder, visit, 8, FTW_PHYS);
    if (strcmp(how, "system-call") == 0)
        return by_system_call(folder);
    if (strcmp(how, "positions") == 0)
        return by_positions(folder);
    if (strcmp(how, "threads") == 0)
        return by_threads(folder);
    if (strcmp(how, "failures") == 0)
        return failures(folder);
    return 2;
}
