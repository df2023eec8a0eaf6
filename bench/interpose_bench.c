/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpose_bench make FOLDER FILES PER_FOLDER | read FOLDER | walk FOLDER | start: what bench/interpose times.
 *
 * read: lists each folder and opens, reads and closes each file. walk: lists each folder and looks at each entry. start:
 * nothing. Prints the seconds of the work itself, by the CPU's clock and by the wall's.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"

enum { FILE_BYTES = 600, PATH_ROOM = 4096 };

static double seconds(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int make(const char *folder, long files, long per_folder)
{
    char path[PATH_ROOM], bytes[FILE_BYTES] = {0};
    for (long i = 0; i < files; i++) {
        long part = i / per_folder;
        if (i % per_folder == 0) {
            snprintf(path, sizeof path, "%s/%04ld", folder, part);
            mkdir(path, 0777);
        }
        /* in an order that is not the names' */
        snprintf(path, sizeof path, "%s/%04ld/image-%06ld.png", folder, part, (i * 7919) % files);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0 || write(fd, bytes, sizeof bytes) != (ssize_t)sizeof bytes || close(fd) != 0)
            return 1;
    }
    return 0;
}

static long visit_file(int folder, const char *name)
{
    char bytes[4096];
    long sum = 0;
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, bytes, sizeof bytes)) > 0;)
        sum += (long)n;
    close(fd);
    return sum;
}

static long visit(const char *path, int reads)
{
    long sum = 0;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        struct stat st;
        char below[PATH_ROOM];
        if (e->d_name[0] == '.')
            continue;
        if (e->d_type == DT_DIR) {
            snprintf(below, sizeof below, "%s/%s", path, e->d_name);
            sum += visit(below, reads);
        } else if (reads) {
            sum += visit_file(dirfd(dir), e->d_name);
        } else if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
            sum += (long)st.st_size;
        }
    }
    if (dir != NULL)
        closedir(dir);
    return sum;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int64_t files, per_folder;
    if (strcmp(how, "make") == 0 && argc == 5 && tctl_parse_int(argv[3], strlen(argv[3]), &files) &&
        tctl_parse_int(argv[4], strlen(argv[4]), &per_folder) && per_folder > 0)
        return make(argv[2], (long)files, (long)per_folder);
    if (strcmp(how, "start") == 0)
        return 0;
    if (argc != 3)
        return 2;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    long sum = visit(argv[2], strcmp(how, "read") == 0);
    printf("%ld %.6f %.6f\n", sum, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, seconds(CLOCK_MONOTONIC) - wall);
    return 0;
}
