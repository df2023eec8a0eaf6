/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As much of cmocka as unit tests of the engine need, for processors that this machine has no cmocka for: its header is
 * the real one. The first failed assertion ends the program with its place.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void print_error(const char *const format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
}

void print_message(const char *const format, ...)
{
    va_list ap;
    va_start(ap, format);
    vfprintf(stdout, format, ap);
    va_end(ap);
}

void _fail(const char *const file, const int line)
{
    fprintf(stderr, "%s:%d: error: the assertion failed\n", file, line);
    exit(1);
}

static void expect(int holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", what);
    _fail(file, line);
}

void _assert_true(const LargestIntegralType result, const char *const expression, const char *const file,
                  const int line)
{
    expect(result != 0, expression, file, line);
}

void _assert_int_equal(const LargestIntegralType a, const LargestIntegralType b, const char *const file,
                       const int line)
{
    if (a != b)
        fprintf(stderr, "%#jx is not %#jx\n", (uintmax_t)a, (uintmax_t)b);
    expect(a == b, "integers differ", file, line);
}

void _assert_int_not_equal(const LargestIntegralType a, const LargestIntegralType b, const char *const file,
                           const int line)
{
    expect(a != b, "integers are equal", file, line);
}

void _assert_in_range(const LargestIntegralType value, const LargestIntegralType minimum,
                      const LargestIntegralType maximum, const char *const file, const int line)
{
    expect(value >= minimum && value <= maximum, "out of range", file, line);
}

void _assert_string_equal(const char *const a, const char *const b, const char *const file, const int line)
{
    if (strcmp(a, b) != 0)
        fprintf(stderr, "\"%s\" is not \"%s\"\n", a, b);
    expect(strcmp(a, b) == 0, "texts differ", file, line);
}

void _assert_memory_equal(const void *const a, const void *const b, const size_t size, const char *const file,
                          const int line)
{
    expect(memcmp(a, b, size) == 0, "bytes differ", file, line);
}

void _assert_memory_not_equal(const void *const a, const void *const b, const size_t size,
                              const char *const file, const int line)
{
    expect(memcmp(a, b, size) != 0, "bytes are equal", file, line);
}

/* The tests one after the other; returns how many failed, which is none. */
int _cmocka_run_group_tests(const char *group_name, const struct CMUnitTest *const tests,
                            const size_t num_tests, CMFixtureFunction group_setup,
                            CMFixtureFunction group_teardown)
{
    void *state = NULL;
    expect(!group_setup && !group_teardown, "fixtures of a group are not in this stand-in", group_name, 0);
    for (size_t i = 0; i < num_tests; i++) {
        expect(!tests[i].setup_func && !tests[i].teardown_func, "fixtures are not in this stand-in",
               tests[i].name, 0);
        fprintf(stderr, "%s\n", tests[i].name);
        tests[i].test_func(&state);
    }
    return 0;
}
