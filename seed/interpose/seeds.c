/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of libc's generators (rand, random, drand48 and their variants) and of std::random_device.
 *
 * A generator that nobody seeds starts from the run's seed. A seed that the program gives is respected, unless it is
 * a clock's, a process id's or entropy's: then the stream's stands in for it, and the report says so. What the
 * program added to a time (its rank, its thread's number) goes into the stream's name, so that those stay apart.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seed/interpose/interpose.h"

TCTL_REAL(srand)
TCTL_REAL(srandom)
TCTL_REAL(srandom_r)
TCTL_REAL(initstate)
TCTL_REAL(initstate_r)
TCTL_REAL(srand48)
TCTL_REAL(srand48_r)
TCTL_REAL(seed48)
TCTL_REAL(seed48_r)
TCTL_REAL(lcong48)
TCTL_REAL(lcong48_r)
TCTL_REAL(rand_r)

void tctl_seeds_start(void)
{
    real_srandom()((unsigned)tctl_libc_seed("rand")); /* rand and random share one state */
    real_srand48()((long)(uint32_t)tctl_libc_seed("drand48"));
}

/* The seed to use for one that the program gives: its low `bits` count. */
static uint64_t decide(const char *function, uint64_t seed, unsigned bits)
{
    uint64_t offset = 0;
    char detail[96];
    if (!tctl_reading_explains(seed, bits, &offset)) {
        tctl_count(TCTL_COUNT_SEEDS);
        return seed;
    }
    tctl_count(TCTL_COUNT_TIME_SEEDS);
    if (!tctl_this.seed_libc) {
        tctl_report_event("time-seeded", function,
                          "seeded from a clock, a process id or entropy; left as it was");
        return seed;
    }
    snprintf(detail, sizeof detail,
             "seeded from a clock, a process id or entropy; seeded from the run instead");
    tctl_report_event("time-seeded", function, detail);
    return tctl_process_seed("time-seed", offset);
}

TCTL_EXPORT void srand(unsigned seed)
{
    real_srand()((unsigned)decide("srand", seed, 32));
}

TCTL_EXPORT void srandom(unsigned seed)
{
    real_srandom()((unsigned)decide("srandom", seed, 32));
}

TCTL_EXPORT int srandom_r(unsigned seed, struct random_data *data)
{
    return real_srandom_r()((unsigned)decide("srandom_r", seed, 32), data);
}

TCTL_EXPORT char *initstate(unsigned seed, char *state, size_t size)
{
    return real_initstate()((unsigned)decide("initstate", seed, 32), state, size);
}

TCTL_EXPORT int initstate_r(unsigned seed, char *restrict state, size_t size,
                            struct random_data *restrict data)
{
    return real_initstate_r()((unsigned)decide("initstate_r", seed, 32), state, size, data);
}

TCTL_EXPORT void srand48(long seed)
{
    real_srand48()((long)(uint32_t)decide("srand48", (uint32_t)seed, 32));
}

TCTL_EXPORT int srand48_r(long seed, struct drand48_data *data)
{
    return real_srand48_r()((long)(uint32_t)decide("srand48_r", (uint32_t)seed, 32), data);
}

/* 48 bits, the lowest 16 first; programs fill in as many as they have. */
static void decide48(const char *function, const unsigned short given[3], unsigned short ret[3])
{
    uint64_t all = (uint64_t)given[2] << 32 | (uint64_t)given[1] << 16 | given[0], offset = 0;
    uint64_t low = all & 0xffffffff, high = all >> 16;
    memcpy(ret, given, 3 * sizeof ret[0]);
    uint64_t part = tctl_reading_explains(low, 32, &offset) ? low : high;
    uint64_t decided = decide(function, part, 32);
    if (decided == part)
        return;
    for (size_t i = 0; i < 3; i++)
        ret[i] = (unsigned short)(decided >> (16 * i));
}

TCTL_EXPORT unsigned short *seed48(unsigned short given[3])
{
    unsigned short seed[3];
    decide48("seed48", given, seed);
    return real_seed48()(seed);
}

TCTL_EXPORT int seed48_r(unsigned short given[3], struct drand48_data *data)
{
    unsigned short seed[3];
    decide48("seed48_r", given, seed);
    return real_seed48_r()(seed, data);
}

/* Seven words: the seed, the multiplier and the summand. */
TCTL_EXPORT void lcong48(unsigned short given[7])
{
    unsigned short param[7];
    memcpy(param, given, sizeof param);
    decide48("lcong48", given, param);
    real_lcong48()(param);
}

TCTL_EXPORT int lcong48_r(unsigned short given[7], struct drand48_data *data)
{
    unsigned short param[7];
    memcpy(param, given, sizeof param);
    decide48("lcong48_r", given, param);
    return real_lcong48_r()(param, data);
}

/* The state is the caller's, so the first call with it is the seeding. What the last call on this thread left is a
 * state that goes on; with several states in turn each is looked at again, and each is only compared. */
TCTL_EXPORT int rand_r(unsigned *state)
{
    static _Thread_local unsigned left;
    static _Thread_local bool has_left;
    uint64_t offset;
    if ((!has_left || *state != left) && tctl_reading_explains(*state, 32, &offset))
        *state = (unsigned)decide("rand_r", *state, 32);
    int value = real_rand_r()(state);
    left = *state;
    has_left = true;
    return value;
}

/* ---- C++ ------------------------------------------------------------------------------------------------ */

/* std::random_device::_M_getval of libstdc++ and std::random_device::operator() of libc++: `unsigned (this)`. */
unsigned _ZNSt13random_device9_M_getvalEv(void *self);
unsigned _ZNSt3__113random_deviceclEv(void *self);
TCTL_REAL(_ZNSt13random_device9_M_getvalEv)
TCTL_REAL(_ZNSt3__113random_deviceclEv)

/* A C++ library that came by dlopen is not behind us in the search order. */
static void *find_in(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle == NULL ? NULL : dlsym(handle, name);
    if (handle != NULL)
        dlclose(handle); /* whoever calls us keeps it */
    return found;
}

static unsigned device_number(void *self, unsigned (*real)(void *), const char *library, const char *name)
{
    tctl_count(TCTL_COUNT_RANDOM_DEVICE);
    if (tctl_this.seed_libc)
        return tctl_device_number();
    union {
        void *object;
        unsigned (*function)(void *);
    } u = {.function = real};
    if (u.object == NULL)
        u.object = find_in(library, name);
    unsigned value = u.object == NULL ? tctl_device_number() : u.function(self);
    tctl_reading_add(TCTL_READ_ENTROPY, value, 0);
    return value;
}

TCTL_EXPORT unsigned _ZNSt13random_device9_M_getvalEv(void *self)
{
    return device_number(self, real__ZNSt13random_device9_M_getvalEv(), "libstdc++.so.6",
                         "_ZNSt13random_device9_M_getvalEv");
}

TCTL_EXPORT unsigned _ZNSt3__113random_deviceclEv(void *self)
{
    return device_number(self, real__ZNSt3__113random_deviceclEv(), "libc++.so.1",
                         "_ZNSt3__113random_deviceclEv");
}
