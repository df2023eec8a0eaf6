/* SPDX-License-Identifier: Apache-2.0 */
/* The memory plan: what is needed at the same time never overlaps, and what is not shares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/plan.h"
#include "numbers.h"

static void spans_that_meet_do_not_overlap(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 200; round++) {
        tctl_span spans[60];
        int32_t n = (int32_t)(next_number(&random) % 60) + 1;
        for (int32_t i = 0; i < n; i++) {
            int32_t from = (int32_t)(next_number(&random) % 40);
            spans[i] = (tctl_span){.bytes = next_number(&random) % 5000 + 1,
                                   .from = from,
                                   .to = from + (int32_t)(next_number(&random) % 20)};
        }
        size_t total = tctl_plan_spans(spans, n);
        for (int32_t i = 0; i < n; i++) {
            assert_int_equal(spans[i].offset % 64, 0);
            assert_true(spans[i].offset + spans[i].bytes <= total);
            for (int32_t k = 0; k < i; k++) {
                bool meet = spans[i].from <= spans[k].to && spans[k].from <= spans[i].to;
                bool apart = spans[i].offset + spans[i].bytes <= spans[k].offset ||
                             spans[k].offset + spans[k].bytes <= spans[i].offset;
                assert_true(!meet || apart);
            }
        }
    }
}

static void a_chain_needs_two_buffers(void **state)
{
    (void)state;
    tctl_span spans[10];
    for (int32_t i = 0; i < 10; i++)
        spans[i] = (tctl_span){.bytes = 640, .from = i, .to = i + 1};
    assert_int_equal(tctl_plan_spans(spans, 10), 2 * 640);
    assert_int_equal(tctl_plan_spans(spans, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_that_meet_do_not_overlap),
        cmocka_unit_test(a_chain_needs_two_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
