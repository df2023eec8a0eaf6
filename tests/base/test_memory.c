/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the base room fails once: a clean error, no leak (under the sanitizer), and it works afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "failing_alloc.h"

static void arenas_give_null(void **state)
{
    (void)state;
    FOR_EACH_FAILURE({
        tctl_arena *arena = tctl_arena_create();
        bool all = arena != NULL;
        if (arena) {
            all = tctl_arena_take(arena, 10) != NULL && all;
            all = tctl_arena_copy(arena, "text", 4) != NULL && all;
            all = tctl_arena_format(arena, "%0100000d", 1) != NULL && all;
            all = tctl_arena_take_array(arena, 1000, 1000) != NULL && all;
        }
        assert_int_equal(all, !alloc_failed);
        tctl_arena_destroy(arena);
    });
}

static void a_buffer_breaks_and_stays_broken(void **state)
{
    (void)state;
    FOR_EACH_FAILURE({
        tctl_buf buf = TCTL_BUF_INIT;
        for (int i = 0; i < 100; i++)
            tctl_buf_add_format(&buf, "line %d\n", i);
        assert_int_equal(buf.broken, alloc_failed);
        assert_int_equal(tctl_buf_text(&buf) == NULL, alloc_failed);
        char *text = tctl_buf_detach(&buf);
        assert_int_equal(text == NULL, alloc_failed);
        free(text);
        tctl_buf_release(&buf);
    });
}

static void files_fail_with_out_of_memory(void **state)
{
    (void)state;
    char folder[] = "/tmp/tctl-memory-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char path[64];
    snprintf(path, sizeof path, "%s/f", folder);
    FOR_EACH_FAILURE({
        tctl_error err = {0};
        tctl_status status = tctl_file_replace(path, "content", 7, 0600, &err);
        /* The folder's descriptor may be had only after the rename: then the file is there, but not known durable. */
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        assert_int_equal(strncmp(err.message, "out of memory", 13) == 0, alloc_failed);
    });
    FOR_EACH_FAILURE({
        tctl_buf buf = TCTL_BUF_INIT;
        tctl_status status = tctl_file_read(path, 100, &buf, NULL);
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        assert_int_equal(buf.size, alloc_failed ? 0 : 7);
        tctl_buf_release(&buf);
    });
    snprintf(path, sizeof path, "%s/a/b/c", folder);
    FOR_EACH_FAILURE({
        tctl_status status = tctl_make_folders(path, 0700, NULL);
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
    });
    assert_int_equal(tctl_remove_tree(folder, NULL), TCTL_OK);
}

static void canonical_json_fails_with_out_of_memory(void **state)
{
    (void)state;
    json_t *value = json_pack("{s:[i,s,n], s:{s:b}}", "list", 1, "two", "object", "yes", 1);
    FOR_EACH_FAILURE({
        tctl_buf out = TCTL_BUF_INIT;
        tctl_status status = tctl_json_canonical(value, &out, NULL);
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        if (!alloc_failed)
            assert_string_equal(tctl_buf_text(&out), "{\"list\":[1,\"two\",null],\"object\":{\"yes\":true}}");
        tctl_buf_release(&out);
    });
    json_decref(value);
}

/* jansson's own allocations, through its hooks. */
static void parsing_json_fails_with_out_of_memory(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, 2.5, \"three\"], \"b\": {\"c\": null}}";
    json_set_alloc_funcs(__wrap_malloc, free);
    FOR_EACH_FAILURE({
        json_t *value = NULL;
        tctl_error err = {0};
        tctl_status status = tctl_json_parse("t", text, sizeof text - 1, &value, &err);
        if (alloc_failed)
            assert_int_not_equal(status, TCTL_OK);
        else
            assert_int_equal(status, TCTL_OK);
        assert_int_equal(value == NULL, alloc_failed);
        json_decref(value);
    });
    json_set_alloc_funcs(malloc, free);
}

static void a_pool_fails_with_out_of_memory(void **state)
{
    (void)state;
    FOR_EACH_FAILURE({
        tctl_pool *pool = NULL;
        tctl_status status = tctl_pool_create(3, &pool, NULL);
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        assert_int_equal(pool == NULL, alloc_failed);
        tctl_pool_destroy(pool);
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arenas_give_null),
        cmocka_unit_test(a_buffer_breaks_and_stays_broken),
        cmocka_unit_test(files_fail_with_out_of_memory),
        cmocka_unit_test(canonical_json_fails_with_out_of_memory),
        cmocka_unit_test(parsing_json_fails_with_out_of_memory),
        cmocka_unit_test(a_pool_fails_with_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
