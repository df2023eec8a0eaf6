/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.state/1": saves and restores what a stage remembers.
 *
 * `load` after `create` with the same options, then going on, must give the bits that never stopping would
 * have given: counters, averages, everything. The bytes are little-endian and carry their own version. `load`
 * must not trust them: TCTL_EFORMAT for what it cannot have written.
 *
 * A trainer's state is everything that training owns: parameters, slots, buffers, position. It can be saved
 * from within the hooks step_done and epoch_end; loaded before `run`, it makes `run` go on from there.
 */
#ifndef TRAINCTL_EXT_STATE_H
#define TRAINCTL_EXT_STATE_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_STATE_ID "trainctl.state/1"

typedef struct tctl_writer {
    void *impl;
    tctl_status (*write)(const struct tctl_writer *, const void *data, size_t size_bytes, tctl_error *);
} tctl_writer;

typedef struct tctl_reader {
    void *impl;
    /* Exactly size_bytes, or TCTL_EFORMAT if fewer are left. */
    tctl_status (*read)(const struct tctl_reader *, void *data, size_t size_bytes, tctl_error *);
} tctl_reader;

typedef struct tctl_state {
    uint32_t struct_size, reserved;
    tctl_status (*save)(tctl_stage *, const tctl_writer *, tctl_error *); /* [main] */
    tctl_status (*load)(tctl_stage *, const tctl_reader *, tctl_error *); /* [main] */
} tctl_state;

#ifdef __cplusplus
}
#endif

#endif
