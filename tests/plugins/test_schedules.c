/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules' factors at chosen steps, and what must hold at every step. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/schedule.h"

static double at(const tctl_plugin *plugin, tctl_stage *stage, uint64_t step)
{
    const tctl_schedule *schedule = fake_extension(plugin, TCTL_SCHEDULE_ID);
    const tctl_position position = {
        .struct_size = sizeof position, .step = step, .n_steps = 100, .steps_per_epoch = 10};
    return schedule->factor(stage, &position);
}

typedef struct point {
    uint64_t step;
    double factor;
} point;

/* Also: every factor of the run lies in [0, 1] and is the same when asked again. */
static void check(const char *name, const fake_option *options, const point *points, size_t n)
{
    const tctl_plugin *plugin = fake_plugin(name);
    tctl_stage *stage = fake_stage(plugin, options);
    for (size_t i = 0; i < n; i++) {
        double got = at(plugin, stage, points[i].step);
        if (!(fabs(got - points[i].factor) < 1e-12))
            fail_msg("%s, step %d: %.17g, expected %.17g", name, (int)points[i].step, got, points[i].factor);
    }
    for (uint64_t t = 0; t < 120; t++) {
        double factor = at(plugin, stage, t);
        assert_true(factor >= 0 && factor <= 1);
        assert_true(factor == at(plugin, stage, t));
    }
    plugin->destroy(stage);
}

#define CHECK(name, options, points) check(name, options, points, sizeof(points) / sizeof *(points))

static void constant_rises_and_stays(void **state)
{
    (void)state;
    const fake_option none[] = {{NULL, NULL}}, four[] = {{"warmup", "4 steps"}, {NULL, NULL}},
                      epoch[] = {{"warmup", "1 epochs"}, {NULL, NULL}};
    const point flat[] = {{0, 1}, {99, 1}}, rise[] = {{0, .2}, {3, .8}, {4, 1}, {99, 1}},
                long_rise[] = {{0, 1. / 11}, {9, 10. / 11}, {10, 1}};
    CHECK("constant", none, flat);
    CHECK("constant", four, rise);
    CHECK("constant", epoch, long_rise);
}

static void step_falls_every_so_often(void **state)
{
    (void)state;
    const fake_option thirty[] = {{"every", "30 steps"}, {NULL, NULL}},
                      epochs[] = {{"every", "2 epochs"}, {"gamma", "0.5"}, {NULL, NULL}};
    const point a[] = {{0, 1}, {29, 1}, {30, .1}, {59, .1}, {60, .01}, {99, .001}},
                b[] = {{0, 1}, {19, 1}, {20, .5}, {99, .0625}};
    CHECK("step", thirty, a);
    CHECK("step", epochs, b);
}

static void cosine_rises_and_anneals(void **state)
{
    (void)state;
    const fake_option plain[] = {{NULL, NULL}}, full[] = {{"warmup", "0.2"}, {"final", "0.1"}, {NULL, NULL}};
    const double pi = acos(-1.0);
    const point a[] = {{0, 1},
                       {25, (1 + cos(pi / 4)) / 2},
                       {50, .5},
                       {99, (1 + cos(pi * .99)) / 2},
                       {110, 0}},
                b[] = {{0, 1. / 21}, {19, 20. / 21}, {20, 1}, {60, .55}, {100, .1}};
    CHECK("cosine", plain, a);
    CHECK("cosine", full, b);
}

static void onecycle_goes_up_and_down(void **state)
{
    (void)state;
    const fake_option cosine[] = {{NULL, NULL}},
                      line[] = {{"warmup", "0.2"},
                                {"start", "0.1"},
                                {"final", "0"},
                                {"decay", "linear"},
                                {NULL, NULL}},
                      no_rise[] = {{"warmup", "0"}, {NULL, NULL}},
                      all_rise[] = {{"warmup", "1"}, {NULL, NULL}};
    const point a[] = {{0, .04}, {15, .52}, {30, 1}, {65, .5 * (1 + .0001)}, {100, .0001}},
                b[] = {{0, .1}, {10, .55}, {20, 1}, {60, .5}, {99, .0125}}, c[] = {{0, 1}},
                d[] = {{0, .04}, {50, .52}};
    CHECK("onecycle", cosine, a);
    CHECK("onecycle", line, b);
    CHECK("onecycle", no_rise, c);
    CHECK("onecycle", all_rise, d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_rises_and_stays),
        cmocka_unit_test(step_falls_every_so_often),
        cmocka_unit_test(cosine_rises_and_anneals),
        cmocka_unit_test(onecycle_goes_up_and_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
