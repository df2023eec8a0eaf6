/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embedding: y[t] = weight[token[t]], a learned row for each token number.
 *
 * dweight[v] is the sum of dy over the positions whose token is v, by the leaves and the tree of all positions: terms of
 * other tokens are left out, and so are leaves without a term. Positions are put into one bucket per row, in ascending
 * order; a row's sum then goes through its bucket once, with a stack of partial sums. Two partial sums are joined when
 * the next term lies outside the smallest subtree that holds both, which is when the whole tree would join them.
 */
#include "engine/conv.h"
#include "engine/op.h"

typedef struct plan {
    int64_t rows, features, positions; /* positions of a sample */
    double deviation;
    tctl_leaves leaves;
    uint32_t leaf_bits; /* 2^leaf_bits is the least power of two >= leaves.per_unit */
    size_t starts; /* where the buckets' starts begin in the shared memory; the buckets are before them */
} plan;

enum { MAX_DEPTH = 64 };

static tctl_status infer(const tctl_op_site *site, tctl_operation *self, tctl_error *err)
{
    plan *p = tctl_arena_take(site->arena, sizeof *p);
    if (!p)
        return tctl_op_fail_memory(self, err);
    tctl_status st = tctl_op_int(self, "vocabulary", &p->rows, err);
    if (!st)
        st = tctl_op_int(self, "out", &p->features, err);
    if (!st)
        st = tctl_op_real(self, "deviation", &p->deviation, err);
    if (st)
        return st;
    p->positions = self->in[0].height;
    p->leaves = tctl_leaves_of(p->positions, 1);
    while (((int64_t)1 << p->leaf_bits) < p->leaves.per_unit)
        p->leaf_bits++;
    p->starts = (size_t)p->positions * site->max_batch;
    self->plan = p;
    self->vocabulary = p->rows;
    self->out = (tctl_shape){2, p->positions, 1, p->features};
    self->shared_floats = p->starts + (size_t)p->rows + 1;
    self->scratch_floats = MAX_DEPTH * (size_t)p->features;
    return tctl_op_add_parameter(site, self, "weight", 2, (const int64_t[]){p->rows, p->features},
                                 TCTL_PARAMETER_LOOKUP, err);
}

static void initialize(const tctl_op_site *site, tctl_operation *self)
{
    tctl_op_init_normal(site, self, 0, ((const plan *)self->plan)->deviation);
}

/* Positions. */
static void forward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    (void)thread;
    const tctl_operation *self = call->self;
    const int64_t features = ((const plan *)self->plan)->features;
    for (int64_t r = first; r < last; r++)
        memcpy(self->y + r * features, self->param[0] + call->tokens[r] * features,
               (size_t)features * sizeof(float));
}

static void forward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    tctl_op_ranges(call, call->n * p->positions, TCTL_OP_GRAIN / p->features + 1, forward_range);
}

/* ---- backward ------------------------------------------------------------------------------------------ */

/* Positions sorted by token, ascending within: those of row v are buckets[starts[v]] .. buckets[starts[v + 1] - 1]. */
static void fill_buckets(const tctl_op_call *call, int32_t *buckets, int32_t *starts)
{
    const plan *p = call->self->plan;
    const int64_t n = call->n * p->positions;
    memset(starts, 0, ((size_t)p->rows + 1) * sizeof *starts);
    for (int64_t r = 0; r < n; r++)
        starts[call->tokens[r] + 1]++;
    for (int64_t v = 0; v < p->rows; v++)
        starts[v + 1] += starts[v];
    for (int64_t r = n; r-- > 0;) /* from the end, each start goes down to where it belongs */
        buckets[--starts[call->tokens[r] + 1]] = (int32_t)r;
    memmove(starts, starts + 1, (size_t)p->rows * sizeof *starts);
    starts[p->rows] = (int32_t)n;
}

/* The place of a position's leaf in the tree: leaves of a unit are a subtree, units are joined above it. */
static int64_t leaf_of(const plan *p, int64_t position)
{
    const int64_t sample = position / p->positions, t = position % p->positions;
    return p->leaves.per_unit == 1 ? sample / p->leaves.samples : sample << p->leaf_bits | t / p->leaves.rows;
}

static void add_to(float *restrict left, const float *restrict right, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        left[j] += right[j];
}

/* Joins what is on the stack and has the same subtree of 2^level leaves as its top. */
static uint32_t join(float *slots, const int64_t *leaves, uint32_t depth, uint32_t level, int64_t width)
{
    while (depth > 1 && leaves[depth - 1] >> level == leaves[depth - 2] >> level) {
        add_to(slots + (depth - 2) * (size_t)width, slots + (depth - 1) * (size_t)width, width);
        depth--;
    }
    return depth;
}

/* The largest level at which the leaves are in different subtrees. */
static uint32_t level_between(int64_t a, int64_t b)
{
    uint32_t level = 0;
    while (a >> (level + 1) != b >> (level + 1))
        level++;
    return level;
}

static void sum_row(const tctl_op_call *call, const int32_t *bucket, int64_t n, float *slots, float *grad)
{
    const plan *p = call->self->plan;
    const int64_t width = p->features;
    int64_t leaves[MAX_DEPTH];
    uint32_t depth = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t leaf = leaf_of(p, bucket[i]);
        if (depth == 0 || leaf != leaves[depth - 1]) {
            if (depth > 0)
                depth = join(slots, leaves, depth, level_between(leaves[depth - 1], leaf), width);
            memset(slots + depth * (size_t)width, 0, (size_t)width * sizeof *slots);
            leaves[depth++] = leaf;
        }
        add_to(slots + (depth - 1) * (size_t)width, call->self->dy + bucket[i] * width, width);
    }
    if (depth == 0)
        memset(slots, 0, (size_t)width * sizeof *slots);
    join(slots, leaves, depth, MAX_DEPTH - 2, width);
    tctl_op_store_gradient(call, grad, slots, width);
}

/* Rows of the table. */
static void backward_range(const tctl_op_call *call, int64_t first, int64_t last, uint32_t thread)
{
    const plan *p = call->self->plan;
    const int32_t *buckets = (const int32_t *)(const void *)call->shared, *starts = buckets + p->starts;
    for (int64_t v = first; v < last; v++)
        sum_row(call, buckets + starts[v], starts[v + 1] - starts[v], tctl_op_scratch(call, thread),
                call->self->grad[0] + v * p->features);
}

static void backward(const tctl_op_call *call)
{
    const plan *p = call->self->plan;
    int32_t *buckets = (int32_t *)(void *)call->shared;
    fill_buckets(call, buckets, buckets + p->starts);
    tctl_op_ranges(call, p->rows, 1, backward_range);
}

const tctl_op tctl_op_embedding = {
    .schema = &tctl_network_op_table[TCTL_OP_EMBEDDING],
    .flags = TCTL_OP_TAKES_TOKENS,
    .infer = infer,
    .initialize = initialize,
    .forward = forward,
    .backward = backward,
};
