/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draft extension "trainctl.exporter/1": a trained model and calibration batches become artifacts.
 * May change until it leaves this folder; its id will stay.
 */
#ifndef TRAINCTL_DRAFT_EXPORTER_H
#define TRAINCTL_DRAFT_EXPORTER_H

#include "trainctl/ext/hooks.h"
#include "trainctl/host/services.h"
#include "trainctl/model.h"
#include "trainctl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_EXPORTER_ID "trainctl.exporter/1"

typedef struct tctl_exporter {
    uint32_t struct_size, reserved;
    /* One batch of inputs and the output of every node for it, in the model's order; called for as many
     * batches as `calibration_batches` says, in a fixed order. [step] */
    uint32_t (*calibration_batches)(tctl_stage *);
    tctl_status (*calibrate)(tctl_stage *, const tctl_tensor *input, const tctl_tensor *outputs,
                             uint32_t n_outputs, tctl_error *);
    /* Writes the artifacts. [main] */
    tctl_status (*finish)(tctl_stage *, const tctl_model *, const tctl_model_service *,
                          const tctl_training *trained, const tctl_artifacts *, tctl_error *);
} tctl_exporter;

#ifdef __cplusplus
}
#endif

#endif
