/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's entropy: counted and, where the spec says `entropy: seeded`, answered from this process's stream.
 *
 * An opened /dev/urandom is then a file in memory that is named after its key and holds the first PREPARED bytes of
 * that key's stream; a read(2) that comes to its end makes it longer, in whatever process and through whatever
 * descriptor, because key and length are all that it takes. stdio reads without passing through here and sees PREPARED
 * bytes at most. Not seen at all: the system call by number, vDSO and CPU instructions.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

#define PREPARED    ((size_t)1 << 18)
#define MEMORY_NAME "trainctl-entropy-"

/* The least seed that a program can make of it, for tctl_reading_explains. */
static void remember(const void *bytes, size_t size)
{
    uint32_t word = 0;
    uint64_t wide = 0;
    if (size >= sizeof word && size <= 64) {
        memcpy(&word, bytes, sizeof word);
        tctl_reading_add(TCTL_READ_ENTROPY, word, 0);
    }
    if (size >= sizeof wide && size <= 64) {
        memcpy(&wide, bytes, sizeof wide);
        tctl_reading_add(TCTL_READ_ENTROPY, wide, 0);
    }
}

/* ---- calls ---------------------------------------------------------------------------------------------- */

TCTL_REAL(getrandom)
TCTL_REAL(getentropy)

TCTL_EXPORT ssize_t getrandom(void *buffer, size_t size, unsigned flags)
{
    tctl_count(TCTL_COUNT_GETRANDOM);
    bool valid = (flags & ~(unsigned)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE)) == 0;
    if (tctl_this.answer_entropy && valid && size <= PREPARED) {
        tctl_entropy_bytes(buffer, size);
        return (ssize_t)size;
    }
    ssize_t n = real_getrandom()(buffer, size, flags);
    if (n > 0)
        remember(buffer, (size_t)n);
    if (n > 0 && tctl_this.answer_entropy)
        tctl_entropy_bytes(buffer, (size_t)n);
    return n;
}

TCTL_EXPORT int getentropy(void *buffer, size_t size)
{
    tctl_count(TCTL_COUNT_GETENTROPY);
    int status = real_getentropy()(buffer, size);
    if (status == 0 && tctl_this.answer_entropy)
        tctl_entropy_bytes(buffer, size);
    else if (status == 0)
        remember(buffer, size);
    return status;
}

#if !__GLIBC_PREREQ(2, 36) /* libc has none, but a libbsd may, for which we stand in */
uint32_t arc4random(void);
void arc4random_buf(void *buffer, size_t size);
uint32_t arc4random_uniform(uint32_t bound);
#endif

static void fill(void *buffer, size_t size)
{
    if (tctl_this.answer_entropy) {
        tctl_entropy_bytes(buffer, size);
        return;
    }
    for (size_t done = 0; done < size;) { /* all that arc4random promises; it cannot fail */
        ssize_t n = real_getrandom()((char *)buffer + done, size - done, 0);
        if (n < 0 && errno != EINTR)
            abort();
        done += n > 0 ? (size_t)n : 0;
    }
    remember(buffer, size);
}

TCTL_EXPORT uint32_t arc4random(void)
{
    uint32_t value;
    tctl_count(TCTL_COUNT_ARC4RANDOM);
    fill(&value, sizeof value);
    return value;
}

TCTL_EXPORT void arc4random_buf(void *buffer, size_t size)
{
    tctl_count(TCTL_COUNT_ARC4RANDOM);
    fill(buffer, size);
}

/* Rejection, so that every result has the same number of words. */
TCTL_EXPORT uint32_t arc4random_uniform(uint32_t bound)
{
    uint32_t value, rejected_below = bound < 2 ? 0 : (0 - bound) % bound;
    tctl_count(TCTL_COUNT_ARC4RANDOM);
    if (bound < 2)
        return 0;
    do
        fill(&value, sizeof value);
    while (value < rejected_below);
    return value % bound;
}

/* ---- the devices ---------------------------------------------------------------------------------------- */

TCTL_REAL(open)
TCTL_REAL(openat)
TCTL_REAL(fopen)
TCTL_REAL(fdopen)
TCTL_REAL(read)

/* Writes the stream's bytes from `at` to `end`. */
static bool extend(int fd, uint64_t key, uint64_t at, uint64_t end)
{
    uint8_t block[4096];
    while (at < end) {
        size_t n = end - at < sizeof block ? (size_t)(end - at) : sizeof block;
        tctl_stream_bytes(key, at, block, n);
        ssize_t done = pwrite(fd, block, n, (off_t)at);
        if (done <= 0)
            return false;
        at += (uint64_t)done;
    }
    return true;
}

/* A descriptor that reads the stream; -1 (errno set) if there is none to be had. */
static int open_stream(int flags)
{
    char name[64], digits[TCTL_PROCESS_DIGITS + 1], path[32];
    uint64_t key = tctl_entropy_file_key();
    tctl_process_print_id(key, digits);
    snprintf(name, sizeof name, MEMORY_NAME "%s", digits);
    int made = memfd_create(name, MFD_CLOEXEC);
    if (made < 0)
        return -1;
    int fd = -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", made);
    if (extend(made, key, 0, PREPARED)) /* again, for a position and an access mode of its own */
        fd = real_open()(path, flags & (O_ACCMODE | O_CLOEXEC | O_NONBLOCK));
    close(made);
    return fd;
}

/* If `fd` is such a file and stands at its end, makes it longer. */
static bool grow(int fd)
{
    char path[32], target[96];
    struct stat st;
    const char *prefix = "/memfd:" MEMORY_NAME;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof target - 1);
    size_t length = strlen(prefix);
    if (n < (ssize_t)(length + TCTL_PROCESS_DIGITS) || strncmp(target, prefix, length) != 0)
        return false;
    uint64_t key = 0;
    for (size_t i = 0; i < TCTL_PROCESS_DIGITS; i++) {
        char c = target[length + i];
        uint64_t digit = (uint64_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
        key = key << 4 | (digit & 15);
    }
    int writer = fstat(fd, &st) == 0 ? real_open()(path, O_WRONLY | O_CLOEXEC) : -1;
    bool grown = writer >= 0 && extend(writer, key, (uint64_t)st.st_size, (uint64_t)st.st_size + PREPARED);
    if (writer >= 0)
        close(writer);
    return grown;
}

TCTL_EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    ssize_t n = real_read()(fd, buffer, size);
    if (__builtin_expect(n == 0, 0) && size > 0 && tctl_this.answer_entropy) {
        int saved = errno;
        if (grow(fd))
            n = real_read()(fd, buffer, size);
        else
            errno = saved;
    }
    return n;
}

/* True if the path is one of the devices, which is counted. */
static inline bool is_device(const char *path)
{
    const char *volatile given = path; /* NULL is EFAULT, and not ours to trip over */
    if (given == NULL || path[0] != '/' || path[1] != 'd' || strncmp(path, "/dev/", 5) != 0)
        return false;
    bool is_urandom = strcmp(path + 5, "urandom") == 0;
    if (!is_urandom && strcmp(path + 5, "random") != 0)
        return false;
    tctl_count(is_urandom ? TCTL_COUNT_URANDOM : TCTL_COUNT_RANDOM);
    return tctl_this.answer_entropy;
}

static inline mode_t mode_of(int flags, va_list ap)
{
    bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(ap, mode_t) : 0;
}

#define OPEN_BODY(call)                                                                                      \
    va_list ap;                                                                                              \
    va_start(ap, flags);                                                                                     \
    mode_t mode = mode_of(flags, ap);                                                                        \
    va_end(ap);                                                                                              \
    return __builtin_expect(is_device(path), 0) ? open_stream(flags) : call

TCTL_EXPORT int open(const char *path, int flags, ...)
{
    OPEN_BODY(real_open()(path, flags, mode));
}

TCTL_EXPORT int open64(const char *path, int flags, ...)
{
    OPEN_BODY(real_open()(path, flags, mode));
}

TCTL_EXPORT int openat(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(real_openat()(folder, path, flags, mode));
}

TCTL_EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    OPEN_BODY(real_openat()(folder, path, flags, mode));
}

/* What _FORTIFY_SOURCE makes of calls without a mode. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
TCTL_REAL(__open_2)
TCTL_REAL(__openat_2)

TCTL_EXPORT int __open_2(const char *path, int flags)
{
    return is_device(path) ? open_stream(flags) : real___open_2()(path, flags);
}

TCTL_EXPORT int __open64_2(const char *path, int flags)
{
    return is_device(path) ? open_stream(flags) : real___open_2()(path, flags);
}

TCTL_EXPORT int __openat_2(int folder, const char *path, int flags)
{
    return is_device(path) ? open_stream(flags) : real___openat_2()(folder, path, flags);
}

TCTL_EXPORT int __openat64_2(int folder, const char *path, int flags)
{
    return is_device(path) ? open_stream(flags) : real___openat_2()(folder, path, flags);
}

static FILE *open_file(const char *mode)
{
    int flags = strchr(mode, '+') != NULL ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    int fd = open_stream(flags | (strchr(mode, 'e') != NULL ? O_CLOEXEC : 0));
    FILE *file = fd < 0 ? NULL : real_fdopen()(fd, mode);
    if (fd >= 0 && file == NULL)
        close(fd);
    return file;
}

TCTL_EXPORT FILE *fopen(const char *restrict path, const char *restrict mode)
{
    return is_device(path) ? open_file(mode) : real_fopen()(path, mode);
}

TCTL_EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode)
{
    return is_device(path) ? open_file(mode) : real_fopen()(path, mode);
}
