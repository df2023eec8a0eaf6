/* SPDX-License-Identifier: Apache-2.0 */
/* See tree.h. */
#include "engine/tree.h"

#include "base/error.h"

tctl_leaves tctl_leaves_of(int64_t height, int64_t width)
{
    tctl_leaves l = {.height = height, .width = width, .samples = 1, .rows = height, .per_unit = 1};
    const int64_t positions = height * width;
    while (l.samples < TCTL_LEAF_SAMPLES && 2 * l.samples * positions <= TCTL_LEAF_TERMS)
        l.samples *= 2;
    if (positions > TCTL_LEAF_TERMS) {
        l.rows = 1;
        while (2 * l.rows * width <= TCTL_LEAF_TERMS)
            l.rows *= 2;
        l.per_unit = (height + l.rows - 1) / l.rows;
    }
    return l;
}

void tctl_leaves_range(const tctl_leaves *l, int64_t n, int64_t unit, int64_t leaf, int64_t *ret_first,
                       int64_t *ret_last)
{
    int64_t first = unit * l->samples * l->height + leaf * l->rows, last = first + l->rows * l->samples;
    int64_t end = l->per_unit == 1 ? n * l->height : (unit + 1) * l->height;
    *ret_first = first * l->width;
    *ret_last = (last < end ? last : end) * l->width;
}

static void add_to(float *restrict left, const float *restrict right, size_t width)
{
    for (size_t j = 0; j < width; j++)
        left[j] += right[j];
}

void tctl_tree_join(float *values, int64_t n, size_t stride, size_t width)
{
    for (int64_t step = 1; step < n; step *= 2) {
        for (int64_t i = 0; i + step < n; i += 2 * step)
            add_to(values + (size_t)i * stride, values + (size_t)(i + step) * stride, width);
    }
}

/* ---- the binary counter -------------------------------------------------------------------------------- */

static uint32_t log2_up(int64_t n)
{
    uint32_t bits = 0;
    while (((int64_t)1 << bits) < n)
        bits++;
    return bits;
}

uint32_t tctl_tree_slots(const tctl_leaves *l, int64_t n_units)
{
    return log2_up(n_units) + log2_up(l->per_unit) + 2;
}

void tctl_tree_begin(tctl_tree *t, float *slots, size_t width)
{
    t->slots = slots;
    t->width = width;
    t->depth = 0;
}

float *tctl_tree_slot(tctl_tree *t)
{
    return t->slots + t->depth * t->width;
}

/* The last two become one. */
static void merge(tctl_tree *t, uint8_t level)
{
    t->depth--;
    add_to(t->slots + (t->depth - 1) * t->width, t->slots + t->depth * t->width, t->width);
    t->level[t->depth - 1] = level;
}

static void carry(tctl_tree *t)
{
    while (t->depth > 1 && t->level[t->depth - 1] == t->level[t->depth - 2])
        merge(t, (uint8_t)(t->level[t->depth - 1] + 1));
}

void tctl_tree_push(tctl_tree *t)
{
    TCTL_BUG_IF(t->depth == TCTL_TREE_MAX_DEPTH);
    t->level[t->depth++] = 0;
    carry(t);
}

/* A unit's sum stands at the level that a full unit would have, so that units join only as units. */
void tctl_tree_end_unit(tctl_tree *t, const tctl_leaves *l)
{
    const uint8_t level = (uint8_t)log2_up(l->per_unit);
    if (t->level[t->depth - 1] >= level)
        return;
    while (t->depth > 1 && t->level[t->depth - 2] < level)
        merge(t, t->level[t->depth - 2]);
    t->level[t->depth - 1] = level;
    carry(t);
}

float *tctl_tree_finish(tctl_tree *t)
{
    while (t->depth > 1)
        merge(t, t->level[t->depth - 2]);
    return t->slots;
}
