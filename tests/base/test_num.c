/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text and back: the grammar, the limits, and ECMAScript's shortest form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"

static void integers_take_the_whole_text(void **state)
{
    (void)state;
    int64_t v = 0;
    assert_true(tctl_parse_int("-9223372036854775808", 20, &v));
    assert_true(v == INT64_MIN);
    assert_true(tctl_parse_int("0x7fffffffffffffff", 18, &v));
    assert_true(v == INT64_MAX);
    static const char *const refused[] = {"",   "+",   "017", "1_000", "1 ", "9223372036854775808",
                                          "0x", "1e3", "0o17"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(tctl_parse_int(refused[i], strlen(refused[i]), &v));
}

static void reals_are_decimal_and_finite(void **state)
{
    (void)state;
    double v = 0;
    static const struct {
        const char *text;
        double value;
    } good[] = {{"1e-3", 1e-3}, {".5", .5}, {"1.", 1}, {"-1E+3", -1000}, {"017", 17}, {"1e3", 1000}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(tctl_parse_real(good[i].text, strlen(good[i].text), &v));
        assert_true(v == good[i].value);
    }
    static const char *const refused[] = {"", ".", "e3", "1e", "nan", "inf", "0x1p3", "1e999", "1,5", "--1"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(tctl_parse_real(refused[i], strlen(refused[i]), &v));
}

/* RFC 8785, appendix B. */
static void reals_print_as_ecmascript_does(void **state)
{
    (void)state;
    static const struct {
        uint64_t bits;
        const char *text;
    } cases[] = {
        {0x0000000000000000, "0"},
        {0x8000000000000000, "0"},
        {0x0000000000000001, "5e-324"},
        {0x8000000000000001, "-5e-324"},
        {0x7fefffffffffffff, "1.7976931348623157e+308"},
        {0x4340000000000000, "9007199254740992"},
        {0x4430000000000000, "295147905179352830000"},
        {0x44b52d02c7e14af5, "9.999999999999997e+22"},
        {0x44b52d02c7e14af6, "1e+23"},
        {0x44b52d02c7e14af7, "1.0000000000000001e+23"},
        {0x444b1ae4d6e2ef4e, "999999999999999700000"},
        {0x444b1ae4d6e2ef4f, "999999999999999900000"},
        {0x444b1ae4d6e2ef50, "1e+21"},
        {0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
        {0x3eb0c6f7a0b5ed8d, "0.000001"},
        {0x41b3de4355555553, "333333333.3333332"},
        {0xbecbf647612f3696, "-0.0000033333333333333333"},
        {0x43143ff3c1cb0959, "1424953923781206.2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double v;
        char out[TCTL_REAL_TEXT];
        memcpy(&v, &cases[i].bits, sizeof v);
        assert_int_equal(tctl_format_real(v, out), strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
    }
}

static void reals_survive_a_round_trip(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u; /* xorshift64 */
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double v, back;
        memcpy(&v, &x, sizeof v);
        if (!isfinite(v))
            continue;
        char out[TCTL_REAL_TEXT];
        size_t n = tctl_format_real(v, out);
        assert_true(tctl_parse_real(out, n, &back));
        assert_memory_equal(&back, &v, sizeof v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_take_the_whole_text),
        cmocka_unit_test(reals_are_decimal_and_finite),
        cmocka_unit_test(reals_print_as_ecmascript_does),
        cmocka_unit_test(reals_survive_a_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
