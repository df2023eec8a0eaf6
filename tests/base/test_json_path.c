/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns for places in JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json_path.h"

static bool fits(const char *pattern, const char *const *names)
{
    const char *const patterns[] = {"never/this", pattern, NULL};
    tctl_json_step steps[8];
    const tctl_json_step *way = NULL;
    for (size_t i = 0; names[i] != NULL; i++) {
        steps[i] = (tctl_json_step){names[i], way};
        way = &steps[i];
    }
    return tctl_json_path_fits(patterns, way);
}

#define WAY(...) ((const char *const[]){__VA_ARGS__, NULL})

static void names_fit_the_whole_way(void **state)
{
    (void)state;
    assert_true(fits("time", WAY("time")));
    assert_false(fits("time", WAY("a", "time")));
    assert_false(fits("time", WAY("time", "a")));
    assert_false(fits("time", WAY("times")));
    assert_true(fits("a/b", WAY("a", "b")));
    assert_false(fits("a/b", WAY("b")));
    assert_true(fits("a/0", WAY("a", "0")));
}

static void a_star_is_one_name(void **state)
{
    (void)state;
    assert_true(fits("epochs/*/seconds", WAY("epochs", "17", "seconds")));
    assert_false(fits("epochs/*/seconds", WAY("epochs", "seconds")));
    assert_false(fits("epochs/*/seconds", WAY("epochs", "1", "2", "seconds")));
    assert_true(fits("*", WAY("a/b")));
}

static void two_stars_are_any_number_of_names(void **state)
{
    (void)state;
    assert_true(fits("**/seconds", WAY("seconds")));
    assert_true(fits("**/seconds", WAY("a", "1", "seconds")));
    assert_false(fits("**/seconds", WAY("a", "seconds", "1")));
    assert_true(fits("a/**", WAY("a", "b", "c")));
    assert_true(fits("a/**", WAY("a")));
    assert_true(fits("a/**/b/*", WAY("a", "x", "b", "b", "c")));
    assert_false(fits("a/**/b", WAY("x", "a", "b")));
}

static void what_is_no_pattern_is_said(void **state)
{
    (void)state;
    assert_null(tctl_json_path_problem("a/*/**"));
    assert_string_equal(tctl_json_path_problem(""), "it is empty");
    assert_string_equal(tctl_json_path_problem("/a"), "it has an empty name between two '/'");
    assert_string_equal(tctl_json_path_problem("a/"), "it has an empty name between two '/'");
    assert_string_equal(tctl_json_path_problem("**/a/**/b/**"), "it has more than two '**'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_fit_the_whole_way),
        cmocka_unit_test(a_star_is_one_name),
        cmocka_unit_test(two_stars_are_any_number_of_names),
        cmocka_unit_test(what_is_no_pattern_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
