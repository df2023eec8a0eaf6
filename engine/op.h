/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator is, inside the engine: one file op_<name>.c each, one struct tctl_op, listed in op_table.c.
 *
 * The builder (build.c) asks an operator for its shapes, parameters and memory (`infer`), lays all memory out, and
 * binds pointers. After that `forward`, `backward` and `evaluate` only compute: they allocate nothing and cannot
 * fail. They cut their work into chunks for the pool; a chunk writes what is its own, and what it computes does not
 * depend on how the work was cut.
 */
#ifndef TCTL_ENGINE_OP_H
#define TCTL_ENGINE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/pool.h"
#include "engine/gemm/gemm.h"
#include "engine/network.h"
#include "engine/patches.h"

/*
 * Of one sample, channels last. Rank 3 is an image, height x width x channels. Rank 2 is a sequence: `height` positions
 * with `channels` features each, width 1; what works on pixels works on positions. Rank 1 is features: 1 x 1 x channels.
 */
typedef struct tctl_shape {
    int32_t rank; /* 1, 2 or 3 */
    int64_t height, width, channels;
} tctl_shape;

static inline int64_t tctl_shape_count(const tctl_shape *s)
{
    return s->height * s->width * s->channels;
}

enum { TCTL_OP_MAX_PARAMETERS = 2, TCTL_OP_MAX_BUFFERS = 2, TCTL_OP_TEXT = 64 };

typedef struct tctl_op tctl_op;

/* What follows an operator and is computed in the same pass (fuse.c). `out` is then what comes out behind it. */
typedef struct tctl_tail {
    bool relu;
    const tctl_window *pool; /* a max-pool whose windows do not overlap, behind the ReLU; NULL: none */
} tctl_tail;

/* A node of the model, at work. */
typedef struct tctl_operation {
    const tctl_op *op;
    const char *name;      /* of the node; lives as long as the network */
    const tctl_node *node; /* NULL once the network is built */
    uint32_t n_inputs;
    int32_t sources
        [TCTL_NODE_MAX_INPUTS]; /* operations that compute the inputs, or TCTL_MODEL_INPUT; never an alias */
    tctl_shape in[TCTL_NODE_MAX_INPUTS];
    uint32_t flags; /* TCTL_OP_… below: the operator's, and what fuse.c makes of them */

    /* filled by `infer` */
    tctl_shape out;
    void *plan; /* the operator's own, from the arena */
    uint32_t n_parameters, n_buffers;
    tctl_parameter parameters[TCTL_OP_MAX_PARAMETERS], buffers[TCTL_OP_MAX_BUFFERS];
    const char *streams[TCTL_OP_MAX_PARAMETERS]; /* of their initial values */
    size_t saved_bytes;                          /* kept from the training forward to the backward */
    size_t shared_floats;                        /* scratch of one call, all threads together */
    size_t scratch_floats;                       /* scratch of one call, for each thread */
    int64_t vocabulary;                          /* token numbers are below it; 0: it takes none */

    /* filled by fuse.c */
    tctl_tail tail;
    const struct tctl_operation *summed; /* the batch-norm whose leaves are summed with the output (conv) */
    const struct tctl_operation
        *before; /* x is the x of this batch-norm, which is applied when x is read (conv) */
    const struct tctl_operation *lender; /* dy is NULL: made in pieces from this one's (conv_borrow.c) */

    /* bound by the builder; x of the network's input changes with each batch */
    const float *x[TCTL_NODE_MAX_INPUTS]; /* [n, in[j]] */
    float *y;                             /* [n, out]; may be x[0] if the operator is IN_PLACE */
    float *dx[TCTL_NODE_MAX_INPUTS];      /* NULL: nobody needs it; dx[0] may be dy if GRADIENT_IN_PLACE */
    bool add_dx[TCTL_NODE_MAX_INPUTS];    /* another reader has written: add to what is there */
    const float *dy;                      /* [n, out] */
    float *param[TCTL_OP_MAX_PARAMETERS], *grad[TCTL_OP_MAX_PARAMETERS], *buffer[TCTL_OP_MAX_BUFFERS];
    void *saved;
} tctl_operation;

/* What `infer` is given besides the operation. */
typedef struct tctl_op_site {
    tctl_arena *arena;
    const tctl_simd *simd;
    uint32_t max_batch;
    uint64_t seed;
} tctl_op_site;

/* What one forward or backward is given. */
typedef struct tctl_op_call {
    const tctl_operation *self;
    const tctl_network_batch *batch;
    int64_t n;             /* samples */
    const int32_t *tokens; /* [n, positions] if the network's input is token numbers */
    tctl_pool *pool;
    const tctl_simd *simd;
    float *shared;
    float *scratch; /* [threads][scratch_stride] */
    size_t scratch_stride;
} tctl_op_call;

static inline float *tctl_op_scratch(const tctl_op_call *call, uint32_t thread)
{
    return call->scratch + thread * call->scratch_stride;
}

enum {
    TCTL_OP_KEEPS_INPUT = 1u << 0,       /* backward reads x */
    TCTL_OP_KEEPS_OUTPUT = 1u << 1,      /* backward reads y */
    TCTL_OP_IN_PLACE = 1u << 2,          /* y may be x[0] */
    TCTL_OP_GRADIENT_IN_PLACE = 1u << 3, /* dx[0] may be dy, unless add_dx[0] */
    TCTL_OP_ALIAS = 1u << 4,        /* y is x[0], perhaps under another shape; there is nothing to compute */
    TCTL_OP_TAKES_TOKENS = 1u << 5, /* its input is token numbers, call->tokens; there is no x */
    TCTL_OP_SUMMED = 1u << 6,       /* the operation before it sums its leaves (batchnorm) */
    TCTL_OP_DEFERRED = 1u << 8,     /* y is never stored: the operation behind it computes it when it reads */
    TCTL_OP_LENDS = 1u << 7         /* its dx is never stored: the operation before it asks for pieces */
};

struct tctl_op {
    const tctl_op_schema *schema;
    uint32_t flags; /* TCTL_OP_… below */
    /* Shapes, parameters, memory. TCTL_ESPEC, through tctl_op_fail, if the operator does not fit. */
    tctl_status (*infer)(const tctl_op_site *, tctl_operation *, tctl_error *);
    /* Initial parameters and buffers; NULL if there are none. */
    void (*initialize)(const tctl_op_site *, tctl_operation *);
    /* y from x, in training mode. */
    void (*forward)(const tctl_op_call *);
    /* dx (where not NULL) from dy; adds to or overwrites `grad` as the batch says. */
    void (*backward)(const tctl_op_call *);
    /* y from x in evaluation mode; NULL: the same as forward. */
    void (*evaluate)(const tctl_op_call *);
};

/* ---- for writing operators (op.c) ---------------------------------------------------------------------- */

/* TCTL_ESPEC "operator 'NAME' (OP): …". */
tctl_status tctl_op_fail(const tctl_operation *, tctl_error *err, const char *fmt, ...) TCTL_COLD
    TCTL_PRINTF(3, 4);
tctl_status tctl_op_fail_memory(const tctl_operation *, tctl_error *err) TCTL_COLD;

/* "28 x 28 x 1", "64 x 128" or "128": for messages. */
const char *tctl_shape_text(const tctl_shape *, char out[TCTL_OP_TEXT]);

/* An option of the node, else the table's default; checked against the table's range. */
tctl_status tctl_op_int(const tctl_operation *, const char *option, int64_t *ret, tctl_error *err);
tctl_status tctl_op_real(const tctl_operation *, const char *option, double *ret, tctl_error *err);
tctl_status tctl_op_bool(const tctl_operation *, const char *option, bool *ret, tctl_error *err);
/* Which of the option's words. */
tctl_status tctl_op_choice(const tctl_operation *, const char *option, uint32_t *ret, tctl_error *err);

/* Declares the next parameter (trained) or buffer (not trained) "NODE.name". */
tctl_status tctl_op_add_parameter(const tctl_op_site *, tctl_operation *, const char *name, int32_t rank,
                                  const int64_t *dims, uint32_t flags, tctl_error *err);
/* "PREFIX.NODE": the name of a stream; from the arena, NULL if memory is out. */
const char *tctl_op_stream_name(const tctl_op_site *, const tctl_operation *, const char *prefix);
tctl_status tctl_op_add_buffer(const tctl_op_site *, tctl_operation *, const char *name, int64_t channels,
                               tctl_error *err);

/* Initial values of parameter i from the stream "init.NODE.name", draw = element. */
void tctl_op_init_normal(const tctl_op_site *, tctl_operation *, uint32_t i, double deviation);
void tctl_op_init_uniform(const tctl_op_site *, tctl_operation *, uint32_t i,
                          double bound); /* [-bound, bound) */
void tctl_op_init_constant(tctl_operation *, uint32_t i, float value);

/* Calls fn on first..last-1 of 0..total-1 in chunks of `grain`, on the pool. */
typedef void tctl_range_fn(const tctl_op_call *, int64_t first, int64_t last, uint32_t thread);
void tctl_op_ranges(const tctl_op_call *, int64_t total, int64_t grain, tctl_range_fn *fn);
/* Elements of one chunk of an elementwise operator: what fits the first-level cache. */
enum { TCTL_OP_GRAIN = 4096 };

/* ---- all operators (op_table.c) ------------------------------------------------------------------------ */

/* Places in tctl_network_op_table. */
enum {
    TCTL_OP_CONV,
    TCTL_OP_LINEAR,
    TCTL_OP_BATCHNORM,
    TCTL_OP_RELU,
    TCTL_OP_MAXPOOL,
    TCTL_OP_GLOBALAVGPOOL,
    TCTL_OP_ADD,
    TCTL_OP_FLATTEN,
    TCTL_OP_DROPOUT,
    TCTL_OP_GELU,
    TCTL_OP_SILU,
    TCTL_OP_SIGMOID,
    TCTL_OP_TANH,
    TCTL_OP_SCALE,
    TCTL_OP_AVGPOOL,
    TCTL_OP_CONCAT,
    TCTL_OP_TOKENS,
    TCTL_OP_LAYERNORM,
    TCTL_OP_EMBEDDING,
    TCTL_OP_POSITION,
    TCTL_OP_ATTENTION,
    TCTL_OP_CONVTRANSPOSE
};

extern const tctl_op tctl_op_conv, tctl_op_linear, tctl_op_batchnorm, tctl_op_relu, tctl_op_maxpool,
    tctl_op_globalavgpool, tctl_op_add, tctl_op_flatten, tctl_op_dropout, tctl_op_gelu, tctl_op_silu,
    tctl_op_sigmoid, tctl_op_tanh, tctl_op_scale, tctl_op_avgpool, tctl_op_concat, tctl_op_tokens,
    tctl_op_layernorm, tctl_op_embedding, tctl_op_position, tctl_op_attention, tctl_op_convtranspose;

/* NULL if there is none of that name. */
const tctl_op *tctl_op_find(const char *name);

#endif
