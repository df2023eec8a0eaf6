/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread was last told by clocks, getpid and the kernel's entropy, so that a seed made of it is known when it
 * comes. The calls themselves answer as always: a training run may look at the clock as often as it likes.
 *
 * A seed cannot be told from a constant by looking at it, only by comparing. What is compared is narrow on purpose:
 * small numbers (below SMALLEST) are taken for constants unless they are the very last thing that was read.
 */
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

enum { KEPT = 4, SMALLEST = 1000 };
#define NEARBY   65536u              /* what programs add to a time: ranks, threads, pids */
#define CALENDAR ((uint64_t)1 << 30) /* seconds since 1970, and no clock that started with the machine */

typedef struct reading {
    int kind;
    uint64_t whole, fraction;
} reading;

static _Thread_local struct {
    reading list[KEPT];
    unsigned n; /* ever; the last one is list[(n - 1) % KEPT] */
} readings;

void tctl_reading_add(int kind, uint64_t whole, uint64_t fraction)
{
    readings.list[readings.n % KEPT] = (reading){kind, whole, fraction};
    readings.n++;
}

/* `seed` is `base` with something small added to it, or mixed into its low bits. */
static bool is_near(uint64_t seed, uint64_t base, uint64_t mask, uint64_t *ret_offset)
{
    uint64_t above = (seed - base) & mask, below = (base - seed) & mask;
    if (above >= NEARBY && below >= NEARBY && ((seed ^ base) & mask) >= NEARBY)
        return false;
    *ret_offset = above < 1024 ? above : 0; /* more than that is no rank, but perhaps a pid */
    return true;
}

static bool is_one_of(uint64_t seed, const uint64_t *list, size_t n, uint64_t mask)
{
    for (size_t i = 0; i < n; i++) {
        if (((list[i] ^ seed) & mask) == 0)
            return true;
    }
    return false;
}

/* The ways in which programs make one number of a clock's two: those that use the whole width. */
static bool is_product(uint64_t seed, uint64_t t, uint64_t f, uint64_t mask)
{
    const uint64_t list[] = {t * 1000000000 + f,
                             t * 1000000 + f,
                             t * 1000000 + f / 1000,
                             t * 1000 + f / 1000,
                             t * 1000 + f / 1000000,
                             t << 20 | f,
                             t << 32 ^ f,
                             f << 32 ^ t};
    return is_one_of(seed, list, sizeof list / sizeof list[0], mask);
}

/* And those that need a calendar's time to be told from a constant. */
static bool is_mixture(uint64_t seed, uint64_t t, uint64_t f, uint64_t mask)
{
    uint64_t pid = (uint64_t)tctl_this.pid;
    const uint64_t list[] = {
        t ^ f,
        t + f,
        t - f,
        t ^ f ^ pid,
        t + f + pid,
        (t ^ f) + pid,
        t ^ pid,
        t + pid,
        t - pid,
        t * pid,
        t ^ pid << 16,
        t ^ pid << 8,
        t + (pid << 16),
        (t * 1000000 + f) ^ pid,
        (t * 1000 + f / 1000) ^ pid,
        (t * 1000000000 + f) ^ pid,
    };
    return is_one_of(seed, list, sizeof list / sizeof list[0], mask) ||
           (f != 0 && ((t * f ^ seed) & mask) == 0);
}

static bool explains(const reading *r, bool is_last, uint64_t seed, uint64_t mask, uint64_t *ret_offset)
{
    bool is_small = seed < SMALLEST;
    *ret_offset = 0;
    switch (r->kind) {
    case TCTL_READ_CLOCK:
        if (r->whole >= CALENDAR)
            return is_near(seed, r->whole & mask, mask, ret_offset) ||
                   (is_last && !is_small && seed == r->fraction) ||
                   (!is_small && (is_mixture(seed, r->whole, r->fraction, mask) ||
                                  is_product(seed, r->whole, r->fraction, mask)));
        return is_last && !is_small && (seed == r->fraction || is_product(seed, r->whole, r->fraction, mask));
    case TCTL_READ_PID:
        return is_last && seed == (r->whole & mask);
    case TCTL_READ_ENTROPY:
        return !is_small && seed == (r->whole & mask);
    default: /* every process has small values of the CPU's clock: only the last one can be meant */
        return is_last && !is_small && seed == (r->whole & mask);
    }
}

bool tctl_reading_explains(uint64_t seed, unsigned bits, uint64_t *ret_offset)
{
    uint64_t mask = bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, best = 0;
    bool found = false;
    seed &= mask;
    for (unsigned back = 1; back <= KEPT && back <= readings.n; back++) {
        if (explains(&readings.list[(readings.n - back) % KEPT], back == 1, seed, mask, &best)) {
            *ret_offset = best;
            return true;
        }
    }
    struct timespec now; /* by a way that did not pass through here */
    if (syscall(SYS_clock_gettime, CLOCK_REALTIME, &now) == 0)
        found = is_near(seed, (uint64_t)now.tv_sec & mask, mask, &best);
    *ret_offset = 0;
    return found;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

TCTL_REAL(time)
TCTL_REAL(gettimeofday)
TCTL_REAL(clock_gettime)
TCTL_REAL(timespec_get)
TCTL_REAL(clock)
TCTL_REAL(getpid)

TCTL_EXPORT time_t time(time_t *ret)
{
    time_t now = real_time()(ret);
    tctl_reading_add(TCTL_READ_CLOCK, (uint64_t)now, 0);
    return now;
}

TCTL_EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    int status = real_gettimeofday()(ret, zone);
    struct timeval *volatile got = ret; /* may be NULL, whatever the header promises compilers */
    if (status == 0 && got != NULL)
        tctl_reading_add(TCTL_READ_CLOCK, (uint64_t)got->tv_sec, (uint64_t)got->tv_usec);
    return status;
}

TCTL_EXPORT int clock_gettime(clockid_t which, struct timespec *ret)
{
    int status = real_clock_gettime()(which, ret);
    if (status == 0) {
        bool is_time = which != CLOCK_PROCESS_CPUTIME_ID && which != CLOCK_THREAD_CPUTIME_ID;
        uint64_t whole = (uint64_t)ret->tv_sec, fraction = (uint64_t)ret->tv_nsec;
        if (is_time)
            tctl_reading_add(TCTL_READ_CLOCK, whole, fraction);
        else
            tctl_reading_add(TCTL_READ_CPU_CLOCK, whole * 1000000000 + fraction, 0);
    }
    return status;
}

TCTL_EXPORT int timespec_get(struct timespec *ret, int base)
{
    int status = real_timespec_get()(ret, base);
    if (status != 0)
        tctl_reading_add(TCTL_READ_CLOCK, (uint64_t)ret->tv_sec, (uint64_t)ret->tv_nsec);
    return status;
}

TCTL_EXPORT clock_t clock(void)
{
    clock_t now = real_clock()();
    tctl_reading_add(TCTL_READ_CPU_CLOCK, (uint64_t)now, 0);
    return now;
}

TCTL_EXPORT pid_t getpid(void)
{
    pid_t pid = real_getpid()();
    tctl_reading_add(TCTL_READ_PID, (uint64_t)pid, 0);
    return pid;
}
