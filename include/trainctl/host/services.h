/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small services of the host, one struct each, found with `host->service(host, ID)`.
 *
 * Every struct starts with its size. A service that this host lacks is NULL; the ones here are always
 * there inside a training worker. All functions are [any] unless tagged.
 *
 * A function that does something takes the `tctl_host` that the stage was created with as its first argument:
 * every stage has its own, and by it the host knows who calls (the name in a log line, the stage's random
 * streams) without a global. Pure functions and those with a handle of their own do not.
 */
#ifndef TRAINCTL_HOST_SERVICES_H
#define TRAINCTL_HOST_SERVICES_H

#include <stddef.h>
#include <stdint.h>

#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- log: words for the person who watches; never part of a result -------------------------------- */

#define TCTL_LOG_ID "trainctl.log/1"

enum { TCTL_LOG_DEBUG = 0, TCTL_LOG_INFO = 1, TCTL_LOG_WARNING = 2 };

typedef struct tctl_log {
    uint32_t struct_size, reserved;
    void (*message)(const tctl_host *, int32_t level, const char *fmt, ...) TCTL_PRINTF(3, 4);
    /* `done` of `total` units ("steps", "images"); the host draws it, or not. Cheap: call it freely. */
    void (*progress)(const tctl_host *, const char *what, uint64_t done, uint64_t total, const char *unit);
} tctl_log;

/* ---- memory ------------------------------------------------------------------------------------------ */

#define TCTL_MEMORY_ID "trainctl.memory/1"

typedef struct tctl_memory {
    uint32_t struct_size, reserved;
    /* `size_bytes` zeroed bytes aligned to 64, or NULL. The conformance suite makes each call fail once. */
    void *(*allocate)(const tctl_host *, size_t size_bytes);
    void (*release)(const tctl_host *, void *); /* NULL is fine */
} tctl_memory;

/* ---- parallel: work cut into fixed chunks ------------------------------------------------------------ */

#define TCTL_PARALLEL_ID "trainctl.parallel/1"

typedef struct tctl_parallel {
    uint32_t struct_size;
    uint32_t n_threads; /* for sizing scratch only: a result that depends on it is a bug */
    /* Calls fn(arg, chunk, thread) for every chunk in 0..n_chunks-1, in any order, on any thread, and
     * returns when all are done. `thread` is in 0..n_threads-1 and unique among running calls. [step] */
    void (*run)(const tctl_host *, uint64_t n_chunks, void (*fn)(void *arg, uint64_t chunk, uint32_t thread),
                void *arg);
} tctl_parallel;

/* ---- artifacts: files that the run leaves ------------------------------------------------------------ */

#define TCTL_ARTIFACT_ID "trainctl.artifact/1"

typedef struct tctl_artifact tctl_artifact;

typedef struct tctl_artifacts {
    uint32_t struct_size, reserved;
    /* Begins the file `name` (relative, no "..") in the run's output folder. Nothing is visible there before
     * `commit`. TCTL_EINVAL for a bad name, TCTL_EIO, TCTL_ENOSPC. [main] [step] */
    tctl_status (*begin)(const tctl_host *, const char *name, tctl_artifact **ret, tctl_error *);
    tctl_status (*write)(tctl_artifact *, const void *data, size_t size_bytes, tctl_error *);
    /* Makes it visible and durable (fsync, rename); frees the handle, also on failure. */
    tctl_status (*commit)(tctl_artifact *, tctl_error *);
    void (*abandon)(tctl_artifact *); /* NULL is fine */
} tctl_artifacts;

/* ---- metrics: numbers over time, appended to metrics.jsonl ------------------------------------------- */

#define TCTL_METRICS_ID "trainctl.metrics/1"

typedef struct tctl_metric {
    const char *name; /* "train_loss" */
    double value;
} tctl_metric;

typedef struct tctl_metrics {
    uint32_t struct_size, reserved;
    /* One line: the values belong to the end of `epoch` (1-based) and to `step` (steps done so far). `values`
     * must be results (repeat bit for bit); `timings` (times, rates, memory) are shown and logged, and compared by
     * nobody. */
    tctl_status (*emit)(const tctl_host *, uint64_t epoch, uint64_t step, const tctl_metric *values,
                        uint32_t n_values, const tctl_metric *timings, uint32_t n_timings, tctl_error *);
} tctl_metrics;

/* ---- trace: the bits of every step ------------------------------------------------------------------- */

#define TCTL_TRACE_ID "trainctl.trace/1"

/* What a trace field holds. */
enum {
    TCTL_TRACE_DIGEST = 1, /* a 128-bit digest of bytes */
    TCTL_TRACE_F32 = 2     /* the 32 bits of a float, in `lo`; `hi` is 0 */
};

typedef struct tctl_trace_field {
    const char *name; /* "loss", "gradient/conv1.weight": stage, then tensor */
    int32_t kind;
    int32_t reserved;
} tctl_trace_field;

typedef struct tctl_trace_value {
    uint64_t lo, hi;
} tctl_trace_value;

/* What `wanted` may ask for. */
enum {
    TCTL_TRACE_WANT_RECORD = 1 << 0,  /* a record of this step, also if none is due */
    TCTL_TRACE_WANT_TENSORS = 1 << 1, /* every field's tensor */
    TCTL_TRACE_WANT_END = 1 << 2      /* the run ends well behind this step's record, without outputs */
};

typedef struct tctl_trace {
    uint32_t struct_size, reserved;
    /* Once per run: the fields of every record, in the order in which a step computes them. The first
     * differing field of the first differing record is what `verify` names. [main] [step] */
    tctl_status (*begin)(const tctl_host *, const tctl_trace_field *fields, uint32_t n_fields, tctl_error *);
    /* One record. `step` counts from 1 and must grow. [step] */
    tctl_status (*record)(const tctl_host *, uint64_t step, const tctl_trace_value *values, tctl_error *);
    /* XXH3 128-bit of the bytes, seed 0. */
    tctl_trace_value (*digest)(const void *data, size_t size_bytes);
    /* What somebody who looks for a difference wants of this step, TCTL_TRACE_WANT_…; 0 in a plain run. Of step 0: whether
     * anything will be wanted at all. A host may lack it: look at struct_size. [step] */
    int32_t (*wanted)(const tctl_host *, uint64_t step);
    /* Writes a field's tensor as it is at the record of `step`, for TCTL_TRACE_WANT_TENSORS. [step] */
    tctl_status (*tensor)(const tctl_host *, uint64_t step, const char *field, const tctl_tensor *,
                          tctl_error *);
} tctl_trace;

/* ---- cancel ------------------------------------------------------------------------------------------ */

#define TCTL_CANCEL_ID "trainctl.cancel/1"

typedef struct tctl_cancel {
    uint32_t struct_size, reserved;
    /* 1 once somebody asked to stop. Ask in every loop that can last a second; return TCTL_ECANCELED. */
    int (*requested)(const tctl_host *);
} tctl_cancel;

#ifdef __cplusplus
}
#endif

#endif
