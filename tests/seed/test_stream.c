/* SPDX-License-Identifier: Apache-2.0 */
/* Streams by name and seeds for foreign generators: golden keys, distinct streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "seed/stream.h"

/* The keys were computed with another implementation of SHA-256 (Python's hashlib). */
static void a_name_and_a_seed_give_the_documented_key(void **state)
{
    (void)state;
    static const struct {
        uint64_t seed;
        const char *name;
        uint32_t key[2];
    } cases[] = {
        {1029, "train.shuffle", {0xe385f9da, 0xdde461ad}},
        {0, "", {0x91c80c59, 0xe98b2095}},
        {UINT64_MAX, "init.conv1.weight", {0x06fc507e, 0x0408360c}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_random_address a = tctl_stream(cases[i].seed, cases[i].name, 7, 0x123456789abcdefu);
        assert_int_equal(a.key[0], cases[i].key[0]);
        assert_int_equal(a.key[1], cases[i].key[1]);
        assert_int_equal(a.when, 7);
        assert_true(a.index == 0x123456789abcdefu);
        assert_int_equal(a.reserved, 0);
    }
    assert_true(tctl_foreign_seed(1029, "torch") == 0xc886b6904832a61fu);
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void a_million_numbered_streams_differ_in_their_low_32_bits(void **state)
{
    (void)state;
    enum { N = 1000000 };
    static const uint64_t roots[] = {0, 1029};
    uint32_t *low = malloc(N * sizeof *low);
    assert_non_null(low);
    for (size_t r = 0; r < 2; r++) {
        uint32_t highest_used = 0;
        for (uint32_t i = 0; i < N; i++) {
            uint64_t seed = tctl_foreign_seed_indexed(roots[r], "torch.worker", i);
            low[i] = (uint32_t)seed;
            highest_used |= (uint32_t)(seed >> 32);
        }
        assert_int_equal(highest_used, UINT32_MAX); /* the high half is random too */
        qsort(low, N, sizeof *low, compare_u32);
        for (uint32_t i = 1; i < N; i++)
            assert_true(low[i] != low[i - 1]);
    }
    free(low);
}

static void indexed_seeds_depend_on_root_family_and_index(void **state)
{
    (void)state;
    uint64_t seed = tctl_foreign_seed_indexed(1, "numpy.worker", 0);
    assert_true(seed == tctl_foreign_seed_indexed(1, "numpy.worker", 0));
    assert_true((uint32_t)seed != (uint32_t)tctl_foreign_seed_indexed(2, "numpy.worker", 0));
    assert_true((uint32_t)seed != (uint32_t)tctl_foreign_seed_indexed(1, "torch.worker", 0));
    assert_true((uint32_t)seed != (uint32_t)tctl_foreign_seed_indexed(1, "numpy.worker", 1));
    assert_true((uint32_t)seed != (uint32_t)tctl_foreign_seed_indexed(1, "numpy.worker", UINT32_MAX));
}

/* Lightning issue 20412 of the determinism survey: derived seeds whose low word was the same for every root. */
static void seeds_of_many_roots_differ_in_their_low_32_bits(void **state)
{
    (void)state;
    enum { N = 1000 };
    uint32_t low[N];
    for (uint32_t i = 0; i < N; i++)
        low[i] = (uint32_t)tctl_foreign_seed(i, "torch");
    qsort(low, N, sizeof *low, compare_u32);
    for (uint32_t i = 1; i < N; i++)
        assert_true(low[i] != low[i - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_and_a_seed_give_the_documented_key),
        cmocka_unit_test(a_million_numbered_streams_differ_in_their_low_32_bits),
        cmocka_unit_test(indexed_seeds_depend_on_root_family_and_index),
        cmocka_unit_test(seeds_of_many_roots_differ_in_their_low_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
