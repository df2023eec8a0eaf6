/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h: the services. What they record is printed, and never a time or an address. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bench/bits_network/host.h"
#include "host/math.h"
#include "seed/stream.h"
#include "trainctl/host/math.h"
#include "trainctl/host/random.h"

/* ---- random, memory, parallel -------------------------------------------------------------------------- */

static tctl_random_address random_address(const tctl_host *host, const char *name, uint32_t when,
                                          uint64_t index)
{
    const bits_stage *stage = bits_stage_of(host);
    char full[128];
    const int n = snprintf(full, sizeof full, "%s%s%s", stage->streams, *stage->streams ? "." : "", name);
    TCTL_BUG_IF(n < 0 || (size_t)n >= sizeof full);
    return tctl_stream(stage->session->seed, full, when, index);
}

static const tctl_random random_service = {.struct_size = sizeof random_service,
                                           .address = random_address,
                                           .bits = tctl_draw_bits,
                                           .uniform = tctl_draw_uniform,
                                           .bounded = tctl_draw_bounded,
                                           .normal = tctl_draw_normal};

static void *memory_allocate(const tctl_host *host, size_t size)
{
    (void)host;
    void *data = size < SIZE_MAX / 2 ? aligned_alloc(64, (size + 64) / 64 * 64) : NULL;
    return data ? memset(data, 0, size) : NULL;
}

static void memory_release(const tctl_host *host, void *data)
{
    (void)host;
    free(data);
}

static const tctl_memory memory_service = {
    .struct_size = sizeof memory_service, .allocate = memory_allocate, .release = memory_release};

static void parallel_run(const tctl_host *host, uint64_t n_chunks, tctl_chunk_fn *fn, void *arg)
{
    tctl_pool_run(bits_stage_of(host)->session->pool, n_chunks, fn, arg);
}

/* ---- trace and metrics --------------------------------------------------------------------------------- */

static tctl_status trace_begin(const tctl_host *host, const tctl_trace_field *fields, uint32_t n,
                               tctl_error *err)
{
    bits_session *s = bits_stage_of(host)->session;
    tctl_trace_field *copy = tctl_arena_take_array(s->arena, n, sizeof *copy);
    for (uint32_t i = 0; copy && i < n; i++) {
        copy[i] = fields[i];
        copy[i].name = tctl_arena_copy(s->arena, fields[i].name, strlen(fields[i].name));
        if (!copy[i].name)
            copy = NULL;
    }
    if (!copy)
        return tctl_fail_memory(err, n * sizeof *fields);
    s->fields = copy;
    s->n_fields = n;
    return TCTL_OK;
}

static tctl_status trace_record(const tctl_host *host, uint64_t step, const tctl_trace_value *values,
                                tctl_error *err)
{
    (void)err;
    const bits_session *s = bits_stage_of(host)->session;
    for (uint32_t i = 0; i < s->n_fields; i++)
        printf("%s step %" PRIu64 " %s %016" PRIx64 "%016" PRIx64 "\n", s->recipe, step, s->fields[i].name,
               values[i].hi, values[i].lo);
    return TCTL_OK;
}

static const tctl_trace trace_service = {.struct_size = offsetof(tctl_trace, wanted),
                                         .begin = trace_begin,
                                         .record = trace_record,
                                         .digest = bits_digest};

static tctl_status metrics_emit(const tctl_host *host, uint64_t epoch, uint64_t step,
                                const tctl_metric *values, uint32_t n_values, const tctl_metric *timings,
                                uint32_t n_timings, tctl_error *err)
{
    (void)step;
    (void)timings;
    (void)n_timings;
    (void)err;
    for (uint32_t i = 0; i < n_values; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i].value, sizeof bits);
        printf("%s epoch %" PRIu64 " %s %016" PRIx64 "\n", bits_stage_of(host)->session->recipe, epoch,
               values[i].name, bits);
    }
    return TCTL_OK;
}

static const tctl_metrics metrics_service = {.struct_size = sizeof metrics_service, .emit = metrics_emit};

/* ---- artifacts ----------------------------------------------------------------------------------------- */

struct tctl_artifact {
    const bits_session *session;
    char name[64];
    tctl_buf content;
};

static void artifact_abandon(tctl_artifact *file)
{
    if (file)
        tctl_buf_release(&file->content);
    free(file);
}

static tctl_status artifact_begin(const tctl_host *host, const char *name, tctl_artifact **ret,
                                  tctl_error *err)
{
    tctl_artifact *file = calloc(1, sizeof *file);
    if (!file)
        return tctl_fail_memory(err, sizeof *file);
    file->session = bits_stage_of(host)->session;
    file->content = (tctl_buf)TCTL_BUF_INIT;
    snprintf(file->name, sizeof file->name, "%s", name);
    *ret = file;
    return TCTL_OK;
}

static tctl_status artifact_write(tctl_artifact *file, const void *data, size_t size, tctl_error *err)
{
    tctl_buf_add(&file->content, data, size);
    return file->content.broken ? tctl_fail_memory(err, size) : TCTL_OK;
}

static tctl_status artifact_commit(tctl_artifact *file, tctl_error *err)
{
    (void)err;
    const tctl_trace_value digest = bits_digest(file->content.data, file->content.size);
    printf("%s file %s %016" PRIx64 "%016" PRIx64 "\n", file->session->recipe, file->name, digest.hi,
           digest.lo);
    artifact_abandon(file);
    return TCTL_OK;
}

static const tctl_artifacts artifact_service = {.struct_size = sizeof artifact_service,
                                                .begin = artifact_begin,
                                                .write = artifact_write,
                                                .commit = artifact_commit,
                                                .abandon = artifact_abandon};

/* ---- the whole ----------------------------------------------------------------------------------------- */

const void *bits_service(const tctl_host *host, const char *id)
{
    bits_session *s = bits_stage_of(host)->session;
    s->parallel = (tctl_parallel){
        .struct_size = sizeof s->parallel, .n_threads = tctl_pool_threads(s->pool), .run = parallel_run};
    const struct {
        const char *id;
        const void *table;
    } tables[] = {
        {TCTL_RANDOM_ID, &random_service},     {TCTL_MATH_ID, tctl_math_service_of()},
        {TCTL_MEMORY_ID, &memory_service},     {TCTL_PARALLEL_ID, &s->parallel},
        {TCTL_TRACE_ID, &trace_service},       {TCTL_METRICS_ID, &metrics_service},
        {TCTL_ARTIFACT_ID, &artifact_service},
    };
    for (size_t i = 0; i < TCTL_COUNT_OF(tables); i++) {
        if (strcmp(tables[i].id, id) == 0)
            return tables[i].table;
    }
    return NULL;
}
