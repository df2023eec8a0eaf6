/* SPDX-License-Identifier: Apache-2.0 */
/* How an error looks: carets by display width, windows on long lines, notes, colour, JSON, the limit of twenty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/diag.h"
#include "config/utf8.h"

static void check(const char *source, tctl_loc loc, const char *golden)
{
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    tctl_fail_at(&err, TCTL_ESPEC, loc, "wrong");
    tctl_diag_render(&err, source, source ? strlen(source) : 0, false, &out);
    assert_string_equal(tctl_buf_text(&out), golden);
    tctl_buf_release(&out);
}

static void carets_stand_under_what_they_mean(void **state)
{
    (void)state;
    check("a: 1\nwidth: 70000\n", (tctl_loc){"t", 2, 8, 2, 13},
          "t:2:8: error: wrong\n"
          "    2 | width: 70000\n"
          "      |        ^~~~~\n");
    /* Two cells per character, none for a combining accent. */
    check("\xE6\xBC\xA2\xE5\xAD\x97: x\n", (tctl_loc){"t", 1, 5, 1, 6},
          "t:1:5: error: wrong\n"
          "    1 | \xE6\xBC\xA2\xE5\xAD\x97: x\n"
          "      |       ^\n");
    check("\xE6\xBC\xA2\xE5\xAD\x97: x\n", (tctl_loc){"t", 1, 1, 1, 3},
          "t:1:1: error: wrong\n"
          "    1 | \xE6\xBC\xA2\xE5\xAD\x97: x\n"
          "      | ^~~~\n");
    check("e\xCC\x81: x\n", (tctl_loc){"t", 1, 5, 1, 6},
          "t:1:5: error: wrong\n"
          "    1 | e\xCC\x81: x\n"
          "      |    ^\n");
    check("\xF0\x9F\x98\x80 x\n", (tctl_loc){"t", 1, 3, 1, 4},
          "t:1:3: error: wrong\n"
          "    1 | \xF0\x9F\x98\x80 x\n"
          "      |    ^\n");
    /* A tab reaches to the next multiple of four. */
    check("ab\tx\n", (tctl_loc){"t", 1, 4, 1, 5},
          "t:1:4: error: wrong\n"
          "    1 | ab  x\n"
          "      |     ^\n");
}

static void odd_places_are_shown_as_well_as_can_be(void **state)
{
    (void)state;
    /* Behind the end, over several lines, unknown, beyond the text, no text. */
    check("abc", (tctl_loc){"t", 1, 4, 1, 4}, "t:1:4: error: wrong\n    1 | abc\n      |    ^\n");
    check("abc\ndef\n", (tctl_loc){"t", 1, 2, 2, 2}, "t:1:2: error: wrong\n    1 | abc\n      |  ^~\n");
    check("abc\n", (tctl_loc){"t", 0, 0, 0, 0}, "t: error: wrong\n");
    check("abc\n", (tctl_loc){"t", 9, 1, 9, 2}, "t:9:1: error: wrong\n");
    check(NULL, (tctl_loc){"t", 1, 1, 1, 2}, "t:1:1: error: wrong\n");
    check("abc\n", (tctl_loc){0}, "error: wrong\n");
    /* Line ends and a byte order mark are no part of the line. */
    check("\xEF\xBB\xBF"
          "ab\r\n",
          (tctl_loc){"t", 1, 2, 1, 3}, "t:1:2: error: wrong\n    1 | ab\n      |  ^\n");
    /* What would disturb a terminal is not sent to it. */
    check("a\x1B[31m\xFFz\n", (tctl_loc){"t", 1, 8, 1, 9},
          "t:1:8: error: wrong\n    1 | a\xEF\xBF\xBD[31m\xEF\xBF\xBDz\n      |        ^\n");
}

static void long_lines_are_cut_around_the_caret(void **state)
{
    (void)state;
    char line[301];
    memset(line, 'x', 300);
    line[300] = '\0';
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    tctl_fail_at(&err, TCTL_ESPEC, (tctl_loc){"t", 1, 201, 1, 204}, "wrong");
    tctl_diag_render(&err, line, 300, false, &out);
    const char *text = tctl_buf_text(&out);
    const char *shown = strchr(text, '\n') + 1, *caret = strchr(shown, '\n') + 1;
    assert_int_equal(strncmp(shown, "    1 | \xE2\x80\xA6xxx", 14), 0);
    assert_non_null(strstr(shown, "x\xE2\x80\xA6\n"));
    assert_int_equal(strcspn(caret, "^"), 8 + 1 + 40);
    assert_non_null(strstr(caret, "^~~\n"));
    tctl_buf_release(&out);
}

static void notes_hints_and_colours(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_buf out = TCTL_BUF_INIT;
    tctl_fail_at(&err, TCTL_ESPEC, (tctl_loc){"t", 2, 1, 2, 2}, "wrong");
    tctl_note(&err, "a note");
    tctl_note_at(&err, (tctl_loc){"t", 1, 1, 1, 2}, "another");
    tctl_hint(&err, "a hint");
    tctl_diag_render(&err, "a\nb\n", 4, true, &out);
    assert_string_equal(tctl_buf_text(&out), "\033[1mt:2:1: \033[0m\033[1;31merror:\033[0m wrong\n"
                                             "    2 | b\n      | \033[1;32m^\033[0m\n"
                                             "  \033[1;36mnote:\033[0m a note\n"
                                             "\033[1mt:1:1: \033[0m\033[1;36mnote:\033[0m another\n"
                                             "    1 | a\n      | \033[1;36m^\033[0m\n"
                                             "  \033[1;33mhint:\033[0m a hint\n");
    tctl_buf_release(&out);
}

static void twenty_are_kept_and_sorted(void **state)
{
    (void)state;
    tctl_diags diags = {0};
    tctl_buf out = TCTL_BUF_INIT;
    for (uint32_t i = 30; i > 0; i--)
        tctl_fail_at(tctl_diags_add(&diags), TCTL_ESPEC, (tctl_loc){"t", i, 1, i, 2}, "wrong");
    assert_int_equal(diags.n, 20);
    assert_int_equal(diags.n_dropped, 10);
    tctl_diags_render(&diags, NULL, 0, false, &out);
    assert_int_equal(strncmp(tctl_buf_text(&out), "t:11:1: error: wrong\nt:12:1:", 28), 0);
    assert_non_null(strstr(tctl_buf_text(&out), "30 errors, 10 of them not shown\n"));
    tctl_buf_release(&out);
    tctl_diags_release(&diags);
}

static void json_has_all_of_it(void **state)
{
    (void)state;
    tctl_diags diags = {0};
    tctl_error *err = tctl_diags_add(&diags);
    tctl_fail_at(err, TCTL_ESPEC, (tctl_loc){"t", 2, 3, 2, 5}, "wrong \xFF");
    tctl_note_at(err, (tctl_loc){"t", 1, 1, 1, 2}, "a note");
    tctl_hint(err, "a hint");
    tctl_fail(tctl_diags_add(&diags), TCTL_ESPEC, "no place");
    json_t *json = tctl_diags_json(&diags);
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(
        text, "{\"dropped\":0,\"errors\":[{\"column\":3,\"end_column\":5,\"end_line\":2,\"file\":\"t\","
              "\"hint\":\"a hint\",\"line\":2,\"message\":\"wrong \xEF\xBF\xBD\",\"notes\":"
              "[{\"column\":1,\"end_column\":2,\"end_line\":1,\"file\":\"t\",\"line\":1,"
              "\"message\":\"a note\"}]},{\"message\":\"no place\",\"notes\":[]}]}");
    free(text);
    json_decref(json);
    tctl_diags_release(&diags);
}

static void utf8_is_decoded_strictly(void **state)
{
    (void)state;
    uint32_t code = 0;
    assert_int_equal(tctl_utf8_decode("\xF4\x8F\xBF\xBF", 4, &code), 4);
    assert_int_equal(code, 0x10FFFF);
    static const char *const bad[] = {
        "\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF8", "\xC3",     "\xC3("};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(tctl_utf8_decode(bad[i], strlen(bad[i]), &code), 0);
    assert_int_equal(tctl_utf8_width('a'), 1);
    assert_int_equal(tctl_utf8_width(0x301), 0);
    assert_int_equal(tctl_utf8_width(0x6F22), 2);
    assert_int_equal(tctl_utf8_width(0x1F600), 2);
    assert_int_equal(tctl_utf8_width(0xFF21), 2);
    assert_int_equal(tctl_utf8_width(0x200D), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(carets_stand_under_what_they_mean),
        cmocka_unit_test(odd_places_are_shown_as_well_as_can_be),
        cmocka_unit_test(long_lines_are_cut_around_the_caret),
        cmocka_unit_test(notes_hints_and_colours),
        cmocka_unit_test(twenty_are_kept_and_sorted),
        cmocka_unit_test(json_has_all_of_it),
        cmocka_unit_test(utf8_is_decoded_strictly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
