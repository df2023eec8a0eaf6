/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draft service "trainctl.snapshot/1": the state of everything in a run, in one stream. For checkpoint stages,
 * which cannot reach other stages and need not know them. May change until it leaves this folder; its id will
 * stay.
 *
 * A snapshot is the states (trainctl.state/1) of the trainer, its parts (optimizer, schedule) and all stages, each
 * with its name in the spec, behind the recipe digest. The host writes and reads it; a run is resumed by handing
 * each part its own bytes between `create` and the trainer's `run`. A part with TCTL_PLUGIN_REMEMBERS and no
 * state/1 was refused when the spec was read, so a snapshot is never partial.
 */
#ifndef TRAINCTL_DRAFT_SNAPSHOT_H
#define TRAINCTL_DRAFT_SNAPSHOT_H

#include "trainctl/ext/state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_SNAPSHOT_ID "trainctl.snapshot/1"

typedef struct tctl_snapshot {
    uint32_t struct_size, reserved;
    /* Writes the whole; only from within step_done and epoch_end. The caller's own state is included, as it is at
     * the time of the call. Errors are those of the parts and of `to`. [step] */
    tctl_status (*save)(const tctl_host *, const tctl_writer *to, tctl_error *);
} tctl_snapshot;

#ifdef __cplusplus
}
#endif

#endif
