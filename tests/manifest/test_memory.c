/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of traces, the stat cache and trees fails once: a clean error or a cache that forgets, never more. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "failing_alloc.h"
#include "manifest/trace.h"
#include "manifest/tree.h"

static char folder[64], path[128];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tctl-memory-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/f", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return tctl_remove_tree(folder, NULL);
}

static void traces_fail_with_out_of_memory(void **state)
{
    (void)state;
    static const tctl_trace_field fields[] = {{"a", TCTL_TRACE_F32, 0}, {"b", TCTL_TRACE_DIGEST, 0}};
    const tctl_trace_value values[2] = {{1, 0}, {2, 3}};
    FOR_EACH_FAILURE({
        tctl_trace_file *file = NULL;
        unlink(path);
        tctl_status status = tctl_trace_create(path, fields, 2, &file, NULL);
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        if (status == TCTL_OK)
            assert_int_equal(tctl_trace_append(file, 1, values, NULL), TCTL_OK);
        assert_int_equal(tctl_trace_close(file, NULL), TCTL_OK);
    });
    FOR_EACH_FAILURE({
        tctl_arena *arena = tctl_arena_create();
        tctl_trace_data *data = NULL;
        tctl_status status = arena ? tctl_trace_read(arena, path, &data, NULL) : TCTL_ENOMEM;
        assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
        assert_int_equal(data == NULL, alloc_failed);
        tctl_arena_destroy(arena);
    });
}

static struct stat old_stat(void)
{
    struct stat st;
    memset(&st, 0, sizeof st);
    st.st_mode = S_IFREG;
    st.st_mtim.tv_sec = st.st_ctim.tv_sec = 1000;
    return st;
}

static void a_cache_forgets_but_never_lies(void **state)
{
    (void)state;
    struct stat st = old_stat();
    tctl_sha256 one = tctl_sha256_of("1", 1), back;
    char name[32];
    FOR_EACH_FAILURE({
        tctl_stat_cache *cache = tctl_stat_cache_open(path, NULL);
        for (int i = 0; i < 200; i++) {
            snprintf(name, sizeof name, "/f%d", i);
            tctl_stat_cache_put(cache, name, &st, &one);
            if (tctl_stat_cache_get(cache, name, &st, &back))
                assert_true(tctl_sha256_equal(&back, &one));
            else
                assert_true(alloc_failed);
        }
        tctl_stat_cache_close(cache);
    });
    tctl_error why;
    tctl_stat_cache *cache = tctl_stat_cache_open(path, &why);
    assert_int_equal(why.code, TCTL_OK);
    assert_true(tctl_stat_cache_get(cache, "/f199", &st, &back));
    tctl_stat_cache_close(cache);
}

static void trees_fail_with_out_of_memory(void **state)
{
    (void)state;
    char name[160];
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "%s/d%d", folder, i);
        assert_int_equal(mkdir(name, 0700), 0);
        snprintf(name, sizeof name, "%s/d%d/f", folder, i);
        close(open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
    for (uint32_t threads = 1; threads <= 2; threads++) {
        tctl_pool *pool = NULL;
        assert_int_equal(tctl_pool_create(threads, &pool, NULL), TCTL_OK);
        const tctl_tree_request request = {threads > 1 ? pool : NULL, NULL, NULL, NULL};
        tctl_tree tree;
        FOR_EACH_FAILURE({
            tctl_arena *arena = tctl_arena_create();
            tctl_status status = arena ? tctl_tree_hash(folder, &request, arena, &tree, NULL) : TCTL_ENOMEM;
            assert_int_equal(status, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
            tctl_arena_destroy(arena);
        });
        assert_int_equal(tree.n_files, 5);
        tctl_pool_destroy(pool);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(traces_fail_with_out_of_memory),
        TEST(a_cache_forgets_but_never_lies),
        TEST(trees_fail_with_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
