/* SPDX-License-Identifier: Apache-2.0 */
/* Path bytes in JSON: what stands there, and that every byte comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "manifest/path_json.h"

static void check(const char *path, const char *text)
{
    json_t *value = tctl_path_to_json(path);
    assert_non_null(value);
    assert_string_equal(json_string_value(value), text);
    char *back = NULL;
    assert_int_equal(tctl_path_from_json(value, &back, NULL), TCTL_OK);
    assert_string_equal(back, path);
    free(back);
    json_decref(value);
}

static void utf8_stands_as_it_is(void **state)
{
    (void)state;
    check("", "");
    check("a/b c", "a/b c");
    check("new\nline", "new\nline");
    check("\xc3\xa9/\xe2\x82\xac/\xf0\x9f\x98\x82", "\xc3\xa9/\xe2\x82\xac/\xf0\x9f\x98\x82");
    check("e\xcc\x81", "e\xcc\x81"); /* decomposed: not normalised */
}

static void other_bytes_are_escaped(void **state)
{
    (void)state;
    check("a\\b", "a\\\\b");
    check("\\xff", "\\\\xff");
    check("\xff", "\\xff");
    check("\xc3", "\\xc3");
    check("\xc0\x80", "\\xc0\\x80");                   /* overlong */
    check("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* a surrogate */
    check("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
    check("\xe2\x82z", "\\xe2\\x82z");
}

static void every_pair_of_bytes_comes_back(void **state)
{
    (void)state;
    for (int a = 1; a < 256; a++) {
        for (int b = 1; b < 256; b++) {
            char path[3] = {(char)(unsigned char)a, (char)(unsigned char)b, '\0'};
            json_t *value = tctl_path_to_json(path);
            char *back = NULL;
            assert_int_equal(tctl_path_from_json(value, &back, NULL), TCTL_OK);
            assert_string_equal(back, path);
            free(back);
            json_decref(value);
        }
    }
}

static void malformed_escapes_are_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {"\\",    "a\\",   "\\n",   "\\x",  "\\xf",
                                          "\\xfg", "\\xFF", "\\x00", "\\x41"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        json_t *value = json_string(refused[i]);
        char *back = NULL;
        tctl_error err = {0};
        assert_int_equal(tctl_path_from_json(value, &back, &err), TCTL_EFORMAT);
        assert_non_null(strstr(err.message, "has a malformed escape at byte"));
        assert_null(back);
        json_decref(value);
    }
    tctl_error err = {0};
    char *back = NULL;
    assert_int_equal(tctl_path_from_json(json_null(), &back, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "not a path: a string was expected");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_stands_as_it_is),
        cmocka_unit_test(other_bytes_are_escaped),
        cmocka_unit_test(every_pair_of_bytes_comes_back),
        cmocka_unit_test(malformed_escapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
