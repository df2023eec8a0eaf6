/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: every chunk once, whatever the number of threads; limits; nesting. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/pool.h"

enum { MAX_CHUNKS = 5000 };

typedef struct record {
    atomic_uint calls[MAX_CHUNKS];
    atomic_uint in_use[16]; /* by thread index */
    atomic_bool bad_thread, unblocked;
    uint32_t n_threads;
} record;

static void record_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    record *r = arg;
    if (thread >= r->n_threads || atomic_fetch_add(&r->in_use[thread], 1) != 0)
        atomic_store(&r->bad_thread, true);
    atomic_fetch_add(&r->calls[chunk], 1);
    if (chunk % 64 == 0)
        sched_yield();
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (thread > 0 && !sigismember(&set, SIGTERM))
        atomic_store(&r->unblocked, true);
    if (thread < r->n_threads)
        atomic_fetch_sub(&r->in_use[thread], 1);
}

static void every_chunk_is_called_once(void **state)
{
    (void)state;
    static const uint32_t threads[] = {1, 2, 3, 5, 16};
    static const uint64_t chunks[] = {0, 1, 2, 3, 7, 100, MAX_CHUNKS};
    static record r;
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(threads[t], &pool, NULL), TCTL_OK);
        assert_int_equal(tctl_pool_threads(pool), threads[t]);
        for (size_t c = 0; c < sizeof chunks / sizeof chunks[0]; c++) {
            memset(&r, 0, sizeof r);
            r.n_threads = threads[t];
            tctl_pool_run(pool, chunks[c], record_chunk, &r);
            for (uint64_t i = 0; i < MAX_CHUNKS; i++)
                assert_int_equal(r.calls[i], i < chunks[c]);
            assert_false(r.bad_thread);
            assert_false(r.unblocked);
        }
        tctl_pool_destroy(pool);
    }
}

static void add_chunk(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)thread;
    uint64_t *sums = arg;
    sums[chunk] += chunk + 1;
}

/* As in a training step: thousands of small jobs one after the other; what one wrote the next one sees. */
static void many_small_jobs_follow_each_other(void **state)
{
    (void)state;
    tctl_pool *pool = NULL;
    assert_int_equal(tctl_pool_create(3, &pool, NULL), TCTL_OK);
    uint64_t sums[4] = {0};
    for (int i = 0; i < 20000; i++)
        tctl_pool_run(pool, 4, add_chunk, sums);
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(sums[i], 20000 * (i + 1));
    tctl_pool_destroy(pool);
}

static void a_pool_that_never_ran_can_be_destroyed(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(4, &pool, NULL), TCTL_OK);
        tctl_pool_destroy(pool);
    }
    tctl_pool_destroy(NULL);
}

static void impossible_numbers_of_threads_are_refused(void **state)
{
    (void)state;
    static const uint32_t bad[] = {0, 1025, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        tctl_pool *pool = NULL;
        tctl_error err = {0};
        assert_int_equal(tctl_pool_create(bad[i], &pool, &err), TCTL_EINVAL);
        assert_non_null(strstr(err.message, "1 to 1024 are possible"));
        assert_null(pool);
    }
}

static void nest(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)chunk;
    (void)thread;
    uint64_t sums[2] = {0};
    tctl_pool_run(arg, 2, add_chunk, sums);
}

/* A bug that showed only with several threads would be found late: it shows always. */
static void a_run_inside_a_run_is_a_bug_for_any_number_of_threads(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 2; threads++) {
        for (uint64_t chunks = 1; chunks <= 2; chunks++) {
            pid_t pid = fork();
            assert_true(pid >= 0);
            if (pid == 0) {
                close(STDERR_FILENO);
                signal(SIGABRT, SIG_DFL);
                tctl_pool *pool = NULL;
                if (tctl_pool_create(threads, &pool, NULL) == TCTL_OK)
                    tctl_pool_run(pool, chunks, nest, pool);
                _exit(0);
            }
            int status = 0;
            assert_int_equal(waitpid(pid, &status, 0), pid);
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        }
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#ifndef SANITIZED /* the sanitizers' own memory does not fit into the limit */
/* Where threads can't be had, the ones that were started end again. */
static void threads_that_cannot_start_are_an_error(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        /* A thousand stacks of 64 MB do not fit into 2 GB. */
        struct rlimit stack = {64 << 20, 64 << 20}, space = {(rlim_t)2 << 30, (rlim_t)2 << 30};
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 64 << 20);
        if (pthread_setattr_default_np(&attributes) != 0 || setrlimit(RLIMIT_STACK, &stack) != 0 ||
            setrlimit(RLIMIT_AS, &space) != 0)
            _exit(2);
        tctl_pool *pool = NULL;
        tctl_error err = {0};
        tctl_status status = tctl_pool_create(1000, &pool, &err);
        _exit(status != TCTL_OK && pool == NULL && strstr(err.message, "cannot start thread") ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}
#endif

static void the_affinity_is_what_counts(void **state)
{
    (void)state;
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    assert_int_equal(tctl_cpus_available(), CPU_COUNT(&old));
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &old))
            CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(tctl_cpus_available(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
}

static void count_up(void *arg, uint64_t chunk, uint32_t thread)
{
    (void)chunk;
    (void)thread;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

/* Workers sleep by then, and some of them wake up when the job is over; the next one may be open already. */
static void no_wake_up_is_lost_after_a_pause(void **state)
{
    (void)state;
    for (uint32_t threads = 2; threads <= 7; threads += 5) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(threads, &pool, NULL), TCTL_OK);
        for (unsigned i = 0; i < 300; i++) {
            atomic_uint done = 0;
            if (i % 3 == 0)
                usleep(300);
            tctl_pool_run(pool, 2 + i % 9, count_up, &done);
            assert_int_equal(atomic_load(&done), 2 + i % 9);
        }
        tctl_pool_destroy(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_is_called_once),
        cmocka_unit_test(many_small_jobs_follow_each_other),
        cmocka_unit_test(a_pool_that_never_ran_can_be_destroyed),
        cmocka_unit_test(impossible_numbers_of_threads_are_refused),
        cmocka_unit_test(a_run_inside_a_run_is_a_bug_for_any_number_of_threads),
#ifndef SANITIZED
        cmocka_unit_test(threads_that_cannot_start_are_an_error),
#endif
        cmocka_unit_test(no_wake_up_is_lost_after_a_pause),
        cmocka_unit_test(the_affinity_is_what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
