/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin may not change: found, named with both values, and put back. */
#include <fenv.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host/surroundings.h"

static void assert_found(const tctl_surroundings *before, const char *words)
{
    tctl_error err;
    assert_int_equal(tctl_surroundings_check(before, "plugin 'x'", &err), TCTL_EPLUGIN);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
    assert_int_equal(tctl_surroundings_check(before, "plugin 'x'", &err), TCTL_OK); /* it was put back */
}

static void nothing_changed_is_fine(void **state)
{
    tctl_surroundings *before = *state;
    volatile double one = 1, three = 3;
    volatile double inexact = one / three; /* raises a status flag, which is no mode */
    (void)inexact;
    assert_int_equal(tctl_surroundings_check(before, "plugin 'x'", NULL), TCTL_OK);
}

static void floating_point_mode_is_watched(void **state)
{
    tctl_surroundings *before = *state;
    fesetround(FE_UPWARD);
    assert_found(before, "plugin 'x' changed the floating-point mode (");
    assert_int_equal(fegetround(), FE_TONEAREST);
#if defined(__x86_64__)
    tctl_fp_mode mode = tctl_fp_mode_get();
    mode.sse |= 0x8040;
    tctl_fp_mode_set(mode);
    assert_found(before, "(MXCSR 0x1f80 -> 0x9fc0); rebuild it without -ffast-math");
    mode = tctl_fp_mode_default();
    mode.x87 = 0x27f; /* 53-bit precision */
    tctl_fp_mode_set(mode);
    assert_found(before, "(x87 control word 0x37f -> 0x27f)");
#endif
}

static void locale_is_watched(void **state)
{
    tctl_surroundings *before = *state;
    if (!setlocale(LC_ALL, "C.UTF-8"))
        skip();
    assert_found(before, "plugin 'x' changed the locale ('C' -> 'C.UTF-8')");
    locale_t other = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    uselocale(other);
    assert_found(before, "plugin 'x' changed the thread's locale");
    freelocale(other);
}

static void signals_are_watched(void **state)
{
    tctl_surroundings *before = *state;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    assert_found(before, "plugin 'x' changed the signal mask (SIGTERM let through -> blocked)");
    signal(SIGPIPE, SIG_IGN);
    assert_found(before, "plugin 'x' changed what SIGPIPE does (default -> ignored)");
}

static void working_directory_is_watched(void **state)
{
    tctl_surroundings *before = *state;
    char now[PATH_MAX];
    assert_int_equal(chdir("/"), 0);
    assert_found(before, "plugin 'x' changed the working directory ('");
    assert_non_null(getcwd(now, sizeof now));
    assert_string_equal(now, before->folder);
}

static void several_changes_are_all_put_back(void **state)
{
    tctl_surroundings *before = *state;
    assert_int_equal(chdir("/"), 0);
    fesetround(FE_DOWNWARD);
    signal(SIGPIPE, SIG_IGN);
    assert_found(before, "floating-point mode");
}

static int capture(void **state)
{
    tctl_surroundings *before = malloc(sizeof *before);
    *state = before;
    return !before || tctl_surroundings_capture(before, NULL);
}

static int release(void **state)
{
    tctl_surroundings_release(*state);
    free(*state);
    return 0;
}

int main(void)
{
    if (chdir("/tmp") != 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changed_is_fine),
        cmocka_unit_test(floating_point_mode_is_watched),
        cmocka_unit_test(locale_is_watched),
        cmocka_unit_test(signals_are_watched),
        cmocka_unit_test(working_directory_is_watched),
        cmocka_unit_test(several_changes_are_all_put_back),
    };
    return cmocka_run_group_tests(tests, capture, release);
}
