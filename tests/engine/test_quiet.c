/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a network allocates nothing and makes no system call; with several threads none but those of waiting. */
#include "toy.h"

#include "quiet.h"
#include "zoo.h"

typedef struct job {
    const toy *t;
    uint32_t threads;
    int allowed;
    void (*noise)(void); /* what is done besides, or NULL */
} job;

static void step(tctl_network *net, const tctl_network_batch *b)
{
    tctl_network_result r;
    if (tctl_network_forward(net, b, &r, NULL) || tctl_network_backward(net, b, NULL))
        _exit(EXIT_FAILURE);
}

static void a_quiet_step(void *arg)
{
    const job *j = arg;
    tctl_pool *pool = NULL;
    tctl_network *net = NULL;
    if (tctl_pool_create(j->threads, &pool, NULL) || toy_create(j->t, pool, &net, NULL))
        _exit(EXIT_FAILURE);
    const toy_batch b = toy_make_batch(j->t, j->t->batch, 0, 2);
    step(net, &b.b);
    quiet_begin(j->allowed);
    step(net, &b.b);
    if (j->noise)
        j->noise();
    quiet_end();
}

static void every_model(uint32_t threads, int allowed)
{
    for (size_t z = 0; z < ZOO; z++) {
        job j = {.t = &zoo[z], .threads = threads, .allowed = allowed};
        int code = quiet_in_child(a_quiet_step, &j);
        if (code == QUIET_CANNOT)
            skip();
        if (code != QUIET)
            fail_msg("model '%s', %u threads: ended with %d", zoo[z].name, threads, code);
    }
}

static void a_step_of_one_thread_makes_no_system_call(void **state)
{
    (void)state;
    every_model(1, -1);
}

static void a_step_of_threads_waits_and_makes_no_other_system_call(void **state)
{
    (void)state;
    every_model(3, SYS_futex);
}

static void allocate(void)
{
    void *volatile p = malloc(1); /* compilers leave out a pair that nobody looks at */
    free(p);
}

static void call_the_system(void)
{
    (void)getppid();
}

/* Else the tests above could not fail. */
static void what_is_not_quiet_is_found(void **state)
{
    (void)state;
    job j = {.t = &zoo[0], .threads = 1, .allowed = -1, .noise = allocate};
    int code = quiet_in_child(a_quiet_step, &j);
    if (code == QUIET_CANNOT)
        skip();
    assert_int_equal(code, QUIET_MEMORY);
    j.noise = call_the_system;
    assert_int_equal(quiet_in_child(a_quiet_step, &j), QUIET_SYSTEM_CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_quiet_is_found),
        cmocka_unit_test(a_step_of_one_thread_makes_no_system_call),
        cmocka_unit_test(a_step_of_threads_waits_and_makes_no_other_system_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
