/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.schedule/1": the learning rate of a step.
 *
 * A pure function of the position, in double precision with IEEE operations and the plugin's own polynomial
 * where it needs more: libm's bits change with the machine.
 */
#ifndef TRAINCTL_EXT_SCHEDULE_H
#define TRAINCTL_EXT_SCHEDULE_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_SCHEDULE_ID "trainctl.schedule/1"

typedef struct tctl_position {
    uint32_t struct_size, reserved;
    uint64_t step;            /* of this update, from 0 */
    uint64_t n_steps;         /* of the whole run, at least 1 */
    uint64_t steps_per_epoch; /* at least 1 */
} tctl_position;

typedef struct tctl_schedule {
    uint32_t struct_size, reserved;
    /* Factor >= 0 on the optimizer's learning rate. [any] */
    double (*factor)(tctl_stage *, const tctl_position *);
} tctl_schedule;

#ifdef __cplusplus
}
#endif

#endif
