/* SPDX-License-Identifier: Apache-2.0 */
/* A whole step of the native trainer, from the batch to the update: no allocation, no system call but those of waiting. */
#include "plugins/native_world.h"
#include "quiet.h"

static int allowed;

/* The second step: the first one may do what is done once. */
static tctl_status begin(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)s;
    (void)err;
    if (t->position.step == 1)
        quiet_begin(allowed);
    return TCTL_OK;
}

static tctl_status done(tctl_stage *s, tctl_training *t, tctl_error *err)
{
    (void)s;
    (void)err;
    if (t->position.step == 1)
        quiet_end();
    return TCTL_OK;
}

static const tctl_hooks hooks = {.struct_size = sizeof hooks, .batch_ready = begin, .step_done = done};
static const tctl_extension extensions[] = {{TCTL_HOOKS_ID, &hooks}};
static const tctl_plugin listener = {TCTL_PLUGIN_HEADER, .n_extensions = 1, .name = "listener",
                                     .extensions = extensions};

static void train_quietly(void *arg)
{
    setting s = usual;
    s.threads = *(const uint32_t *)arg;
    s.workers = 0;
    s.trace_every = "0 steps";
    s.stage = &listener;
    must_train(&s);
}

static void a_step(uint32_t threads, int system_call)
{
    allowed = system_call;
    int code = quiet_in_child(train_quietly, &threads);
    if (code == QUIET_CANNOT)
        skip();
    assert_int_equal(code, QUIET);
}

static void with_one_thread_a_step_is_nothing_but_arithmetic(void **state)
{
    (void)state;
    a_step(1, -1);
}

static void with_more_threads_a_step_waits_besides(void **state)
{
    (void)state;
    a_step(3, SYS_futex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(with_one_thread_a_step_is_nothing_but_arithmetic),
        cmocka_unit_test(with_more_threads_a_step_waits_besides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
