/* SPDX-License-Identifier: Apache-2.0 */
/* The native trainer as a plugin: its options, and where a run begins. See trainer.h for the rest. */
#include <stdlib.h>

#include "plugins/native/trainer.h"

static tctl_status check_part(const tctl_host *host, const tctl_config *config, const char *option,
                              const tctl_part **ret, tctl_error *err)
{
    *ret = host->cfg_part(config, option);
    return *ret ? TCTL_OK : host->fail_option(err, config, option, "'%s' is missing", option);
}

static void find_services(tctl_stage *s)
{
    s->memory = s->host->service(s->host, TCTL_MEMORY_ID);
    s->log = s->host->service(s->host, TCTL_LOG_ID);
    s->metrics = s->host->service(s->host, TCTL_METRICS_ID);
    s->trace = s->host->service(s->host, TCTL_TRACE_ID);
    s->cancel = s->host->service(s->host, TCTL_CANCEL_ID);
    s->artifacts = s->host->service(s->host, TCTL_ARTIFACT_ID);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->host = host;
    find_services(s);
    s->epochs = (uint64_t)host->cfg_int(config, "epochs");
    s->batch = (uint32_t)host->cfg_int(config, "batch");
    s->eval_batch = (uint32_t)host->cfg_int(config, "eval_batch");
    s->max_steps = host->cfg_given(config, "max_steps") ? (uint64_t)host->cfg_int(config, "max_steps") : 0;
    s->label_smoothing = host->cfg_real(config, "label_smoothing");
    s->shuffle = host->cfg_bool(config, "shuffle");
    s->drop_last = host->cfg_bool(config, "drop_last");
    s->trace_every = (uint64_t)host->cfg_int(config, "trace_every");
    s->trace_in_epochs = host->cfg_text(config, "trace_every")[0] == 'e';
    tctl_status st =
        s->memory ? TCTL_OK
                  : host->fail(err, TCTL_EUNSUPPORTED, "this host has no service '%s'", TCTL_MEMORY_ID);
    if (!st)
        st = check_part(host, config, "optimizer", &s->optimizer, err);
    if (!st)
        st = check_part(host, config, "schedule", &s->schedule, err);
    if (st) {
        free(s);
        return st;
    }
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const char *const optimizers[] = {TCTL_OPTIMIZER_ID, NULL},
                         *const schedules[] = {TCTL_SCHEDULE_ID, NULL},
                         *const units[] = {"steps", "epochs", NULL};

static const tctl_option options[] = {
    {"epochs", TCTL_INT, TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED, NULL, 1, 1000000, 0, 0, NULL, NULL,
     "how often the training set is gone through", "0.1.0"},
    {"batch", TCTL_INT, TCTL_OPT_SEMANTIC, "128", 1, 1 << 20, 0, 0, NULL, "samples",
     "taken in one step; the last batch of an epoch may be smaller", "0.1.0"},
    {"max_steps", TCTL_INT, TCTL_OPT_SEMANTIC, NULL, 1, INT64_MAX, 0, 0, NULL, "steps",
     "end after so many, also in the middle of an epoch; schedules end there too", "0.1.0"},
    {"optimizer", TCTL_PLUGIN, TCTL_OPT_SEMANTIC | TCTL_OPT_REQUIRED, NULL, 0, 0, 0, 0, optimizers, NULL,
     "how gradients change the weights", "0.1.0"},
    {"schedule", TCTL_PLUGIN, TCTL_OPT_SEMANTIC, "constant", 0, 0, 0, 0, schedules, NULL,
     "how the learning rate changes over the run", "0.1.0"},
    {"label_smoothing", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, 0, 0.999, NULL, NULL,
     "share of each target that is spread over all classes, in training", "0.1.0"},
    {"shuffle", TCTL_BOOL, TCTL_OPT_SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "take the training samples in a new random order each epoch", "0.1.0"},
    {"drop_last", TCTL_BOOL, TCTL_OPT_SEMANTIC, "false", 0, 0, 0, 0, NULL, NULL,
     "leave out a last batch that is not full", "0.1.0"},
    {"trace_every", TCTL_COUNT, TCTL_OPT_SEMANTIC, "1 step", 0, 1000000000, 0, 0, units, NULL,
     "how often the bits of a step are recorded; 0 for never", "0.1.0"},
    {"eval_batch", TCTL_INT, 0, "250", 1, 1 << 20, 0, 0, NULL, "samples",
     "evaluated at a time: decides memory and speed, not results", "0.1.0"},
};

static const tctl_trainer vtable = {
    .struct_size = sizeof vtable,
    .op_schema_size = sizeof(tctl_op_schema),
    .n_ops = TCTL_NETWORK_OPS,
    .ops = tctl_network_op_table,
    .run = tctl_native_run,
};

static const tctl_extension extensions[] = {{TCTL_TRAINER_ID, &vtable}};

#if defined(TRAINCTL_FREE_ORDER)
#define VERSION "0.1.0-free-order" /* for measurements: nothing is promised */
#define CLAIMS  0
#else
#define VERSION "0.1.0"
#define CLAIMS  (TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS)
#endif

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = CLAIMS,
    .name = "native",
    .version = VERSION,
    .license = "Apache-2.0",
    .summary = "trains the model of the spec on the CPU, bit for bit repeatably",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
