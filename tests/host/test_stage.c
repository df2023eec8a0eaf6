/* SPDX-License-Identifier: Apache-2.0 */
/* Stages made from options: what they read, where their errors point, what happens when a plugin breaks the rules. */
#include <fcntl.h>
#include <fenv.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/single.h"
#include "trainctl/ext/source.h"

static tctl_plugins *plugins;

static tctl_status open_stage(const char *use, const char *const *set, tctl_single *ret, tctl_error *err)
{
    const tctl_single_request request = {
        .plugins = plugins, .use = use, .folder = "/", .set = set, .seed = 7};
    tctl_error_clear(err);
    return tctl_single_open(&request, ret, err);
}

static void every_type_of_option_is_read_back(void **state)
{
    (void)state;
    tctl_single single;
    tctl_error err;
    tctl_status status = open_stage("parent", NULL, &single, &err); /* the plugin compares */
    if (status)
        fail_msg("%s", err.message);
    assert_string_equal(single.use->part.name, "parent");
    const tctl_source *source = tctl_plugin_extension(single.use->part.plugin, TCTL_SOURCE_ID);
    assert_non_null(source);
    int64_t values[4] = {0};
    const tctl_tensor out = {.data = values, .size_bytes = sizeof values};
    assert_int_equal(source ? source->read(single.use->part.stage, 3, &out, &err) : -1, TCTL_OK);
    assert_int_equal(values[1], (3 * 4 + 1) * 2);
    tctl_single_close(&single);
}

static void an_option_that_is_to_blame_is_pointed_at(void **state)
{
    (void)state;
    tctl_single single;
    tctl_error err;
    const char *const set[] = {"scale=5", "divisor=9", "divisor=3", NULL};
    assert_int_equal(open_stage("parent", set, &single, &err), TCTL_ESPEC);
    assert_string_equal(err.message, "divisor 3 does not divide scale 5");
    assert_string_equal(err.loc.file, "options");
    assert_int_equal(err.loc.line, 3); /* use, scale, divisor */
    assert_int_equal(err.loc.col, 10);
    assert_string_equal(err.notes[0], "in parent: plugin 'parent' 1.0.0");
    tctl_single_close(&single);
}

static void other_errors_of_create_get_the_position_of_the_use(void **state)
{
    (void)state;
    tctl_single single;
    tctl_error err;
    const char *const set[] = {"mode=slow", NULL};
    assert_int_equal(open_stage("parent", set, &single, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "an option has another value than its default");
    assert_int_equal(err.loc.line, 1);
    tctl_single_close(&single);
}

static void a_stage_that_changes_the_floating_point_mode_is_refused(void **state)
{
    (void)state;
    tctl_single single;
    tctl_error err;
    assert_int_equal(open_stage("fast_create", NULL, &single, &err), TCTL_EPLUGIN);
    assert_non_null(
        strstr(err.message, "fast_create (plugin 'fast_create') changed the floating-point mode ("));
    assert_int_equal(fegetround(), FE_TONEAREST);
    tctl_single_close(&single);
}

/* Makes the stage in a child whose standard error is caught. Returns the wait status. */
static int open_in_child(const char *use, char *out, size_t size)
{
    int ends[2], status = 0;
    size_t n = 0;
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        tctl_single single;
        tctl_error err;
        (void)signal(SIGABRT, SIG_DFL);
        if (dup2(ends[1], STDERR_FILENO) < 0)
            _exit(99);
        (void)open_stage(use, NULL, &single, &err);
        _exit(0);
    }
    assert_true(child > 0);
    close(ends[1]);
    for (ssize_t got; n + 1 < size && (got = read(ends[0], out + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    out[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void asking_for_an_undeclared_option_ends_the_process_with_its_name(void **state)
{
    (void)state;
    char text[1024];
    int status = open_in_child("undeclared", text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_string_equal(text,
                        "trainctl: bug in a plugin: plugin 'undeclared' asks for option 'buffer', which its "
                        "table does not declare\n");
}

static void a_crash_in_create_is_a_signal(void **state)
{
    (void)state;
    char text[1024];
    int status = open_in_child("crash_create", text, sizeof text);
    assert_true(WIFSIGNALED(status) &&
                WTERMSIG(status) == SIGABRT); /* what the launcher turns into one line */
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
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_of_option_is_read_back),
        cmocka_unit_test(an_option_that_is_to_blame_is_pointed_at),
        cmocka_unit_test(other_errors_of_create_get_the_position_of_the_use),
        cmocka_unit_test(a_stage_that_changes_the_floating_point_mode_is_refused),
        cmocka_unit_test(asking_for_an_undeclared_option_ends_the_process_with_its_name),
        cmocka_unit_test(a_crash_in_create_is_a_signal),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
