/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draft extension "trainctl.envelope/1": what a stage asks of a child's surroundings when the child is the
 * user's own command. Data only: the launcher reads it without running code of the plugin.
 * May change until it leaves this folder; its id will stay.
 */
#ifndef TRAINCTL_DRAFT_ENVELOPE_H
#define TRAINCTL_DRAFT_ENVELOPE_H

#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_ENVELOPE_ID "trainctl.envelope/1"

/* A pair such as {"CUDA_LAUNCH_BLOCKING", "1"}, or a setting for the Python shim: {"torch.amp", "bf16"}. In a
 * value, ${option} stands for the value of the stage's option of that name. */
typedef struct tctl_setting {
    const char *name, *value;
} tctl_setting;

typedef struct tctl_envelope {
    uint32_t struct_size;
    uint32_t n_variables, n_preloads, n_settings;
    const tctl_setting *variables; /* of the environment; a conflict between two stages is an error */
    const char *const *preloads;   /* shared objects, relative to the plugin's folder */
    const tctl_setting *settings;  /* for the shim of the child's language */
} tctl_envelope;

#ifdef __cplusplus
}
#endif

#endif
