/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread pool for work cut into chunks.
 *
 * The number of threads and which of them takes a chunk never show in a result: a chunk writes only what is
 * its own.
 *
 * A run with one thread is a loop: no atomic operation, no lock, no system call. With more, the calling thread and
 * workers that are awake meet by atomic operations only. A thread that finds nothing to do spins for a short while
 * (not if there are more threads than processors) and then sleeps in a condition variable; so the locks and the system
 * calls of a run are a mutex and the futex behind it, when
 *   - a worker has had nothing to do for so long that it goes to sleep,
 *   - a run is announced and workers are asleep: they are woken, and not waited for if the chunks are done before,
 *   - the caller has done all that is left and waits longer for a worker's last chunk.
 */
#ifndef TCTL_BASE_POOL_H
#define TCTL_BASE_POOL_H

#include <stdint.h>

#include "base/error.h"

typedef struct tctl_pool tctl_pool;

/* The caller's thread is one of the n_threads (1..1024). Workers block all signals. */
tctl_status tctl_pool_create(uint32_t n_threads, tctl_pool **ret, tctl_error *err);
void tctl_pool_destroy(tctl_pool *); /* NULL is fine */
uint32_t tctl_pool_threads(const tctl_pool *);

/* Calls fn(arg, chunk, thread) for chunk = 0..n_chunks-1, each once, any order, on any thread; returns when all
 * are done. `thread` is in 0..n_threads-1 and unique among running calls (for scratch memory). One `run` at a
 * time per pool; a `run` from inside fn is a bug. Allocates nothing. */
typedef void tctl_chunk_fn(void *arg, uint64_t chunk, uint32_t thread);
void tctl_pool_run(tctl_pool *, uint64_t n_chunks, tctl_chunk_fn *fn, void *arg);

/* Processors that this process may run on (its affinity), at least 1. */
uint32_t tctl_cpus_available(void);

#endif
