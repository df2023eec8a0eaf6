/* SPDX-License-Identifier: Apache-2.0 */
/* The stateless permutation: bijective for any n, uniform, another one in every epoch. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "seed/permutation.h"
#include "seed/stream.h"

static void every_index_is_hit_once(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 60000, 65536, 65537};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        for (uint32_t epoch = 0; epoch < 3; epoch++) {
            uint64_t n = sizes[k];
            unsigned char *seen = calloc(n, 1);
            assert_non_null(seen);
            tctl_permutation p = tctl_permutation_of(1029, "train.shuffle", epoch, n);
            for (uint64_t i = 0; i < n; i++) {
                uint64_t to = tctl_permute(&p, i);
                assert_true(to < n);
                assert_int_equal(seen[to], 0);
                seen[to] = 1;
            }
            free(seen);
        }
    }
}

static void huge_domains_work(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {(uint64_t)1 << 32, ((uint64_t)1 << 40) + 1, (uint64_t)1 << 62};
    for (size_t k = 0; k < 3; k++) {
        tctl_permutation p = tctl_permutation_of(7, "x", 0, sizes[k]);
        uint64_t first = tctl_permute(&p, 0), last = tctl_permute(&p, sizes[k] - 1);
        assert_true(first < sizes[k] && last < sizes[k] && first != last);
    }
}

/* Chi-square of `cells` counts against a uniform distribution, as a number of standard deviations. */
static double excess(const uint32_t *count, uint32_t cells, double total)
{
    double chi2 = 0;
    for (uint32_t i = 0; i < cells; i++)
        chi2 += pow(count[i] - total / cells, 2) / (total / cells);
    return (chi2 - (cells - 1)) / sqrt(2.0 * (cells - 1));
}

/* The rank of a permutation of 0..n-1 among all n!. */
static uint32_t rank_of(const tctl_permutation *p)
{
    uint32_t rank = 0;
    uint64_t to[5];
    for (uint64_t i = 0; i < p->n; i++)
        to[i] = tctl_permute(p, i);
    for (uint64_t i = 0; i < p->n; i++) {
        uint32_t smaller = 0;
        for (uint64_t j = i + 1; j < p->n; j++)
            smaller += to[j] < to[i];
        rank = rank * (uint32_t)(p->n - i) + smaller;
    }
    return rank;
}

static void all_orders_of_few_samples_are_equally_likely(void **state)
{
    (void)state;
    static const uint32_t factorial[] = {1, 1, 2, 6, 24, 120};
    tctl_random_address stream = tctl_stream(1029, "train.shuffle", 0, 0);
    for (uint64_t n = 2; n <= 5; n++) {
        uint32_t count[120] = {0};
        enum { EPOCHS = 60000 };
        for (stream.when = 0; stream.when < EPOCHS; stream.when++) {
            tctl_permutation p = tctl_permutation_at(&stream, n);
            count[rank_of(&p)]++;
        }
        assert_true(fabs(excess(count, factorial[n], EPOCHS)) < 4.5);
    }
}

static void a_sample_goes_anywhere_and_its_neighbour_elsewhere(void **state)
{
    (void)state;
    enum { N = 1000, EPOCHS = 100000 };
    uint32_t place[N] = {0}, distance[N] = {0};
    tctl_random_address stream = tctl_stream(3, "uniformity", 0, 0);
    for (stream.when = 0; stream.when < EPOCHS; stream.when++) {
        tctl_permutation p = tctl_permutation_at(&stream, N);
        uint64_t a = tctl_permute(&p, 500), b = tctl_permute(&p, 501);
        place[a]++;
        distance[(b + N - a) % N]++;
    }
    assert_int_equal(distance[0], 0);
    assert_true(fabs(excess(place, N, EPOCHS)) < 4.5);
    assert_true(fabs(excess(distance + 1, N - 1, EPOCHS)) < 4.5);
}

static void within_one_epoch_steps_are_of_any_length(void **state)
{
    (void)state;
    enum { N = 60000, CELLS = 100 };
    uint32_t count[CELLS] = {0};
    tctl_permutation p = tctl_permutation_of(1029, "train.shuffle", 0, N);
    for (uint64_t i = 0; i + 1 < N; i++)
        count[(tctl_permute(&p, i + 1) + N - tctl_permute(&p, i)) % N * CELLS / N]++;
    assert_true(fabs(excess(count, CELLS, N - 1)) < 4.5);
}

static void epochs_sizes_seeds_and_names_give_other_orders(void **state)
{
    (void)state;
    enum { N = 60000 };
    tctl_permutation p = tctl_permutation_of(1029, "train.shuffle", 0, N),
                     others[] = {
                         tctl_permutation_of(1029, "train.shuffle", 1, N),
                         tctl_permutation_of(1029, "train.shuffle", 0, N - 1),
                         tctl_permutation_of(1030, "train.shuffle", 0, N),
                         tctl_permutation_of(1029, "test.shuffle", 0, N),
                     };
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        uint32_t equal = 0;
        for (uint64_t i = 0; i < N - 1; i++)
            equal += tctl_permute(&p, i) == tctl_permute(&others[k], i);
        assert_true(equal < 10); /* one expected */
    }
}

/* Recorded runs depend on it. */
static void the_order_never_changes(void **state)
{
    (void)state;
    tctl_permutation p = tctl_permutation_of(1029, "train.shuffle", 0, 60000);
    static const uint64_t want[] = {52166, 18245, 18779, 16593};
    static const uint64_t from[] = {0, 1, 2, 59999};
    for (size_t i = 0; i < 4; i++)
        assert_true(tctl_permute(&p, from[i]) == want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_hit_once),
        cmocka_unit_test(huge_domains_work),
        cmocka_unit_test(all_orders_of_few_samples_are_equally_likely),
        cmocka_unit_test(a_sample_goes_anywhere_and_its_neighbour_elsewhere),
        cmocka_unit_test(within_one_epoch_steps_are_of_any_length),
        cmocka_unit_test(epochs_sizes_seeds_and_names_give_other_orders),
        cmocka_unit_test(the_order_never_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
