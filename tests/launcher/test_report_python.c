/* SPDX-License-Identifier: Apache-2.0 */
/* Reading what a Python child reported: merging processes, and lines that are not the shim's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "launcher/report_python.h"

static json_t *parse(const char *text, json_t *uncontrolled)
{
    json_t *made = NULL;
    assert_int_equal(tctl_report_python_parse(text, strlen(text), uncontrolled, &made, NULL), TCTL_OK);
    return made;
}

static void processes_of_a_run_are_merged(void **state)
{
    (void)state;
    json_t *uncontrolled = json_array();
    json_t *made =
        parse("{\"event\":\"start\",\"python\":\"3.12.1\"}\n{\"event\":\"start\",\"python\":\"3.11.2\"}\n"
              "{\"event\":\"set\",\"what\":\"random\",\"value\":\"seeded\"}\n"
              "{\"event\":\"set\",\"what\":\"random\",\"value\":\"seeded\"}\n"
              "{\"event\":\"uncontrolled\",\"what\":\"torch\",\"why\":\"new\"}\n"
              "{\"event\":\"uncontrolled\",\"what\":\"torch\",\"why\":\"new\"}\n",
              uncontrolled);
    json_t *want = json_pack("{s:i, s:[s, s], s:{s:s}, s:[], s:i}", "processes", 2, "versions", "3.11.2",
                             "3.12.1", "settings", "random", "seeded", "notes", "malformed", 0);
    assert_true(json_equal(made, want));
    assert_int_equal(json_array_size(uncontrolled), 1);
    json_decref(want);
    json_decref(made);
    json_decref(uncontrolled);
}

static void lines_that_are_not_the_shims_are_counted(void **state)
{
    (void)state;
    json_t *uncontrolled = json_array();
    json_t *made = parse(
        "[]\n{\"event\":\"set\",\"what\":1,\"value\":\"x\"}\n{\"event\":\"no such\"}\n\n"
        "{\"event\":\"note\",\"what\":\"w\",\"detail\":\"d\",\"file\":\"f\",\"line\":3}\n{\"event\":\"sta",
        uncontrolled);
    assert_int_equal(json_integer_value(json_object_get(made, "malformed")), 5);
    assert_int_equal(json_array_size(json_object_get(made, "notes")), 1);
    json_decref(made);
    json_decref(uncontrolled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_of_a_run_are_merged),
        cmocka_unit_test(lines_that_are_not_the_shims_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
