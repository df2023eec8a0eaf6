/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping by global norm: the norm, what is scaled, what is left alone, and that order never shows. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/hooks.h"

enum { N = 50000, SPLIT = 20000 };

static const tctl_parameter parameters[] = {{.name = "a", .offset = 0, .count = SPLIT},
                                            {.name = "b", .offset = SPLIT, .count = N - SPLIT}};

static float grad[N];

static tctl_training training(void)
{
    uint64_t x = 42;
    for (int i = 0; i < N; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        grad[i] = (float)(int32_t)(x >> 40) * 0x1p-23f - 1;
    }
    return (tctl_training){.struct_size = sizeof(tctl_training),
                           .n_parameters = 2,
                           .parameters = parameters,
                           .n_elements = N,
                           .grad = grad,
                           .loss_scale = 1,
                           .divisor = 1};
}

static double norm(void)
{
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += (double)grad[i] * (double)grad[i];
    return sqrt(sum);
}

static void clip(const char *max_norm, tctl_training *t, int32_t action)
{
    const tctl_plugin *plugin = fake_plugin("clip");
    const tctl_hooks *hooks = fake_extension(plugin, TCTL_HOOKS_ID);
    const fake_option options[] = {{"max_norm", max_norm}, {NULL, NULL}};
    tctl_stage *stage = fake_stage(plugin, options);
    assert_int_equal(hooks->run_begin(stage, t, NULL), TCTL_OK);
    int32_t decided = action;
    assert_int_equal(hooks->gradients_ready(stage, t, &decided, NULL), TCTL_OK);
    assert_int_equal(decided, action);
    plugin->destroy(stage);
    assert_int_equal(fake.allocated, 0);
}

static void long_gradients_get_the_largest_norm(void **state)
{
    (void)state;
    tctl_training t = training();
    float first = grad[0], last = grad[N - 1];
    assert_true(norm() > 100);
    clip("2.5", &t, TCTL_STEP_TAKE);
    assert_true(fabs(norm() - 2.5) < 1e-6);
    assert_true(fabsf(grad[0] / first - grad[N - 1] / last) < 1e-6f); /* the direction stays */
}

static void short_gradients_keep_their_bits(void **state)
{
    (void)state;
    static float before[N];
    tctl_training t = training();
    memcpy(before, grad, sizeof grad);
    clip("1000", &t, TCTL_STEP_TAKE);
    assert_memory_equal(before, grad, sizeof grad);
}

static void the_loss_scale_is_taken_out_of_the_norm(void **state)
{
    (void)state;
    static float before[N];
    tctl_training t = training();
    memcpy(before, grad, sizeof grad);
    t.loss_scale = 1024;
    clip("1", &t, TCTL_STEP_TAKE); /* the true norm is about 129 / 1024 */
    assert_memory_equal(before, grad, sizeof grad);
    t.loss_scale = 1.0 / 1024;
    clip("1", &t, TCTL_STEP_TAKE);
    assert_true(fabs(norm() * 1024 - 1) < 1e-6);
}

static void held_vetoed_and_broken_gradients_are_left_alone(void **state)
{
    (void)state;
    static float before[N];
    tctl_training t = training();
    memcpy(before, grad, sizeof grad);
    clip("1", &t, TCTL_STEP_HOLD);
    clip("1", &t, TCTL_STEP_SKIP);
    assert_memory_equal(before, grad, sizeof grad);
    before[7] = grad[7] = INFINITY;
    clip("1", &t, TCTL_STEP_TAKE);
    assert_memory_equal(before, grad, sizeof grad);
}

static void frozen_parameters_do_not_count(void **state)
{
    (void)state;
    tctl_parameter frozen[] = {parameters[0], parameters[1]};
    frozen[0].flags = TCTL_PARAMETER_FROZEN;
    tctl_training t = training();
    t.parameters = frozen;
    float first = grad[0];
    memset(grad, 0, SPLIT * sizeof *grad);
    grad[0] = first;
    clip("1", &t, TCTL_STEP_TAKE);
    assert_true(grad[0] == first);
    grad[0] = 0;
    assert_true(fabs(norm() - 1) < 1e-6);
}

static void the_order_of_leaves_does_not_show(void **state)
{
    (void)state;
    static float forwards[N];
    tctl_training t = training();
    clip("1", &t, TCTL_STEP_TAKE);
    memcpy(forwards, grad, sizeof grad);
    t = training();
    fake.backwards = true;
    clip("1", &t, TCTL_STEP_TAKE);
    fake.backwards = false;
    assert_memory_equal(forwards, grad, sizeof grad);
}

static void memory_that_runs_out_is_an_error(void **state)
{
    (void)state;
    const tctl_plugin *plugin = fake_plugin("clip");
    const tctl_hooks *hooks = fake_extension(plugin, TCTL_HOOKS_ID);
    tctl_training t = training();
    for (int64_t n = 0; n < 2; n++) {
        tctl_stage *stage = fake_stage(plugin, NULL);
        tctl_error err;
        fake.fail_allocation = n;
        assert_int_equal(hooks->run_begin(stage, &t, &err), TCTL_ENOMEM);
        assert_string_equal(err.message, "out of memory for the sums of 7 leaves");
        fake.fail_allocation = -1;
        plugin->destroy(stage);
        assert_int_equal(fake.allocated, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_gradients_get_the_largest_norm),
        cmocka_unit_test(short_gradients_keep_their_bits),
        cmocka_unit_test(the_loss_scale_is_taken_out_of_the_norm),
        cmocka_unit_test(held_vetoed_and_broken_gradients_are_left_alone),
        cmocka_unit_test(frozen_parameters_do_not_count),
        cmocka_unit_test(the_order_of_leaves_does_not_show),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
