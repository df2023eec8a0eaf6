/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.trainer/1": runs the work of a spec.
 */
#ifndef TRAINCTL_EXT_TRAINER_H
#define TRAINCTL_EXT_TRAINER_H

#include "trainctl/model.h"
#include "trainctl/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_TRAINER_ID "trainctl.trainer/1"

/* One entry of `data:`. */
typedef struct tctl_dataset {
    const char *name;            /* "train", "test" */
    tctl_part source;            /* provides trainctl.source/1 */
    const tctl_part *transforms; /* [n_transforms], each provides trainctl.transform/1, in order */
    uint32_t n_transforms, reserved;
} tctl_dataset;

/* Decides the time, never the bits. */
typedef struct tctl_resources {
    uint32_t struct_size;
    uint32_t threads;     /* compute threads, at least 1 */
    uint32_t workers;     /* loader threads; 0: the step loop loads its own batches */
    uint32_t prefetch;    /* batches loaded ahead; 0: none */
    uint64_t cache_bytes; /* RAM for samples as read, before transforms; 0: no cache */
    const char *device;   /* "cpu" */
} tctl_resources;

/* Everything that a trainer is given; borrowed for the call of `run`. */
typedef struct tctl_job {
    uint32_t struct_size;
    uint32_t n_datasets, n_stages, reserved;
    uint64_t seed;
    tctl_model *model; /* as the spec has it; the trainer applies the stages' `graph` */
    const tctl_model_service *models;
    const tctl_dataset *datasets;
    const tctl_part *stages; /* in the order of `stages:` */
    const tctl_resources *resources;
} tctl_job;

/* The options of one operator of the model: the same tables that plugins use. Every operator may have
 * `name` and `from` as well, which the host reads. */
typedef struct tctl_op_schema {
    const char *op; /* "conv" */
    const char *doc;
    const tctl_option *options;
    uint32_t n_options;
    uint32_t min_inputs, max_inputs;
    uint32_t reserved;
} tctl_op_schema;

typedef struct tctl_trainer {
    uint32_t struct_size;
    uint32_t op_schema_size; /* sizeof(tctl_op_schema) when the plugin was built */
    uint32_t n_ops, reserved;
    const tctl_op_schema *ops;
    /* Trains, evaluates, writes artifacts, metrics and the trace. [main] */
    tctl_status (*run)(tctl_stage *, const tctl_job *, tctl_error *);
} tctl_trainer;

#ifdef __cplusplus
}
#endif

#endif
