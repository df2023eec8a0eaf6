/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of a look at a container fails once: out of memory, and never a wrong digest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing_alloc.h"
#include "manifest/content/content.h"

/* Of the fuzz targets' corpora: small files with all that a format has. */
static const char *const files[] = {
    "zip_content/torch", "zip_content/npz",  "zip_content/nested", "npy/fortran",     "npy/structured",
    "safetensors/two",   "gzip_content/npy", "torch_legacy/small", "tfrecord/events", "json_content/lines"};

static void path_of(size_t i, char out[512])
{
    const char *source = getenv("TRAINCTL_SOURCE");
    assert_non_null(source);
    snprintf(out, 512, "%s/tests/fuzz/corpus/%s", source, files[i]);
}

static void looking_fails_with_out_of_memory(void **state)
{
    static const char *const paths[] = {"time", NULL};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char path[512];
        tctl_sha256 digest = {{0}};
        const tctl_content_rules rules = {.volatile_paths =
                                              i + 1 == sizeof files / sizeof files[0] ? paths : NULL};
        path_of(i, path);
        FOR_EACH_FAILURE({
            tctl_arena *arena = tctl_arena_create();
            tctl_content content = {0};
            tctl_status st =
                arena == NULL ? TCTL_ENOMEM : tctl_content_of(arena, path, &rules, &content, NULL);
            if (st != (alloc_failed ? TCTL_ENOMEM : TCTL_OK))
                fail_msg("%s, allocation %ld: status %d", files[i], failing_, (int)st);
            assert_int_equal(content.format != NULL, !alloc_failed);
            digest = content.sha256;
            tctl_arena_destroy(arena);
        });
        assert_int_not_equal(digest.bytes[0] | digest.bytes[1] | digest.bytes[2], 0);
    }
}

static void comparing_fails_with_out_of_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i + 1 < sizeof files / sizeof files[0]; i++) {
        char a[512], b[512];
        path_of(i, a);
        path_of(i == 3 ? 4 : 3, b);
        FOR_EACH_FAILURE({
            tctl_arena *arena = tctl_arena_create();
            json_t *found = NULL;
            tctl_status st =
                arena == NULL ? TCTL_ENOMEM : tctl_content_compare(arena, a, b, NULL, &found, NULL);
            assert_int_equal(st, alloc_failed ? TCTL_ENOMEM : TCTL_OK);
            assert_int_equal(found != NULL, !alloc_failed);
            json_decref(found);
            tctl_arena_destroy(arena);
        });
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_fails_with_out_of_memory),
        cmocka_unit_test(comparing_fails_with_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
