/* SPDX-License-Identifier: Apache-2.0 */
/* Where two files part, and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the four above first */
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "manifest/content/content.h"

typedef struct world {
    tctl_arena *arena;
    char folder[64];
    char a[96], b[96];
} world;

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);
    w->arena = tctl_arena_create();
    snprintf(w->folder, sizeof w->folder, "/tmp/content-compare-XXXXXX");
    if (mkdtemp(w->folder) == NULL)
        return 1;
    snprintf(w->a, sizeof w->a, "%s/a", w->folder);
    snprintf(w->b, sizeof w->b, "%s/b", w->folder);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;
    tctl_remove_tree(w->folder, NULL);
    tctl_arena_destroy(w->arena);
    free(w);
    return 0;
}

static json_t *compare(world *w, const char *a, size_t n_a, const char *b, size_t n_b)
{
    tctl_error err = {0};
    json_t *found = NULL;
    assert_int_equal(tctl_file_replace(w->a, a, n_a, 0600, &err), TCTL_OK);
    assert_int_equal(tctl_file_replace(w->b, b, n_b, 0600, &err), TCTL_OK);
    assert_int_equal(tctl_content_compare(w->arena, w->a, w->b, NULL, &found, &err), TCTL_OK);
    return found;
}

static void assert_says(json_t *found, const char *words)
{
    tctl_buf text = TCTL_BUF_INIT;
    assert_non_null(found);
    tctl_content_explain(found, &text);
    assert_string_equal(tctl_buf_text(&text), words);
    tctl_buf_release(&text);
    json_decref(found);
}

static void equal_files_do_not_part(void **state)
{
    assert_null(compare(*state, "abc", 3, "abc", 3));
    assert_null(compare(*state, "", 0, "", 0));
}

static void the_first_byte_that_differs_is_named(void **state)
{
    assert_says(compare(*state, "abcdef", 6, "abXdeY", 6), "byte 2: 63 became 58; 2 bytes differ");
}

static void a_file_that_ends_earlier_is_named(void **state)
{
    assert_says(compare(*state, "abc", 3, "abcde", 5), "byte 3: the first file ends there; 2 bytes differ");
    assert_says(compare(*state, "abcde", 5, "abc", 3), "byte 3: the second file ends there; 2 bytes differ");
}

static void a_missing_file_is_an_error(void **state)
{
    world *w = *state;
    tctl_error err = {0};
    json_t *found = NULL;
    assert_int_equal(tctl_content_compare(w->arena, w->a, w->b, NULL, &found, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "cannot open"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(equal_files_do_not_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_byte_that_differs_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_ends_earlier_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_file_is_an_error, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
