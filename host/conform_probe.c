/* SPDX-License-Identifier: Apache-2.0 */
/* See conform_probe.h: what all probes share. */
#include "host/conform_probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "seed/stream.h"
#include "trainctl/ext/state.h"

/* The most telling first: a stage with hooks that also rewrites the graph is best seen at its hooks. */
static const tctl_probe *const probes[] = {&tctl_probe_source, &tctl_probe_transform, &tctl_probe_optimizer,
                                           &tctl_probe_schedule, &tctl_probe_hooks};

const tctl_probe *tctl_probe_for(const tctl_plugin *plugin)
{
    for (size_t i = 0; i < TCTL_COUNT_OF(probes); i++) {
        if (tctl_plugin_extension(plugin, probes[i]->extension))
            return probes[i];
    }
    return NULL;
}

/* ---- one trial --------------------------------------------------------------------------------------- */

static tctl_status open_stage(tctl_trial *t, tctl_error *err)
{
    const tctl_single_request request = {.plugins = t->request->plugins,
                                         .use = t->request->use,
                                         .folder = t->request->folder,
                                         .set = t->request->set,
                                         .override = t->override,
                                         .seed = TCTL_TRIAL_SEED,
                                         .threads = t->threads,
                                         .fail_allocation = t->fail_allocation};
    t->open = true;
    return tctl_single_open(&request, &t->single, err);
}

static void close_stage(tctl_trial *t)
{
    if (!t->open)
        return;
    tctl_stages_destroy(t->single.stages);
    t->single.stages = NULL;
    if (t->single.services)
        t->memory = tctl_services_memory(t->single.services);
    tctl_single_close(&t->single);
    t->open = false;
}

tctl_status tctl_trial_run(tctl_trial *t, const tctl_probe *probe, tctl_error *err)
{
    tctl_error_clear(err);
    tctl_status status = open_stage(t, err);
    if (!status && probe) {
        t->vtable = tctl_plugin_extension(t->single.use->plugin, probe->extension);
        status = t->vtable ? probe->run(t, err) : TCTL_EINVAL;
    }
    close_stage(t);
    return status;
}

/* ---- saving and loading ------------------------------------------------------------------------------ */

static tctl_status write_state(const tctl_writer *w, const void *data, size_t size, tctl_error *err)
{
    tctl_buf *buf = w->impl;
    tctl_buf_add(buf, data, size);
    return buf->broken ? tctl_fail_memory(err, size) : TCTL_OK;
}

typedef struct cursor {
    const tctl_buf *buf;
    size_t at;
} cursor;

static tctl_status read_state(const tctl_reader *r, void *data, size_t size, tctl_error *err)
{
    cursor *c = r->impl;
    if (size > c->buf->size - c->at)
        return tctl_fail(err, TCTL_EFORMAT, "the state ends %zu bytes too early",
                         size - (c->buf->size - c->at));
    if (size)
        memcpy(data, c->buf->data + c->at, size);
    c->at += size;
    return TCTL_OK;
}

static tctl_status load(tctl_trial *t, const tctl_state *state, const tctl_buf *saved, tctl_error *err)
{
    cursor at = {saved, 0};
    const tctl_reader reader = {&at, read_state};
    tctl_status status = state->load(t->single.use->part.stage, &reader, err);
    if (!status && at.at != saved->size)
        return tctl_fail(err, TCTL_EPLUGIN, "load read %zu of the %zu bytes that save wrote", at.at,
                         saved->size);
    return status;
}

tctl_status tctl_trial_resume(tctl_trial *t, tctl_error *err)
{
    const tctl_state *state = tctl_plugin_extension(t->single.use->part.plugin, TCTL_STATE_ID);
    if (!t->resume || !state)
        return TCTL_OK;
    tctl_buf saved = TCTL_BUF_INIT, again = TCTL_BUF_INIT;
    const tctl_writer writer = {&saved, write_state}, second = {&again, write_state};
    tctl_status status = state->save(t->single.use->part.stage, &writer, err);
    if (!status) {
        close_stage(t);
        status = open_stage(t, err);
    }
    if (!status)
        status = load(t, state, &saved, err);
    if (!status)
        status = state->save(t->single.use->part.stage, &second, err);
    if (!status &&
        (saved.size != again.size || (saved.size && memcmp(saved.data, again.data, saved.size) != 0)))
        status = tctl_fail(err, TCTL_EPLUGIN, "saving again right after loading gives other bytes");
    tctl_buf_release(&saved);
    tctl_buf_release(&again);
    return status;
}

/* ---- many items -------------------------------------------------------------------------------------- */

typedef struct item_run {
    tctl_trial *trial;
    tctl_item_fn *fn;
    void *arg;
    uint32_t first, n;
    tctl_status *statuses; /* [n] of the whole */
    tctl_error *errors;    /* [n] */
} item_run;

static void run_item(void *arg, uint64_t chunk, uint32_t thread)
{
    const item_run *r = arg;
    (void)thread;
    uint32_t place = r->trial->reversed ? r->n - 1 - (uint32_t)chunk : (uint32_t)chunk,
             item = r->first + place;
    tctl_error_clear(&r->errors[item]);
    r->statuses[item] = r->fn(r->trial, item, r->arg, &r->errors[item]);
}

static void run_range(item_run *r, tctl_pool *pool, uint32_t first, uint32_t n)
{
    r->first = first;
    r->n = n;
    tctl_pool_run(pool, n, run_item, r);
}

/* All once more with the same stage; TCTL_EPLUGIN if an item comes out otherwise. */
static tctl_status run_again(item_run *r, tctl_pool *pool, uint32_t n, tctl_error *err)
{
    tctl_trial *t = r->trial;
    tctl_trace_value *before = malloc(n * sizeof *before + 1);
    if (!before)
        return tctl_fail_memory(err, n * sizeof *before);
    memcpy(before, t->digests, n * sizeof *before);
    run_range(r, pool, 0, n);
    tctl_status status = TCTL_OK;
    for (uint32_t i = 0; i < n && !status; i++) {
        if (memcmp(&before[i], &t->digests[i], sizeof before[i]) != 0)
            status = tctl_fail(err, TCTL_EPLUGIN, "%s %u differs the second time", t->unit, i);
    }
    free(before);
    return status;
}

static tctl_status first_failure(const item_run *r, uint32_t n, tctl_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if (r->statuses[i]) {
            *err = r->errors[i];
            return r->statuses[i];
        }
    }
    return TCTL_OK;
}

tctl_status tctl_trial_items(tctl_trial *t, uint32_t n, tctl_item_fn *fn, void *arg, tctl_error *err)
{
    tctl_pool *pool = NULL;
    item_run r = {.trial = t, .fn = fn, .arg = arg};
    r.statuses = calloc(n + 1, sizeof *r.statuses);
    r.errors = calloc(n + 1, sizeof *r.errors);
    tctl_status status = r.statuses && r.errors ? TCTL_OK : tctl_fail_memory(err, n * sizeof *r.errors);
    if (!status)
        status = tctl_pool_create(t->threads ? t->threads : 1, &pool, err);
    if (!status) {
        run_range(&r, pool, 0, n / 2);
        status = tctl_trial_resume(t, err);
    }
    if (!status) {
        run_range(&r, pool, n / 2, n - n / 2);
        status = first_failure(&r, n, err);
    }
    if (!status && t->twice)
        status = run_again(&r, pool, n, err);
    if (!status)
        status = first_failure(&r, n, err);
    tctl_pool_destroy(pool);
    free(r.statuses);
    free(r.errors);
    return status;
}

/* ---- input ------------------------------------------------------------------------------------------- */

void tctl_trial_bytes(const char *stream, uint32_t item, void *out, size_t size)
{
    const tctl_random_address address = tctl_stream(TCTL_TRIAL_SEED, stream, 0, item);
    uint8_t *bytes = out;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)tctl_draw_bits(&address, i);
}

void tctl_trial_floats(const char *stream, uint32_t item, float *out, size_t n)
{
    const tctl_random_address address = tctl_stream(TCTL_TRIAL_SEED, stream, 0, item);
    for (size_t i = 0; i < n; i++)
        out[i] = 2 * tctl_draw_uniform(&address, i) - 1;
}
