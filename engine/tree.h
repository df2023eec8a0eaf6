/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums over a batch: fixed leaves, joined by one fixed binary tree.
 *
 * A sum over (sample, row, column) is never one chain and never split by thread. Its positions are cut into
 * leaves; each leaf is one chain in ascending order from +0; leaves are joined by the tree over their number:
 * neighbours first, (0 + 1) + (2 + 3), an odd last one passes up unchanged. How leaves are cut depends on the
 * size of the image only (tctl_leaves_of): not on the batch, the threads, or the processor. This file is the only
 * place that knows leaf sizes and the shape of the tree.
 *
 * docs/numerics.md has the definition in formulas.
 */
#ifndef TCTL_ENGINE_TREE_H
#define TCTL_ENGINE_TREE_H

#include <stddef.h>
#include <stdint.h>

/* ---- how leaves are cut -------------------------------------------------------------------------------- */

#if defined(TRAINCTL_FREE_ORDER)
enum {
    TCTL_LEAF_TERMS = 1 << 15,
    TCTL_LEAF_SAMPLES = 1 << 15
}; /* nearly one chain, to measure what leaves cost */
#else
enum { TCTL_LEAF_TERMS = 1024, TCTL_LEAF_SAMPLES = 64 };
#endif

/*
 * Positions are grouped into units of whole samples, and the tree runs over the units. Small images: a unit is one
 * leaf of `samples` consecutive samples, the largest power of two that keeps it within TCTL_LEAF_TERMS positions
 * and TCTL_LEAF_SAMPLES samples. Images of more than TCTL_LEAF_TERMS positions: a unit is one sample, itself a tree
 * over leaves of `rows` consecutive rows of the image, the largest power of two that keeps a leaf within
 * TCTL_LEAF_TERMS positions (at least one row).
 */
typedef struct tctl_leaves {
    int64_t height, width; /* of the image */
    int64_t samples;       /* per unit, 1..TCTL_LEAF_SAMPLES */
    int64_t rows;          /* per leaf; `height` if a leaf holds whole samples */
    int64_t per_unit;      /* leaves of a unit; 1 unless the image is large */
} tctl_leaves;

tctl_leaves tctl_leaves_of(int64_t height, int64_t width);
/* Units of a batch of n samples; the last may be incomplete. */
static inline int64_t tctl_leaves_units(const tctl_leaves *l, int64_t n)
{
    return (n + l->samples - 1) / l->samples;
}
/* The positions first..last-1 (numbered (sample * height + row) * width + column) of leaf `leaf` of unit `unit`
 * in a batch of n samples. */
void tctl_leaves_range(const tctl_leaves *, int64_t n, int64_t unit, int64_t leaf, int64_t *ret_first,
                       int64_t *ret_last);

/* ---- joining values that are all there ----------------------------------------------------------------- */

/* values[i * stride + j], i < n, j < width: joins over i, for each j; the sums are in values[0..width-1]. */
void tctl_tree_join(float *values, int64_t n, size_t stride, size_t width);

/* ---- joining leaves as they come ----------------------------------------------------------------------- */

/*
 * The same tree over leaves that are too wide to keep: a binary counter of partial sums, as deep as the logarithm of
 * their number. The caller writes the next leaf to the slot, then pushes it:
 *
 *     tctl_tree_begin(&tree, memory, width);
 *     for each unit: { for each leaf: { write tctl_tree_slot(&tree); tctl_tree_push(&tree); } tctl_tree_end_unit(…); }
 *     sums = tctl_tree_finish(&tree);
 */
enum { TCTL_TREE_MAX_DEPTH = 64 };

typedef struct tctl_tree {
    float *slots; /* [tctl_tree_slots][width] */
    size_t width;
    uint32_t depth;
    uint8_t level[TCTL_TREE_MAX_DEPTH]; /* leaves below a slot's sum: up to 2^level */
} tctl_tree;

/* Slots that are needed for n_units units of leaves. */
uint32_t tctl_tree_slots(const tctl_leaves *, int64_t n_units);
void tctl_tree_begin(tctl_tree *, float *slots, size_t width);
float *tctl_tree_slot(tctl_tree *);
void tctl_tree_push(tctl_tree *);
/* The unit's leaves become one value. */
void tctl_tree_end_unit(tctl_tree *, const tctl_leaves *);
/* The sums, in the first slot; at least one leaf was pushed. */
float *tctl_tree_finish(tctl_tree *);

#endif
