/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service "trainctl.random/1": random numbers that are addressed, never drawn in sequence.
 *
 * A number is a function of where it is used: which stream (a key derived from the run's seed and the
 * stream's name), when (epoch or step), for which index (global sample or element), and which draw. Worker,
 * thread, rank and resume point do not appear, so they cannot show. Generator: Philox4x32-10 (Salmon et
 * al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11); draw d of an address is word d mod 4 of
 * Philox(key, counter = (d / 4, when, low 32 bits of index, high 32 bits of index)). An address has 2^34 draws;
 * callers use the first 2^33.
 */
#ifndef TRAINCTL_HOST_RANDOM_H
#define TRAINCTL_HOST_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_RANDOM_ID "trainctl.random/1"

typedef struct tctl_random_address {
    uint32_t key[2]; /* of the stream */
    uint32_t when;   /* epoch or step, whichever the caller documents */
    uint32_t reserved;
    uint64_t index; /* global sample or element index */
} tctl_random_address;

/* All [any]; pure functions of their arguments; same bits on every machine. */
typedef struct tctl_random {
    uint32_t struct_size;
    uint32_t reserved;
    /* The address of (when, index) in the stream `name` of this run's root seed. `name` is a dotted path,
     * such as "shuffle"; the name of the stage that `host` was given to is put in front ("cutout.shuffle"). The
     * trainer's streams have no prefix: it works for the whole run. Hashes the name, so ask once
     * per stream: `when` and `index` of the result may be set to others. */
    tctl_random_address (*address)(const tctl_host *host, const char *name, uint32_t when, uint64_t index);
    /* 32 random bits. */
    uint32_t (*bits)(const tctl_random_address *, uint64_t draw);
    /* Uniform in [0,1): the top 24 bits times 2^-24. */
    float (*uniform)(const tctl_random_address *, uint64_t draw);
    /* Uniform integer in [0,n), n >= 1, without modulo bias: multiply-shift (Lemire, "Fast Random Integer
     * Generation in an Interval", TOMACS 29, 2019) on the 64 bits of draws d (low word) and d+1. Less than one
     * pair in 2^32 is rejected; the replacements are draws d + 2^33 + 2k and its successor, k = 0, 1, ...,
     * so that the result stays a function of the address. */
    uint32_t (*bounded)(const tctl_random_address *, uint64_t draw, uint32_t n);
    /* Standard normal by Box-Muller: sqrt(-2 log u) cos(2 pi v) with u = (draw 2d + 1) 2^-32 and v = draw
     * (2d + 1) 2^-32, in double with the project's own log and cos, rounded to float at the end. */
    float (*normal)(const tctl_random_address *, uint64_t draw);
} tctl_random;

#ifdef __cplusplus
}
#endif

#endif
