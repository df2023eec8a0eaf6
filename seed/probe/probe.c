/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libtrainctl-probe.so: holds one circumstance still, so that `verify --deep` can see whether a program's results
 * depend on it. Preloaded into the re-runs of a probe and never into a run that is recorded: what it does is no service
 * to a program but a question to it.
 *
 * TRAINCTL_PROBE, words separated by blanks:
 *   clock      time, gettimeofday, clock_gettime, timespec_get: the same answers in every run. Each call is TICK later
 *              than the one before, so that loops which wait for a time end.
 *   files      times of files are all the same (stat and its kin).
 *   threads    a new thread runs until it ends or waits for something, and only then does its creator go on: threads
 *              that do not wait for each other run one after the other, in the order of their creation.
 *   fill=N     the stack below main, and below a thread's first function, holds bytes of value N. (The heap is
 *              MALLOC_PERTURB_'s, which the launcher sets.)
 *
 * What it does not do: reach statically linked programs, system calls made directly, or libc's own calls inside
 * libc. A probe that changes nothing says nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    TICK_NS = 1000000,
    FILL_BYTES = 192 * 1024,
    WAIT_STEP_NS = 200000,
    WAIT_STEPS = 50000, /* 10 s, then the creator goes on whatever the thread does */
    ASLEEP_STEPS = 5    /* a thread that waits this many looks in a row is taken to wait for somebody */
};
static const int64_t REALTIME_S = 1577836800,
                     OTHER_S = 1; /* 2020; small, so that deadlines lie in the past */

static bool fixed_clock, fixed_files, serial_threads;
static int fill = -1;
static atomic_int_least64_t ticks;

/* ---- what is asked for ------------------------------------------------------------------------------- */

static bool has_word(const char *text, const char *word, const char **value)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n) {
        if (at != text && at[-1] != ' ')
            continue;
        if (at[n] == '\0' || at[n] == ' ')
            return true;
        if (at[n] == '=' && value != NULL) {
            *value = at + n + 1;
            return true;
        }
    }
    return false;
}

/* Leaves bytes behind below the caller's frame. */
static __attribute__((noinline)) void fill_stack(void)
{
    unsigned char block[FILL_BYTES];
    memset(block, fill, sizeof block);
    __asm__ volatile("" ::"r"(block) : "memory");
}

static __attribute__((constructor)) void begin(void)
{
    const char *asked = getenv("TRAINCTL_PROBE"), *value = NULL;
    if (asked == NULL)
        return;
    fixed_clock = has_word(asked, "clock", NULL);
    fixed_files = has_word(asked, "files", NULL);
    serial_threads = has_word(asked, "threads", NULL);
    if (has_word(asked, "fill", &value) && value != NULL) {
        fill = 0;
        for (; *value >= '0' && *value <= '9' && fill <= 255; value++)
            fill = fill * 10 + (*value - '0');
        fill_stack();
    }
}

/* ---- the clock ---------------------------------------------------------------------------------------- */

static struct timespec next_time(clockid_t clock)
{
    int64_t ns = atomic_fetch_add(&ticks, 1) * TICK_NS;
    bool is_calendar = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    return (struct timespec){.tv_sec = (is_calendar ? REALTIME_S : OTHER_S) + ns / 1000000000,
                             .tv_nsec = ns % 1000000000};
}

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
    if (!fixed_clock)
        return REAL(clock_gettime)(clock, ret);
    *ret = next_time(clock);
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    if (!fixed_clock)
        return REAL(gettimeofday)(ret, zone);
    struct timespec now = next_time(CLOCK_REALTIME);
    *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

EXPORT time_t time(time_t *ret)
{
    if (!fixed_clock)
        return REAL(time)(ret);
    time_t now = next_time(CLOCK_REALTIME).tv_sec;
    if (ret != NULL)
        *ret = now;
    return now;
}

EXPORT int timespec_get(struct timespec *ret, int base)
{
    if (!fixed_clock)
        return REAL(timespec_get)(ret, base);
    *ret = next_time(CLOCK_REALTIME);
    return base;
}

EXPORT clock_t clock(void)
{
    if (!fixed_clock)
        return REAL(clock)();
    struct timespec now = next_time(CLOCK_PROCESS_CPUTIME_ID);
    return (clock_t)(now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (1000000000 / CLOCKS_PER_SEC));
}

/* ---- times of files ------------------------------------------------------------------------------------ */

/* stat and its relatives; `size` is nothing or 64. */
#define STAT_FAMILY(size)                                                                                    \
    static int still##size(int result, struct stat##size *st)                                                \
    {                                                                                                        \
        if (result == 0 && fixed_files) {                                                                    \
            const struct timespec then = {.tv_sec = REALTIME_S};                                             \
            st->st_atim = st->st_mtim = st->st_ctim = then;                                                  \
        }                                                                                                    \
        return result;                                                                                       \
    }                                                                                                        \
    EXPORT int stat##size(const char *restrict path, struct stat##size *restrict ret)                        \
    {                                                                                                        \
        return still##size(REAL(stat##size)(path, ret), ret);                                                \
    }                                                                                                        \
    EXPORT int lstat##size(const char *restrict path, struct stat##size *restrict ret)                       \
    {                                                                                                        \
        return still##size(REAL(lstat##size)(path, ret), ret);                                               \
    }                                                                                                        \
    EXPORT int fstat##size(int fd, struct stat##size *ret)                                                   \
    {                                                                                                        \
        return still##size(REAL(fstat##size)(fd, ret), ret);                                                 \
    }                                                                                                        \
    EXPORT int fstatat##size(int fd, const char *restrict path, struct stat##size *restrict ret, int flags)  \
    {                                                                                                        \
        return still##size(REAL(fstatat##size)(fd, path, ret, flags), ret);                                  \
    }

STAT_FAMILY()
STAT_FAMILY(64)

EXPORT int statx(int fd, const char *restrict path, int flags, unsigned int mask, struct statx *restrict ret)
{
    int result = REAL(statx)(fd, path, flags, mask, ret);
    if (result == 0 && fixed_files) {
        const struct statx_timestamp then = {.tv_sec = REALTIME_S};
        ret->stx_atime = ret->stx_btime = ret->stx_ctime = ret->stx_mtime = then;
    }
    return result;
}

/* ---- threads ------------------------------------------------------------------------------------------- */

/* Held by creator and thread; the last one frees it. */
typedef struct beginning {
    void *(*start)(void *);
    void *arg;
    atomic_int holders, tid; /* 0: not yet running */
    atomic_bool ended;
} beginning;

static void let_go(beginning *b)
{
    if (atomic_fetch_sub(&b->holders, 1) == 1)
        free(b);
}

static void mark_ended(void *arg)
{
    beginning *b = arg;
    atomic_store(&b->ended, true);
    let_go(b);
}

static void *run_thread(void *arg)
{
    beginning *b = arg;
    void *result = NULL;
    pthread_attr_t attr;
    size_t size = 0;
    if (fill >= 0 && pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstacksize(&attr, &size);
        pthread_attr_destroy(&attr);
        if (size > 2 * (size_t)FILL_BYTES)
            fill_stack();
    }
    atomic_store(&b->tid, (int)gettid());
    pthread_cleanup_push(mark_ended, b);
    result = b->start(b->arg);
    pthread_cleanup_pop(1);
    return result;
}

/* The state letter of a thread of this process; 0 if it is not there. Written for a place where nothing may be
 * allocated and errno must stay. */
static char state_of(int tid)
{
    char path[] = "/proc/self/task/0000000000/stat", text[256];
    char *digit = path + sizeof "/proc/self/task/0000000000" - 2;
    int error = errno;
    for (; *digit == '0'; digit--, tid /= 10)
        *digit = (char)('0' + tid % 10);
    /* Leading zeros are not what the kernel calls it: move the number to the left. */
    char *number = path + sizeof "/proc/self/task/" - 1, *first = number;
    while (*first == '0')
        first++;
    memmove(number, first, strlen(first) + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    errno = error;
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end == NULL || end[1] != ' ' ? 0 : end[2];
}

static void wait_for(const beginning *b)
{
    int asleep = 0;
    for (int i = 0; i < WAIT_STEPS && asleep < ASLEEP_STEPS && !atomic_load(&b->ended); i++) {
        nanosleep(&(struct timespec){0, WAIT_STEP_NS}, NULL);
        int tid = atomic_load(&b->tid);
        asleep = tid != 0 && state_of(tid) == 'S' ? asleep + 1 : 0;
    }
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
                          void *(*start)(void *), void *restrict arg)
{
    beginning *b = serial_threads || fill >= 0 ? malloc(sizeof *b) : NULL;
    if (b == NULL)
        return REAL(pthread_create)(thread, attr, start, arg);
    *b = (beginning){.start = start, .arg = arg};
    atomic_init(&b->holders, 2);
    int result = REAL(pthread_create)(thread, attr, run_thread, b);
    if (result != 0) { /* there is no other holder */
        free(b);
        return result;
    }
    if (serial_threads)
        wait_for(b);
    let_go(b);
    return 0;
}
