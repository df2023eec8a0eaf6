/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The native trainer, inside: what its files share.
 *
 *   native.c     the plugin: options
 *   trainer.c    a run from begin to end: data sets, network, epochs
 *   graph.c      stages that rewrite the model
 *   hooks.c      stages that take part in a step
 *   step.c       one batch: forward, backward, update
 *   update.c     the optimizer over flat memory, in parallel
 *   evaluate.c   loss and accuracy of a data set
 *   trace.c      digests of every tensor of a step
 *   save.c       model.safetensors and metrics.json
 *
 * Threads never show: they compute fixed chunks that write only what is theirs; sums over samples are formed in the
 * order of the samples.
 */
#ifndef TCTL_NATIVE_TRAINER_H
#define TCTL_NATIVE_TRAINER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "engine/loader.h"
#include "engine/network.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/host/services.h"

/* The plugin's stage: its options and the services of the host. */
struct tctl_stage {
    const tctl_host *host;
    uint64_t epochs;
    uint32_t batch, eval_batch;
    uint64_t max_steps; /* 0: no limit */
    double label_smoothing;
    bool shuffle, drop_last;
    uint64_t trace_every; /* 0: no trace */
    bool trace_in_epochs;
    const tctl_part *optimizer, *schedule;
    const tctl_memory *memory;
    const tctl_log *log;             /* NULL: silent */
    const tctl_metrics *metrics;     /* NULL: none */
    const tctl_trace *trace;         /* NULL: none */
    const tctl_cancel *cancel;       /* NULL: never */
    const tctl_artifacts *artifacts; /* NULL: nothing is saved */
};

/* One data set, being read. */
typedef struct feed {
    tctl_loader *loader;   /* NULL: the spec has none of that name */
    uint32_t input, label; /* which fields */
    uint32_t labels;       /* of a sample: 0 for one, else one for each position of a sequence */
    bool tokens;           /* the input is token numbers */
} feed;

/* Labels of n samples. */
static inline uint64_t tctl_native_labels(const feed *data, uint64_t n)
{
    return data->labels ? n * data->labels : n;
}

/* A stage with hooks. */
typedef struct hooked {
    const tctl_hooks *hooks;
    tctl_stage *stage;
    const char *name;
} hooked;

/* Elements of one parameter that one call of the optimizer updates. */
typedef struct update_range {
    uint32_t parameter;
    uint64_t offset, n; /* of the flat arrays */
} update_range;

typedef struct tracer tracer; /* trace.c */

/* Loss and accuracy of some samples. */
typedef struct score {
    double loss;      /* sum over the labels, added up in their order */
    uint64_t correct; /* labels */
    uint64_t samples, labels;
} score;

typedef struct trainer {
    tctl_stage *options;
    const tctl_job *job;
    tctl_pool *pool;
    tctl_network *network;
    const tctl_network_memory *memory;
    uint64_t activation_bytes, parameter_bytes; /* with scratch; with gradients and the optimizer's slots */
    const tctl_optimizer *optimizer;
    const tctl_schedule *schedule;
    feed train, test;
    hooked *hooked;
    uint32_t n_hooked;
    update_range *ranges;
    uint64_t n_ranges;
    double *measured; /* [n_parameters], of the update under way */
    double lr_factor; /* of the last update */
    tracer *tracer;   /* NULL: no trace */
    tctl_training view;
    bool ends;        /* somebody who looks for a difference has seen enough */
    bool dropped;     /* a batch of the group under way was vetoed */
    uint64_t batches; /* done in this run: the trace's step */
    score epoch;      /* of the training batches so far */
    uint64_t started_ns, trace_ns;
} trainer;

/* The whole run: trainctl.trainer/1. */
tctl_status tctl_native_run(tctl_stage *, const tctl_job *, tctl_error *);

/* ---- graph.c, hooks.c ------------------------------------------------------------------------------- */

tctl_status tctl_native_rewrite(const tctl_job *job, tctl_error *err);

enum { RUN_BEGIN, EPOCH_BEGIN, BATCH_READY, LOSS_READY, STEP_DONE, EPOCH_END, RUN_END };

/* Finds the stages with hooks. A stage that has neither hooks nor graph is TCTL_EUNSUPPORTED. */
tctl_status tctl_native_find_hooks(trainer *t, tctl_error *err);
/* Calls the moment of every stage, in order. */
tctl_status tctl_native_moment(trainer *t, int moment, tctl_error *err);
/* gradients_ready: *action is the strongest of what the stages say. */
tctl_status tctl_native_gradients_ready(trainer *t, int32_t *action, tctl_error *err);
/* True if some stage has something to do at the end of the run: the saved parameters may be others. */
bool tctl_native_has_run_end(const trainer *t);

/* ---- step.c, update.c, evaluate.c ------------------------------------------------------------------- */

/* One batch of the training set. */
tctl_status tctl_native_step(trainer *t, const tctl_loaded_batch *batch, tctl_error *err);
/* The training set's samples in the group of micro-batches that batch `number` belongs to. */
uint64_t tctl_native_group_samples(const trainer *t, uint64_t number);

tctl_status tctl_native_plan_update(trainer *t, tctl_error *err);
/* Takes the loss scale out of the gradients and lets the optimizer update every parameter that isn't frozen. */
void tctl_native_update(trainer *t);

/* What the network takes, out of a loaded batch. Pointers live as long as the batch. */
tctl_network_batch tctl_native_batch_of(const feed *data, const tctl_loaded_batch *batch);

/* Loss (without label smoothing) and accuracy over a whole data set, in evaluation mode. */
tctl_status tctl_native_evaluate(trainer *t, feed *data, score *ret, tctl_error *err);

/* TCTL_ECANCELED once somebody asked to stop. */
tctl_status tctl_native_check_cancel(const trainer *t, tctl_error *err);

/* ---- trace.c, save.c -------------------------------------------------------------------------------- */

tctl_status tctl_native_trace_begin(trainer *t, tctl_error *err);
/* Writes the record of a batch, if one is due. The batch and the gradients must still be as they were. */
tctl_status tctl_native_trace_record(trainer *t, const tctl_loaded_batch *batch, tctl_error *err);
void tctl_native_trace_end(trainer *t);

tctl_status tctl_native_save_model(trainer *t, tctl_error *err);
tctl_status tctl_native_save_metrics(trainer *t, const tctl_metric *metrics, uint32_t n, tctl_error *err);

#endif
