/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite finds in each plugin of tests/abi/bad what is wrong with it, and nothing in the good ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "host/conform.h"

static tctl_plugins *plugins;
static tctl_buf said = TCTL_BUF_INIT; /* "RESULT CHECK: DETAIL" lines */

static void keep(void *arg, const char *check, int result, const char *detail)
{
    static const char *const words[] = {"ok", "FAIL", "skip"};
    (void)arg;
    tctl_buf_add_format(&said, "%s %s: %s\n", words[result], check, detail);
}

static uint32_t run(const char *use, const char *const *set)
{
    uint32_t failed = 0;
    tctl_error err;
    tctl_buf_clear(&said);
    const tctl_conform_request request = {
        .plugins = plugins, .use = use, .folder = "/", .set = set, .seconds = 20, .report = keep};
    tctl_error_clear(&err);
    if (tctl_conform_run(&request, &failed, &err))
        fail_msg("%s", err.message);
    return failed;
}

static void assert_said(const char *line)
{
    if (!strstr(tctl_buf_text(&said), line))
        fail_msg("'%s' is not in:\n%s", line, tctl_buf_text(&said));
}

static void good_plugins_pass(void **state)
{
    (void)state;
    assert_int_equal(run("good", NULL), 0);
    assert_said("ok create and destroy: \n");
    assert_said("ok the same work twice: \n");
    assert_said("ok in reverse order: \n");
    assert_said("ok with 8 threads: \n");
    assert_said("ok buffer=8, which claims to change nothing: \n");
    assert_said("skip saved and loaded in the middle: it remembers nothing\n");
    assert_null(strstr(tctl_buf_text(&said), "scale=")); /* semantic: it may change results */
}

static void a_source_that_counts_its_calls_is_found(void **state)
{
    (void)state;
    assert_true(run("impure", NULL) >= 2);
    assert_said("FAIL the same work twice: sample 0 differs the second time\n");
    assert_said("FAIL in reverse order: sample 0 differs\n");
}

static void a_source_that_depends_on_the_order_is_found(void **state)
{
    (void)state;
    assert_true(run("order", NULL) >= 1);
    assert_said("FAIL in reverse order: sample ");
}

static void an_option_that_claims_too_much_is_found(void **state)
{
    (void)state;
    assert_int_equal(run("leaky_option", NULL), 4);
    assert_said("FAIL buffer=7, which claims to change nothing: sample 0 differs\n");
    assert_said("ok buffer=2, which claims to change nothing: \n"); /* the default */
}

static void a_crash_is_the_result_of_one_check(void **state)
{
    (void)state;
    assert_int_equal(run("careless", NULL), 1);
    assert_said("ok create and destroy: \n");
    assert_said("FAIL each host allocation failing once: "); /* a signal, or a sanitizer's exit status */
    assert_said("ok with 8 threads: \n");
    assert_int_equal(run("crash_create", NULL), 1);
    assert_said("FAIL create and destroy: crashed: Aborted\n");
}

static void a_changed_floating_point_mode_is_found(void **state)
{
    (void)state;
    assert_int_equal(run("fast_create", NULL), 1);
    assert_said(
        "FAIL create and destroy: fast_create (plugin 'fast_create') changed the floating-point mode (");
}

static void a_state_that_forgets_is_found(void **state)
{
    (void)state;
    assert_int_equal(run("forgetful", NULL), 1);
    assert_said("FAIL saved and loaded in the middle: step 5 differs\n");
    assert_said("ok each host allocation failing once: \n");
}

static void options_that_cannot_be_read_are_no_check(void **state)
{
    (void)state;
    uint32_t failed = 0;
    tctl_error err;
    const char *const set[] = {"scal=3", NULL};
    const tctl_conform_request request = {
        .plugins = plugins, .use = "good", .folder = "/", .set = set, .report = keep};
    tctl_error_clear(&err);
    assert_int_equal(tctl_conform_run(&request, &failed, &err), TCTL_ESPEC);
    assert_non_null(strstr(err.message, "'scal'"));
}

static int set_up(void **state)
{
    (void)state;
    char folder[4096];
    const char *build = getenv("TRAINCTL_BUILD");
    snprintf(folder, sizeof folder, "%s/tests/abi", build ? build : ".");
    return setenv("TRAINCTL_PLUGIN_PATH", folder, 1) || tctl_plugins_create("/nowhere/bin/x", &plugins, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    tctl_plugins_destroy(plugins);
    tctl_buf_release(&said);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plugins_pass),
        cmocka_unit_test(a_source_that_counts_its_calls_is_found),
        cmocka_unit_test(a_source_that_depends_on_the_order_is_found),
        cmocka_unit_test(an_option_that_claims_too_much_is_found),
        cmocka_unit_test(a_crash_is_the_result_of_one_check),
        cmocka_unit_test(a_changed_floating_point_mode_is_found),
        cmocka_unit_test(a_state_that_forgets_is_found),
        cmocka_unit_test(options_that_cannot_be_read_are_no_check),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
