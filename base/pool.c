/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pool.h. A job is announced by raising `generation`; threads take chunks from an atomic counter. Waiting
 * threads spin for a short while before they sleep, because a training step announces many small jobs.
 */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_THREADS = 1024, SPINS = 2000 };

typedef struct worker {
    tctl_pool *pool;
    pthread_t thread;
    uint32_t index;
} worker;

struct tctl_pool {
    uint32_t n_threads, n_started, spins;
    worker *workers; /* [n_threads - 1] */
    pthread_mutex_t mutex;
    pthread_cond_t work, done;
    atomic_uint_fast64_t generation, next;
    atomic_uint running; /* workers that have not finished the current job */
    uint64_t n_chunks;
    tctl_chunk_fn *fn;
    void *arg;
    bool stop, busy;
};

static void take_chunks(tctl_pool *pool, uint32_t thread)
{
    for (;;) {
        uint64_t chunk = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (chunk >= pool->n_chunks)
            return;
        pool->fn(pool->arg, chunk, thread);
    }
}

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Waits for a generation after `seen`; returns it. */
static uint64_t await_work(tctl_pool *pool, uint64_t seen)
{
    for (uint32_t i = 0; i < pool->spins; i++) {
        uint64_t now = atomic_load_explicit(&pool->generation, memory_order_acquire);
        if (now != seen)
            return now;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    uint64_t now;
    while ((now = atomic_load_explicit(&pool->generation, memory_order_acquire)) == seen)
        pthread_cond_wait(&pool->work, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    return now;
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    tctl_pool *pool = self->pool;
    uint64_t seen = 0;
    for (;;) {
        seen = await_work(pool, seen);
        if (pool->stop)
            return NULL;
        take_chunks(pool, self->index);
        if (atomic_fetch_sub_explicit(&pool->running, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

static void announce(tctl_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    atomic_store_explicit(&pool->running, pool->n_started, memory_order_relaxed);
    atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

static void await_done(tctl_pool *pool)
{
    for (uint32_t i = 0; i < pool->spins; i++) {
        if (atomic_load_explicit(&pool->running, memory_order_acquire) == 0)
            return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load_explicit(&pool->running, memory_order_acquire) != 0)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

void tctl_pool_run(tctl_pool *pool, uint64_t n_chunks, tctl_chunk_fn *fn, void *arg)
{
    TCTL_BUG_IF(pool->busy);
    pool->busy = true;
    if (pool->n_started == 0 || n_chunks < 2) {
        for (uint64_t i = 0; i < n_chunks; i++)
            fn(arg, i, 0);
        pool->busy = false;
        return;
    }
    pool->n_chunks = n_chunks;
    pool->fn = fn;
    pool->arg = arg;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    announce(pool);
    take_chunks(pool, 0);
    await_done(pool);
    pool->busy = false;
}

uint32_t tctl_pool_threads(const tctl_pool *pool)
{
    return pool->n_threads;
}

void tctl_pool_destroy(tctl_pool *pool)
{
    if (!pool)
        return;
    pool->stop = true;
    announce(pool);
    for (uint32_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

static int start_worker(tctl_pool *pool)
{
    worker *w = &pool->workers[pool->n_started];
    w->pool = pool;
    w->index = pool->n_started + 1;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int error = pthread_create(&w->thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error == 0)
        pool->n_started++;
    return error;
}

tctl_status tctl_pool_create(uint32_t n_threads, tctl_pool **ret, tctl_error *err)
{
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return tctl_fail(err, TCTL_EINVAL, "%u threads asked for; 1 to %d are possible", n_threads,
                         MAX_THREADS);
    tctl_pool *pool = calloc(1, sizeof *pool);
    worker *workers = calloc(n_threads, sizeof *workers);
    if (!pool || !workers) {
        free(pool);
        free(workers);
        return tctl_fail_memory(err, sizeof *pool + n_threads * sizeof *workers);
    }
    pool->workers = workers;
    pool->n_threads = n_threads;
    /* With more threads than processors, spinning takes the time from those that work. */
    pool->spins = n_threads <= tctl_cpus_available() ? SPINS : 0;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    while (pool->n_started + 1 < n_threads) {
        int error = start_worker(pool);
        if (error != 0) {
            tctl_status status = tctl_fail_errno(err, error, "cannot start thread %u", pool->n_started + 2);
            tctl_pool_destroy(pool);
            return status;
        }
    }
    *ret = pool;
    return TCTL_OK;
}

uint32_t tctl_cpus_available(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (uint32_t)n : 1;
}
