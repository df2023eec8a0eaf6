/* SPDX-License-Identifier: Apache-2.0 */
/* The buffer: always terminated, broken once and for all at its limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void an_empty_buffer_is_an_empty_text(void **state)
{
    (void)state;
    tctl_buf buf = TCTL_BUF_INIT;
    assert_string_equal(tctl_buf_text(&buf), "");
    tctl_buf_add(&buf, NULL, 0);
    assert_string_equal(tctl_buf_text(&buf), "");
    char *text = tctl_buf_detach(&buf);
    assert_string_equal(text, "");
    free(text);
    tctl_buf_release(&buf);
    tctl_buf_release(&buf); /* twice is fine */
}

static void appended_pieces_make_one_text(void **state)
{
    (void)state;
    tctl_buf buf = TCTL_BUF_INIT;
    tctl_buf_add_text(&buf, "one");
    tctl_buf_add_char(&buf, ' ');
    tctl_buf_add_format(&buf, "%d %s", 2, "three");
    tctl_buf_add(&buf, "\0x", 2);
    assert_int_equal(buf.size, 13);
    assert_memory_equal(buf.data, "one 2 three\0x", 14);
    tctl_buf_clear(&buf);
    assert_string_equal(tctl_buf_text(&buf), "");
    for (int i = 0; i < 100000; i++)
        tctl_buf_add_char(&buf, (char)('a' + i % 26));
    assert_int_equal(strlen(tctl_buf_text(&buf)), 100000);
    assert_int_equal(buf.data[99999], 'a' + 99999 % 26);
    char *text = tctl_buf_detach(&buf);
    assert_int_equal(strlen(text), 100000);
    assert_string_equal(tctl_buf_text(&buf), ""); /* empty again, and usable */
    tctl_buf_add_text(&buf, "more");
    assert_string_equal(tctl_buf_text(&buf), "more");
    free(text);
    tctl_buf_release(&buf);
}

static void the_limit_breaks_it(void **state)
{
    (void)state;
    tctl_buf buf = TCTL_BUF_INIT;
    buf.limit = 5;
    tctl_buf_add_text(&buf, "12345");
    assert_string_equal(tctl_buf_text(&buf), "12345");
    tctl_buf_add_char(&buf, '6');
    assert_true(buf.broken);
    assert_null(tctl_buf_text(&buf));
    tctl_buf_add(&buf, "", 0); /* even nothing does not mend it */
    assert_null(tctl_buf_text(&buf));
    assert_null(tctl_buf_detach(&buf));
    tctl_buf_clear(&buf);
    tctl_buf_add_format(&buf, "%s", "123456");
    assert_true(buf.broken);
    tctl_buf_clear(&buf);
    tctl_buf_add_text(&buf, "1");
    assert_string_equal(tctl_buf_text(&buf), "1");
    /* A size that overflows. */
    tctl_buf_add(&buf, "", SIZE_MAX);
    assert_true(buf.broken);
    tctl_buf_release(&buf);
    assert_false(buf.broken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_buffer_is_an_empty_text),
        cmocka_unit_test(appended_pieces_make_one_text),
        cmocka_unit_test(the_limit_breaks_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
