/* SPDX-License-Identifier: Apache-2.0 */
/* See services.h: the services that keep everything in memory. services_files.c has the ones that write files. */
#include "host/services.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/size.h"
#include "host/events.h"
#include "host/math.h"
#include "host/model.h"
#include "host/services_private.h"
#include "seed/stream.h"
#include "trainctl/host/math.h"
#include "trainctl/host/random.h"

#define ALIGNMENT   64u
#define PROGRESS_NS 50000000u /* at most 20 progress events a second */
#define STREAM_NAME 512

/* ---- random ------------------------------------------------------------------------------------------ */

static tctl_random_address random_address(const tctl_host *host, const char *name, uint32_t when,
                                          uint64_t index)
{
    const tctl_caller *caller = tctl_caller_of(host);
    char full[STREAM_NAME];
    int n = snprintf(full, sizeof full, "%s%s%s", caller->streams, *caller->streams ? "." : "", name);
    TCTL_BUG_IF(n < 0 || (size_t)n >= sizeof full); /* a cut name could be another stream's */
    return tctl_stream(caller->services->request.seed, full, when, index);
}

static const tctl_random random_service = {
    .struct_size = sizeof(tctl_random),
    .address = random_address,
    .bits = tctl_draw_bits,
    .uniform = tctl_draw_uniform,
    .bounded = tctl_draw_bounded,
    .normal = tctl_draw_normal,
};

/* ---- log -------------------------------------------------------------------------------------------- */

static void TCTL_PRINTF(3, 4) log_message(const tctl_host *host, int32_t level, const char *fmt, ...)
{
    const tctl_caller *caller = tctl_caller_of(host);
    const tctl_services *services = caller->services;
    if (services->request.log_fd < 0 || level < services->request.log_level)
        return;
    tctl_buf line = TCTL_BUF_INIT;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tctl_buf_add_format(&line, "%s%s: %s\n", level >= TCTL_LOG_WARNING ? "warning: " : "", caller->name,
                        text);
    if (tctl_buf_text(&line))
        (void)tctl_write_all(services->request.log_fd, line.data, line.size, "log", NULL);
    tctl_buf_release(&line);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void log_progress(const tctl_host *host, const char *what, uint64_t done, uint64_t total,
                         const char *unit)
{
    tctl_services *services = tctl_caller_of(host)->services;
    if (services->request.events_fd < 0)
        return;
    /* The clock only decides what is drawn. */
    uint64_t now = now_ns(), last = atomic_load_explicit(&services->last_progress, memory_order_relaxed);
    if (done != total && now - last < PROGRESS_NS)
        return;
    if (!atomic_compare_exchange_strong(&services->last_progress, &last, now) && done != total)
        return; /* another thread just drew */
    json_t *event = json_pack("{s:s, s:f, s:f, s:s}", "progress", what, "done", (double)done, "total",
                              (double)total, "unit", unit ? unit : "");
    tctl_buf line = TCTL_BUF_INIT;
    if (event && !tctl_json_canonical(event, &line, NULL) && tctl_buf_text(&line))
        tctl_event_send(services->request.events_fd, tctl_buf_text(&line), done == total);
    tctl_buf_release(&line);
    json_decref(event);
}

static const tctl_log log_service = {
    .struct_size = sizeof(tctl_log), .message = log_message, .progress = log_progress};

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Stands right before each block; as large as the alignment, so that the block is aligned too. */
typedef struct block {
    void *base; /* what free() wants */
    size_t size;
} block;

static void *memory_allocate(const tctl_host *host, size_t size)
{
    tctl_services *s = tctl_caller_of(host)->services;
    size_t room;
    atomic_fetch_add(&s->n_calls, 1);
    uint64_t fail_at = atomic_load(&s->fail_at);
    if (fail_at && atomic_fetch_sub(&s->fail_at, 1) == 1)
        return NULL;
    if (!tctl_add_size(size, (size_t)2 * ALIGNMENT, &room))
        return NULL;
    char *base = calloc(1, room); /* large blocks come zeroed from the kernel, untouched */
    if (!base)
        return NULL;
    char *data = base + 2 * ALIGNMENT - (uintptr_t)base % ALIGNMENT;
    const block head = {base, size};
    memcpy(data - sizeof head, &head, sizeof head);
    uint64_t held = atomic_fetch_add(&s->bytes, size) + size, peak = atomic_load(&s->peak_bytes);
    while (held > peak && !atomic_compare_exchange_weak(&s->peak_bytes, &peak, held))
        continue;
    atomic_fetch_add(&s->n_blocks, 1);
    return data;
}

static void memory_release(const tctl_host *host, void *data)
{
    tctl_services *s = tctl_caller_of(host)->services;
    block head;
    if (!data)
        return;
    memcpy(&head, (char *)data - sizeof head, sizeof head);
    atomic_fetch_sub(&s->bytes, head.size);
    atomic_fetch_sub(&s->n_blocks, 1);
    free(head.base);
}

static const tctl_memory memory_service = {
    .struct_size = sizeof(tctl_memory), .allocate = memory_allocate, .release = memory_release};

tctl_memory_use tctl_services_memory(const tctl_services *s)
{
    return (tctl_memory_use){.bytes = atomic_load(&s->bytes),
                             .peak_bytes = atomic_load(&s->peak_bytes),
                             .n_blocks = atomic_load(&s->n_blocks),
                             .n_calls = atomic_load(&s->n_calls)};
}

void tctl_services_fail_allocation(tctl_services *s, uint64_t number)
{
    atomic_store(&s->fail_at, number);
}

/* ---- parallel and cancel ----------------------------------------------------------------------------- */

static void parallel_run(const tctl_host *host, uint64_t n_chunks,
                         void (*fn)(void *arg, uint64_t chunk, uint32_t thread), void *arg)
{
    tctl_pool *pool = tctl_caller_of(host)->services->request.pool;
    if (pool) {
        tctl_pool_run(pool, n_chunks, fn, arg);
        return;
    }
    for (uint64_t chunk = 0; chunk < n_chunks; chunk++)
        fn(arg, chunk, 0);
}

static int cancel_requested(const tctl_host *host)
{
    const volatile sig_atomic_t *cancel = tctl_caller_of(host)->services->request.cancel;
    return cancel && *cancel != 0;
}

static const tctl_cancel cancel_service = {.struct_size = sizeof(tctl_cancel), .requested = cancel_requested};

/* ---- the whole --------------------------------------------------------------------------------------- */

const void *tctl_services_find(const tctl_host *host, const char *id)
{
    const tctl_services *s = tctl_caller_of(host)->services;
    const struct {
        const char *id;
        const void *table;
    } tables[] = {
        {TCTL_RANDOM_ID, &random_service},
        {TCTL_MATH_ID, tctl_math_service_of()},
        {TCTL_LOG_ID, &log_service},
        {TCTL_MEMORY_ID, &memory_service},
        {TCTL_PARALLEL_ID, &s->parallel},
        {TCTL_CANCEL_ID, &cancel_service},
        {TCTL_MODEL_ID, tctl_model_service_of()},
        {TCTL_ARTIFACT_ID, s->request.out ? &tctl_artifact_service : NULL},
        {TCTL_METRICS_ID, s->request.metrics ? &tctl_metrics_service : NULL},
        {TCTL_TRACE_ID, s->request.trace ? &tctl_trace_service : NULL},
    };
    for (size_t i = 0; i < TCTL_COUNT_OF(tables); i++) {
        if (strcmp(tables[i].id, id) == 0)
            return tables[i].table;
    }
    return NULL;
}

static const char *keep(tctl_services *s, const char *text, bool *lost)
{
    const char *copy = text ? tctl_arena_copy(s->arena, text, strlen(text)) : NULL;
    *lost |= text && !copy;
    return copy;
}

tctl_status tctl_services_create(const tctl_services_request *request, tctl_services **ret, tctl_error *err)
{
    tctl_services *s = calloc(1, sizeof *s);
    if (!s)
        return tctl_fail_memory(err, sizeof *s);
    bool lost = false;
    s->metrics_fd = -1;
    (void)pthread_mutex_init(&s->lock, NULL);
    s->arena = tctl_arena_create();
    if (!s->arena) {
        tctl_services_destroy(s);
        return tctl_fail_memory(err, sizeof *s);
    }
    s->request = *request;
    s->request.out = keep(s, request->out, &lost);
    s->request.partial = keep(s, request->partial, &lost);
    s->request.metrics = keep(s, request->metrics, &lost);
    s->request.trace = keep(s, request->trace, &lost);
    s->request.wish.folder = keep(s, request->wish.folder, &lost);
    s->parallel = (tctl_parallel){.struct_size = sizeof s->parallel,
                                  .n_threads = request->pool ? tctl_pool_threads(request->pool) : 1,
                                  .run = parallel_run};
    if (lost) {
        tctl_services_destroy(s);
        return tctl_fail_memory(err, sizeof *s);
    }
    *ret = s;
    return TCTL_OK;
}

void tctl_services_destroy(tctl_services *s)
{
    if (!s)
        return;
    if (!s->closed)
        (void)tctl_services_close(s, NULL);
    free(s->artifacts);
    tctl_arena_destroy(s->arena);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
