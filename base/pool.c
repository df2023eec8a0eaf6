/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pool.h. One atomic word says which job is open and how many workers are in it: a worker joins a job by a
 * compare-and-swap, takes chunks from an atomic counter until there are none, and leaves. The caller closes the job
 * when no chunk is left and waits for those that are in it; one that is still asleep is not waited for. Waiting threads
 * spin for a short while before they sleep, because a training step announces many small jobs.
 *
 * No wake-up is lost: who goes to sleep counts itself in first and looks at the word then; who changes the word looks
 * for sleepers then. Both orders are sequentially consistent, so one of the two sees the other.
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
    atomic_uint_fast64_t job;  /* its number * GENERATION + workers in it * ONE + OPEN */
    atomic_uint_fast64_t next; /* chunk */
    atomic_uint sleepers;      /* workers that wait for `work` */
    atomic_bool awaited;       /* the caller waits for `done` */
    uint64_t n_chunks;
    tctl_chunk_fn *fn;
    void *arg;
    uint32_t begun; /* workers that run; under the mutex */
    bool stop, busy;
};

enum { OPEN = 1, ONE = 2, GENERATION = 1 << 16, INSIDE = GENERATION - ONE };

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

/* Joins an open job other than number *seen, and writes its number there. */
static bool join(tctl_pool *pool, uint64_t *seen)
{
    uint_fast64_t job = atomic_load(&pool->job);
    while ((job & OPEN) && job / GENERATION != *seen) {
        if (atomic_compare_exchange_weak(&pool->job, &job, job + ONE)) {
            *seen = job / GENERATION;
            return true;
        }
    }
    return false;
}

static void await_work(tctl_pool *pool, uint64_t *seen)
{
    for (uint32_t i = 0; i < pool->spins; i++) {
        if (join(pool, seen))
            return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!join(pool, seen))
        pthread_cond_wait(&pool->work, &pool->mutex);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void leave(tctl_pool *pool)
{
    uint_fast64_t before = atomic_fetch_sub(&pool->job, ONE);
    if ((before & INSIDE) != ONE || !atomic_load(&pool->awaited))
        return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    tctl_pool *pool = self->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->mutex);
    pool->begun++;
    pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->mutex);
    for (;;) {
        await_work(pool, &seen);
        if (pool->stop)
            return NULL;
        take_chunks(pool, self->index);
        leave(pool);
    }
}

/* Opens a job for `helpers` workers and more. */
static void announce(tctl_pool *pool, uint64_t helpers)
{
    uint_fast64_t number = atomic_load_explicit(&pool->job, memory_order_relaxed) / GENERATION + 1;
    atomic_store(&pool->job, number * GENERATION + OPEN);
    uint32_t asleep = atomic_load(&pool->sleepers);
    if (asleep == 0)
        return;
    pthread_mutex_lock(&pool->mutex);
    if (helpers >= asleep)
        pthread_cond_broadcast(&pool->work);
    for (uint64_t i = 0; helpers < asleep && i < helpers; i++)
        pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

/* Closes the job and waits for those that are in it. */
static void await_done(tctl_pool *pool)
{
    atomic_fetch_and(&pool->job, ~(uint_fast64_t)OPEN);
    for (uint32_t i = 0; i < pool->spins; i++) {
        if ((atomic_load_explicit(&pool->job, memory_order_acquire) & INSIDE) == 0)
            return;
        pause_cpu();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->awaited, true);
    while (atomic_load(&pool->job) & INSIDE)
        pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->awaited, false);
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
    announce(pool, n_chunks - 1);
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
    announce(pool, pool->n_started);
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

/* What a thread asks of the system at its start is not to fall into the first run. */
static void await_begun(tctl_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    while (pool->begun < pool->n_started)
        pthread_cond_wait(&pool->done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
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
    await_begun(pool);
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
