/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves and the tree: how positions are cut, and that the two ways of joining agree bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/tree.h"
#include "numbers.h"

static void leaves_depend_on_the_image_only(void **state)
{
    (void)state;
    static const struct {
        int64_t h, w, samples, rows, per_unit;
    } cases[] = {{1, 1, 64, 1, 1},   {4, 4, 64, 4, 1},   {7, 7, 16, 7, 1},   {14, 14, 4, 14, 1},
                 {28, 28, 1, 28, 1}, {32, 32, 1, 32, 1}, {33, 32, 1, 32, 2}, {224, 224, 1, 4, 56},
                 {5, 600, 1, 1, 5},  {3, 5000, 1, 1, 3}, {1, 1025, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_leaves l = tctl_leaves_of(cases[i].h, cases[i].w);
        assert_int_equal(l.samples, cases[i].samples);
        assert_int_equal(l.rows, cases[i].rows);
        assert_int_equal(l.per_unit, cases[i].per_unit);
    }
}

static void leaves_cover_every_position_once(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 130}, {7, 7, 35}, {14, 14, 5}, {40, 33, 3}, {5, 600, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tctl_leaves l = tctl_leaves_of(sizes[i][0], sizes[i][1]);
        int64_t n = sizes[i][2], next = 0;
        for (int64_t unit = 0; unit < tctl_leaves_units(&l, n); unit++) {
            for (int64_t leaf = 0; leaf < l.per_unit; leaf++) {
                int64_t first, last;
                tctl_leaves_range(&l, n, unit, leaf, &first, &last);
                assert_int_equal(first, next);
                assert_true(last > first);
                next = last;
            }
        }
        assert_int_equal(next, n * sizes[i][0] * sizes[i][1]);
    }
}

/* As it is defined: neighbours join, an odd last one passes up. */
static float by_levels(const float *v, int64_t first, int64_t n)
{
    float level[512];
    memcpy(level, v + first, (size_t)n * sizeof *v);
    for (; n > 1; n = (n + 1) / 2) {
        for (int64_t i = 0; i < (n + 1) / 2; i++)
            level[i] = 2 * i + 1 < n ? level[2 * i] + level[2 * i + 1] : level[2 * i];
    }
    return level[0];
}

static void joining_at_once_and_one_by_one_agree(void **state)
{
    (void)state;
    float v[300], w[600], slots[80 * 2];
    const tctl_leaves single = tctl_leaves_of(28, 28);
    for (int64_t n = 1; n <= 300; n++) {
        fill_floats(v, 300, (uint64_t)n);
        for (int64_t i = 0; i < n; i++) {
            w[2 * i] = v[i];
            w[2 * i + 1] = -v[i];
        }
        tctl_tree tree;
        assert_true(tctl_tree_slots(&single, n) <= 80);
        tctl_tree_begin(&tree, slots, 2);
        for (int64_t i = 0; i < n; i++) {
            memcpy(tctl_tree_slot(&tree), w + 2 * i, 2 * sizeof *w);
            tctl_tree_push(&tree);
            tctl_tree_end_unit(&tree, &single);
        }
        float expected = by_levels(v, 0, n), *got = tctl_tree_finish(&tree);
        tctl_tree_join(w, n, 2, 2);
        assert_true(w[0] == expected && w[1] == -expected);
        assert_true(got[0] == expected && got[1] == -expected);
    }
}

/* Large images: a sample is a tree of its leaves, the batch a tree of its samples. */
static void units_of_many_leaves_join_as_units(void **state)
{
    (void)state;
    float v[400], slots[80], units[40];
    for (int64_t height = 33; height < 330; height += 37) {
        const tctl_leaves l = tctl_leaves_of(height, 32 * 7);
        for (int64_t n = 1; n <= 9; n++) {
            if (n * l.per_unit > 400)
                continue;
            fill_floats(v, 400, (uint64_t)(height + n));
            tctl_tree tree;
            tctl_tree_begin(&tree, slots, 1);
            for (int64_t u = 0; u < n; u++) {
                for (int64_t leaf = 0; leaf < l.per_unit; leaf++) {
                    *tctl_tree_slot(&tree) = v[u * l.per_unit + leaf];
                    tctl_tree_push(&tree);
                    assert_true(tree.depth < tctl_tree_slots(&l, n));
                }
                tctl_tree_end_unit(&tree, &l);
                units[u] = by_levels(v, u * l.per_unit, l.per_unit);
            }
            assert_true(*tctl_tree_finish(&tree) == by_levels(units, 0, n));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_depend_on_the_image_only),
        cmocka_unit_test(leaves_cover_every_position_once),
        cmocka_unit_test(joining_at_once_and_one_by_one_agree),
        cmocka_unit_test(units_of_many_leaves_join_as_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
