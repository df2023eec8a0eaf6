/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An exponential moving average of the weights, which becomes the saved model when the run ends.
 *
 * After each update that was taken, a <- a + (1 - d) (w - a) for every weight and every batch-norm statistic, with d
 * the decay or, with `warmup`, the smaller (1 + t) / (10 + t) of update t, so that the random start is forgotten
 * early. The averages begin as the initial weights. Elementwise, so threads and order cannot show.
 *
 * Polyak, Juditsky, "Acceleration of Stochastic Approximation by Averaging", SIAM J. Control Optim. 30 (1992); the
 * exponential form and its warm-up as in TensorFlow's ExponentialMovingAverage.
 *
 * State: u32 magic "EMA1", u32 0, u64 updates, u64 number of weights, u64 number of statistics, then both arrays of
 * float; little-endian.
 */
#include <stdlib.h>

#include "trainctl/ext/hooks.h"
#include "trainctl/ext/state.h"
#include "trainctl/host/services.h"

enum { CHUNK = 65536 };
static const uint32_t MAGIC = 0x31414d45; /* "EMA1" */

struct tctl_stage {
    const tctl_host *host;
    const tctl_memory *memory;
    const tctl_parallel *parallel;
    double decay;
    int warmup;
    uint64_t updates, n_weights, n_statistics;
    float *average;     /* [n_weights + n_statistics]; NULL before run_begin */
    tctl_training *run; /* of the step under way */
    float rate;
};

static void average_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    const tctl_stage *s = arg;
    uint64_t weight_chunks = (s->n_weights + CHUNK - 1) / CHUNK;
    int statistics = chunk >= weight_chunks;
    uint64_t from = (statistics ? chunk - weight_chunks : chunk) * CHUNK;
    uint64_t left = (statistics ? s->n_statistics : s->n_weights) - from, n = left < CHUNK ? left : CHUNK;
    float *restrict a = s->average + (statistics ? s->n_weights : 0) + from;
    const float *restrict w = (statistics ? s->run->buffer : s->run->param) + from;
    for (uint64_t i = 0; i < n; i++)
        a[i] = a[i] + s->rate * (w[i] - a[i]);
}

static tctl_status step_done(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)err;
    if (t->action != TCTL_STEP_TAKE)
        return TCTL_OK;
    s->updates++;
    double early = (1 + (double)s->updates) / (10 + (double)s->updates);
    double decay = s->warmup && early < s->decay ? early : s->decay;
    s->rate = (float)(1 - decay);
    s->run = t;
    uint64_t chunks = (s->n_weights + CHUNK - 1) / CHUNK + (s->n_statistics + CHUNK - 1) / CHUNK;
    s->parallel->run(s->host, chunks, average_chunk, s);
    return TCTL_OK;
}

static tctl_status make_room(tctl_stage *s, uint64_t n_weights, uint64_t n_statistics, tctl_error *err)
{
    const uint64_t limit = SIZE_MAX / sizeof(float) / 4;
    float *average =
        n_weights < limit && n_statistics < limit
            ? s->memory->allocate(s->host, (size_t)(n_weights + n_statistics) * sizeof(float) + 1)
            : NULL;
    if (!average)
        return s->host->fail(err, TCTL_ENOMEM, "out of memory for the averages of %llu weights",
                             (unsigned long long)n_weights);
    s->memory->release(s->host, s->average);
    s->average = average;
    s->n_weights = n_weights;
    s->n_statistics = n_statistics;
    return TCTL_OK;
}

/* Averages that were loaded stay; they must be of this model. */
static tctl_status run_begin(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    if (s->average) {
        if (s->n_weights == t->n_elements && s->n_statistics == t->n_buffer_elements)
            return TCTL_OK;
        return s->host->fail(
            err, TCTL_EFORMAT,
            "the saved averages are of %llu weights and %llu statistics, the model has %llu and %llu",
            (unsigned long long)s->n_weights, (unsigned long long)s->n_statistics,
            (unsigned long long)t->n_elements, (unsigned long long)t->n_buffer_elements);
    }
    tctl_status st = make_room(s, t->n_elements, t->n_buffer_elements, err);
    if (st)
        return st;
    memcpy(s->average, t->param, (size_t)t->n_elements * sizeof(float));
    if (t->n_buffer_elements)
        memcpy(s->average + t->n_elements, t->buffer, (size_t)t->n_buffer_elements * sizeof(float));
    return TCTL_OK;
}

static tctl_status run_end(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)err;
    memcpy(t->param, s->average, (size_t)s->n_weights * sizeof(float));
    if (s->n_statistics)
        memcpy(t->buffer, s->average + s->n_weights, (size_t)s->n_statistics * sizeof(float));
    return TCTL_OK;
}

/* ---- state ------------------------------------------------------------------------------------------- */

static void put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

enum { HEAD = 32, BLOCK = 1024 };

static tctl_status save(tctl_stage *s, const tctl_writer *w, tctl_error *err)
{
    unsigned char head[HEAD] = {0}, block[BLOCK * 4];
    put(head, MAGIC, 4);
    put(head + 8, s->updates, 8);
    put(head + 16, s->average ? s->n_weights : 0, 8);
    put(head + 24, s->average ? s->n_statistics : 0, 8);
    tctl_status st = w->write(w, head, sizeof head, err);
    uint64_t n = s->average ? s->n_weights + s->n_statistics : 0;
    for (uint64_t at = 0; !st && at < n; at += BLOCK) {
        uint64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (uint64_t i = 0; i < m; i++) {
            uint32_t bits;
            memcpy(&bits, &s->average[at + i], sizeof bits);
            put(block + 4 * i, bits, 4);
        }
        st = w->write(w, block, (size_t)m * 4, err);
    }
    return st;
}

static tctl_status load(tctl_stage *s, const tctl_reader *r, tctl_error *err)
{
    unsigned char head[HEAD], block[BLOCK * 4];
    tctl_status st = r->read(r, head, sizeof head, err);
    if (st)
        return st;
    if (get(head, 4) != MAGIC || get(head + 4, 4) != 0)
        return s->host->fail(err, TCTL_EFORMAT, "the saved state is not one of 'ema': wrong magic");
    uint64_t n_weights = get(head + 16, 8), n_statistics = get(head + 24, 8), n = n_weights + n_statistics;
    if (n_weights == 0 && (n_statistics || get(head + 8, 8)))
        return s->host->fail(err, TCTL_EFORMAT,
                             "the saved state of 'ema' has statistics or updates of no weights");
    if (n_weights == 0) { /* saved before the run began: the averages begin as the weights */
        s->memory->release(s->host, s->average);
        s->average = NULL;
        s->updates = 0;
        return TCTL_OK;
    }
    st = make_room(s, n_weights, n_statistics, err);
    for (uint64_t at = 0; !st && at < n; at += BLOCK) {
        uint64_t m = n - at < BLOCK ? n - at : BLOCK;
        st = r->read(r, block, (size_t)m * 4, err);
        for (uint64_t i = 0; !st && i < m; i++) {
            uint32_t bits = (uint32_t)get(block + 4 * i, 4);
            memcpy(&s->average[at + i], &bits, sizeof bits);
        }
    }
    s->updates = get(head + 8, 8);
    return st;
}

/* ---- the plugin -------------------------------------------------------------------------------------- */

static void destroy(tctl_stage *s)
{
    if (!s)
        return;
    s->memory->release(s->host, s->average);
    free(s);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    const tctl_parallel *parallel = host->service(host, TCTL_PARALLEL_ID);
    if (!memory || !parallel)
        return host->fail(err, TCTL_EUNSUPPORTED, "this host has no service '%s'",
                          memory ? TCTL_PARALLEL_ID : TCTL_MEMORY_ID);
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->host = host;
    s->memory = memory;
    s->parallel = parallel;
    s->decay = host->cfg_real(config, "decay");
    s->warmup = host->cfg_bool(config, "warmup");
    *ret = s;
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"decay", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.999", 0, 0, 0, 0.9999999, NULL, NULL,
     "share of the average that an update keeps", "0.1.0"},
    {"warmup", TCTL_BOOL, TCTL_OPT_SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL, "forget faster in the beginning",
     "0.1.0"},
};

static const tctl_hooks hooks = {
    .struct_size = sizeof hooks, .run_begin = run_begin, .step_done = step_done, .run_end = run_end};

static const tctl_state state = {.struct_size = sizeof state, .save = save, .load = load};

static const tctl_extension extensions[] = {{TCTL_HOOKS_ID, &hooks}, {TCTL_STATE_ID, &state}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME,
    .flags = TCTL_PLUGIN_REMEMBERS,
    .name = "ema",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "saves an exponential moving average of the weights",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
