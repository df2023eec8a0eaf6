/* SPDX-License-Identifier: Apache-2.0 */
/* Canonical JSON: RFC 8785's order, numbers and escapes; parsing that refuses what would be ambiguous. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void assert_canonical(const char *text, const char *expected)
{
    json_t *value = NULL;
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_parse("t", text, strlen(text), &value, &err), TCTL_OK);
    assert_int_equal(tctl_json_canonical(value, &out, &err), TCTL_OK);
    assert_string_equal(tctl_buf_text(&out), expected);
    tctl_buf_release(&out);
    json_decref(value);
}

/* The example of RFC 8785, section 3.2.2 to 3.2.4. */
static void the_rfc_example_has_its_bytes(void **state)
{
    (void)state;
    assert_canonical(
        "{\n  \"numbers\": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],\n"
        "  \"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\",\n"
        "  \"literals\": [null, true, false]\n}",
        "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],"
        "\"string\":\"\xe2\x82\xac$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
}

/* RFC 8785, section 3.2.3: here the order of UTF-16 code units is not the order of the bytes. */
static void members_are_sorted_by_utf16_code_units(void **state)
{
    (void)state;
    assert_canonical("{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter "
                     "Dalet With Dagesh\","
                     "\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
                     "\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
                     "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
                     "\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\",\"\xe2\x82\xac\":\"Euro Sign\","
                     "\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\","
                     "\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
    assert_canonical("{\"b\":1,\"\":2,\"ab\":3,\"a\":4}", "{\"\":2,\"a\":4,\"ab\":3,\"b\":1}");
    /* U+D7FF < U+10000 (as a pair of surrogates) < U+E000 < U+FFFF, also behind a common prefix. */
    assert_canonical(
        "{\"x\\uffff\":1,\"x\\ue000\":2,\"x\\ud800\\udc00\":3,\"x\\ud7ff\":4,\"x\\udbff\\udfff\":5}",
        "{\"x\xed\x9f\xbf\":4,\"x\xf0\x90\x80\x80\":3,\"x\xf4\x8f\xbf\xbf\":5,"
        "\"x\xee\x80\x80\":2,\"x\xef\xbf\xbf\":1}");
}

static void control_characters_take_their_short_form(void **state)
{
    (void)state;
    assert_canonical("\"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\\u007f/\"",
                     "\"\\u0001\\b\\t\\n\\u000b\\f\\r\\u001f\x7f/\"");
}

static void integers_up_to_2_53_are_exact_and_larger_ones_refused(void **state)
{
    (void)state;
    assert_canonical("[9007199254740992,-9007199254740992,0,-0]", "[9007199254740992,-9007199254740992,0,0]");
    static const json_int_t beyond[] = {9007199254740993, -9007199254740993, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        json_t *value = json_integer(beyond[i]);
        tctl_buf out = TCTL_BUF_INIT;
        tctl_error err = {0};
        assert_int_equal(tctl_json_canonical(value, &out, &err), TCTL_EINVAL);
        assert_non_null(strstr(err.message, "beyond 2^53"));
        tctl_buf_release(&out);
        json_decref(value);
    }
}

/* ECMAScript prints reals up to 1e21 without an exponent; what we wrote we must be able to read and write again. */
static void large_reals_survive_reading_back(void **state)
{
    (void)state;
    assert_canonical("[9009925474099547409.3]", "[9009925474099547000]");
    assert_canonical("[9009925474099547000]", "[9009925474099547000]");
    assert_canonical("[1e19,-1e20,1e21,1,2.5]", "[10000000000000000000,-100000000000000000000,1e+21,1,2.5]");
    assert_canonical("[10000000000000000000,-100000000000000000000,1e+21,1,{\"a\":3,\"b\":2.5}]",
                     "[10000000000000000000,-100000000000000000000,1e+21,1,{\"a\":3,\"b\":2.5}]");
    /* Beside such a number small integers stay integers. */
    static const char text[] = "{\"a\": 99999999999999999999, \"b\": [7], \"c\": 8}";
    json_t *value = NULL;
    assert_int_equal(tctl_json_parse("t", text, sizeof text - 1, &value, NULL), TCTL_OK);
    assert_true(json_is_real(json_object_get(value, "a")));
    assert_int_equal(json_integer_value(json_array_get(json_object_get(value, "b"), 0)), 7);
    assert_int_equal(json_integer_value(json_object_get(value, "c")), 8);
    json_decref(value);
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff",
                                      "a\x80",
                                      "\xc0\xaf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xe2\x82",
                                      "\xe2\x82z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *value = json_string_nocheck(bad[i]);
        tctl_buf out = TCTL_BUF_INIT;
        tctl_error err = {0};
        assert_int_equal(tctl_json_canonical(value, &out, &err), TCTL_EINVAL);
        assert_non_null(strstr(err.message, "not UTF-8"));
        tctl_buf_release(&out);
        json_decref(value);
    }
}

static void a_missing_value_and_a_full_buffer_are_errors(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_canonical(NULL, &out, &err), TCTL_EINVAL);
    tctl_buf_release(&out);
    out.limit = 4;
    json_t *value = json_string("longer than four");
    assert_int_equal(tctl_json_canonical(value, &out, &err), TCTL_ENOMEM);
    json_decref(value);
    tctl_buf_release(&out);
}

static void pretty_text_keeps_the_canonical_order(void **state)
{
    (void)state;
    const char *text = "{\"b\":[1,{\"d\":null,\"c\":[]}],\"a\":{}}";
    json_t *value = NULL;
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_parse("t", text, strlen(text), &value, &err), TCTL_OK);
    assert_int_equal(tctl_json_pretty(value, &out, &err), TCTL_OK);
    assert_string_equal(tctl_buf_text(&out), "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": [],\n"
                                             "      \"d\": null\n    }\n  ]\n}\n");
    tctl_buf_release(&out);
    json_decref(value);
}

static void bad_text_is_refused_with_its_position(void **state)
{
    (void)state;
    static const struct {
        const char *text, *position, *reason;
    } cases[] = {
        {"", "line 1, column", "near"},
        {"{\"a\": 1,\n \"a\": 2}", "line 2, column 4", "duplicate object key"},
        {"[1] [2]", "line 1, column 5", "end of file expected"},
        {"[1,\n2,,]", "line 2, column 3", "unexpected token"},
        {"\"\\u0000\"", "line 1", "\\u0000"},
        {"1e999", "line 1", "overflow"},
        {"[1, 99999999999999999999, 1e999]", "line 1, column", "overflow"},
        {"NaN", "line 1", "invalid token"},
        {"\"\xff\"", "line 1", "unable to decode byte 0xff"},
        {"[", "line 1", "']' expected"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *value = NULL;
        tctl_error err = {0};
        assert_int_equal(tctl_json_parse("a.json", cases[i].text, strlen(cases[i].text), &value, &err),
                         TCTL_EFORMAT);
        assert_null(value);
        assert_non_null(strstr(err.message, "'a.json' is not JSON, "));
        assert_non_null(strstr(err.message, cases[i].position));
        if (!strstr(err.message, cases[i].reason))
            fail_msg("'%s' lacks '%s'", err.message, cases[i].reason);
    }
}

static void nesting_is_limited(void **state)
{
    (void)state;
    char deep[5000];
    memset(deep, '[', sizeof deep);
    json_t *value = NULL;
    tctl_error err = {0};
    assert_int_equal(tctl_json_parse("deep", deep, sizeof deep, &value, &err), TCTL_EFORMAT);
    assert_non_null(strstr(err.message, "depth"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rfc_example_has_its_bytes),
        cmocka_unit_test(members_are_sorted_by_utf16_code_units),
        cmocka_unit_test(control_characters_take_their_short_form),
        cmocka_unit_test(integers_up_to_2_53_are_exact_and_larger_ones_refused),
        cmocka_unit_test(large_reals_survive_reading_back),
        cmocka_unit_test(text_that_is_not_utf8_is_refused),
        cmocka_unit_test(a_missing_value_and_a_full_buffer_are_errors),
        cmocka_unit_test(pretty_text_keeps_the_canonical_order),
        cmocka_unit_test(bad_text_is_refused_with_its_position),
        cmocka_unit_test(nesting_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
