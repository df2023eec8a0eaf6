/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: alignment, zeroes, sizes around the block's, overflow. */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 7, 16, 17, 4000, 65535, 65536, 65537, 1000000, 3};
    enum { N = sizeof sizes / sizeof sizes[0], ROUNDS = 20 };
    tctl_arena *arena = tctl_arena_create();
    unsigned char *taken[N * ROUNDS];
    for (size_t i = 0; i < N * ROUNDS; i++) {
        size_t size = sizes[i % N];
        unsigned char *p = tctl_arena_take(arena, size);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(p[k], 0);
        memset(p, (int)(i % 255) + 1, size);
        taken[i] = p;
    }
    /* Nobody wrote into another's memory. */
    for (size_t i = 0; i < N * ROUNDS; i++) {
        for (size_t k = 0; k < sizes[i % N]; k++)
            assert_int_equal(taken[i][k], i % 255 + 1);
    }
    tctl_arena_destroy(arena);
    tctl_arena_destroy(NULL);
}

static void a_large_piece_does_not_end_the_block(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    char *first = tctl_arena_take(arena, 16);
    assert_non_null(tctl_arena_take(arena, 10 << 20));
    assert_ptr_equal(tctl_arena_take(arena, 16), first + 16);
    tctl_arena_destroy(arena);
}

static void sizes_that_overflow_give_null(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    assert_null(tctl_arena_take(arena, SIZE_MAX));
    assert_null(tctl_arena_take(arena, SIZE_MAX - 8));
    assert_null(tctl_arena_take_array(arena, SIZE_MAX / 2, 3));
    assert_null(tctl_arena_take_array(arena, (size_t)1 << 32, (size_t)1 << 32));
    assert_null(tctl_arena_copy(arena, "x", SIZE_MAX));
    assert_non_null(tctl_arena_take(arena, 0));
    assert_non_null(tctl_arena_take_array(arena, 0, 100));
    tctl_arena_destroy(arena);
}

static void text_is_copied_and_formatted(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    assert_string_equal(tctl_arena_copy(arena, "abcdef", 3), "abc");
    assert_string_equal(tctl_arena_copy(arena, NULL, 0), "");
    assert_string_equal(tctl_arena_format(arena, "%d-%s", 7, "x"), "7-x");
    assert_int_equal(strlen(tctl_arena_format(arena, "%0200000d", 0)), 200000);
    tctl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
        cmocka_unit_test(a_large_piece_does_not_end_the_block),
        cmocka_unit_test(sizes_that_overflow_give_null),
        cmocka_unit_test(text_is_copied_and_formatted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
