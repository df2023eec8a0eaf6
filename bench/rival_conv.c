/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See rival_conv.h. Signatures and numbers are those of dnnl.h, versions 2 and 3. Between them, descriptors became
 * objects: of version 2's structures only the address is needed, and room.
 */
#include "bench/rival_conv.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CPU = 1,
    IN_ORDER = 1,
    F32 = 3,
    ANY_FORMAT = 1,
    FORWARD_TRAINING = 64,
    ALGORITHM_AUTO = 3,
    QUERY_WEIGHTS = 131,
    QUERY_DIFF_WEIGHTS = 132,
    ARG_SRC = 1,
    ARG_DST = 17,
    ARG_WEIGHTS = 33,
    ARG_DIFF_SRC = 129,
    ARG_DIFF_DST = 145,
    ARG_DIFF_WEIGHTS = 161,
    ROOM = 8192, /* version 2: a convolution's descriptor has 5,976 bytes, a memory's 696 */
    MAX_RANK = 12
};

typedef union descriptor {
    char room[ROOM];
    void *object;
} descriptor;
typedef struct argument {
    int number;
    void *memory;
} argument;

struct bench_rival_conv {
    const bench_rival *rival;
    const bench_convolution *c;
    bool version_2;
    void *engine, *stream;
    void *plain;                        /* the descriptor of our weights */
    void *primitive, *to_ours;          /* the second is NULL unless it computes weights */
    void *memory[3], *our_weights;      /* x, y, weights */
    uintptr_t execute, wait;            /* functions that are timed */
    descriptor descriptors[5], problem; /* version 2's */
};

/* ---- the library's functions --------------------------------------------------------------------------- */

/* Ends the program if `what` failed: there is nothing to compare with. */
static void check(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench_conv: oneDNN: %s: status %d\n", what, status);
    exit(1);
}

static uintptr_t function(const bench_rival_conv *r, const char *name)
{
    void *found = dlsym(r->rival->library, name);
    check(found ? 0 : -1, name);
    return (uintptr_t)found;
}

typedef int create_engine_fn(void **engine, int kind, size_t index);
typedef int create_stream_fn(void **stream, void *engine, unsigned flags);
typedef int wait_fn(void *stream);
typedef int create_memory_fn(void **memory, const void *descriptor, void *engine, void *data);

typedef int create_reorder_fn(void **plan, const void *from, void *from_engine, const void *to,
                              void *to_engine, const void *attributes);
typedef int create_primitive_fn(void **primitive, const void *plan);
typedef int execute_fn(const void *primitive, void *stream, int n, const argument *arguments);

typedef const void *query_fn(const void *plan, int what, int index);
/* Version 3 writes the address of a new object, version 2 the descriptor itself. */
typedef int describe_fn(void *descriptor, int rank, const int64_t *dims, int type, const int64_t *strides);
typedef int describe_any_fn(void *descriptor, int rank, const int64_t *dims, int type, int tag);

typedef int forward_2_fn(void *problem, int kind, int algorithm, const void *x, const void *weights,
                         const void *bias, const void *y, const int64_t *strides, const int64_t *dilates,
                         const int64_t *pad_left, const int64_t *pad_right);
typedef int input_2_fn(void *problem, int algorithm, const void *x, const void *weights, const void *y,
                       const int64_t *strides, const int64_t *dilates, const int64_t *pad_left,
                       const int64_t *pad_right);
typedef int weight_2_fn(void *problem, int algorithm, const void *x, const void *weights, const void *bias,
                        const void *y, const int64_t *strides, const int64_t *dilates,
                        const int64_t *pad_left, const int64_t *pad_right);
typedef int plan_2_fn(void **plan, const void *problem, const void *attributes, void *engine,
                      const void *hint);
typedef int forward_3_fn(void **plan, void *engine, int kind, int algorithm, const void *x,
                         const void *weights, const void *bias, const void *y, const int64_t *strides,
                         const int64_t *dilates, const int64_t *pad_left, const int64_t *pad_right,
                         const void *attributes);
typedef int input_3_fn(void **plan, void *engine, int algorithm, const void *x, const void *weights,
                       const void *y, const int64_t *strides, const int64_t *dilates, const int64_t *pad_left,
                       const int64_t *pad_right, const void *hint, const void *attributes);
typedef int weight_3_fn(void **plan, void *engine, int algorithm, const void *x, const void *weights,
                        const void *bias, const void *y, const int64_t *strides, const int64_t *dilates,
                        const int64_t *pad_left, const int64_t *pad_right, const void *hint,
                        const void *attributes);

/* ---- descriptors --------------------------------------------------------------------------------------- */

/* strides NULL: any format. */
static void *describe(bench_rival_conv *r, int number, int rank, const int64_t *dims, const int64_t *strides)
{
    descriptor *where = &r->descriptors[number];
    if (strides) {
        const char *name =
            r->version_2 ? "dnnl_memory_desc_init_by_strides" : "dnnl_memory_desc_create_with_strides";
        check(((describe_fn *)function(r, name))(where, rank, dims, F32, strides), name);
    } else {
        const char *name = r->version_2 ? "dnnl_memory_desc_init_by_tag" : "dnnl_memory_desc_create_with_tag";
        check(((describe_any_fn *)function(r, name))(where, rank, dims, F32, ANY_FORMAT), name);
    }
    return r->version_2 ? where : where->object;
}

static void *describe_image(bench_rival_conv *r, int number, int64_t height, int64_t width, int64_t channels)
{
    const int64_t dims[MAX_RANK] = {r->c->batch, channels, height, width};
    const int64_t strides[MAX_RANK] = {height * width * channels, 1, width * channels, channels};
    return describe(r, number, 4, dims, strides);
}

static void *describe_weights(bench_rival_conv *r, int number, bool any)
{
    const bench_convolution *c = r->c;
    const int64_t in = c->in / c->groups, out = c->out / c->groups;
    const int64_t dims[MAX_RANK] = {c->groups, out, in, c->kernel, c->kernel};
    const int64_t strides[MAX_RANK] = {out, 1, c->out, c->kernel * in * c->out, in * c->out};
    const int skip = c->groups == 1;
    return describe(r, number, 5 - skip, dims + skip, any ? NULL : strides + skip);
}

/* ---- plans --------------------------------------------------------------------------------------------- */

typedef struct shape {
    void *x, *y, *weights;
    int64_t strides[MAX_RANK], dilates[MAX_RANK], left[MAX_RANK], right[MAX_RANK];
} shape;

static int64_t pad_right(const bench_convolution *c, int64_t size, int64_t out)
{
    return (out - 1) * c->stride + c->kernel - size - c->pad;
}

static shape shape_of(bench_rival_conv *r)
{
    const bench_convolution *c = r->c;
    return (shape){.x = describe_image(r, 0, c->height, c->width, c->in),
                   .y = describe_image(r, 1, c->out_height, c->out_width, c->out),
                   .weights = describe_weights(r, 2, true),
                   .strides = {c->stride, c->stride},
                   .left = {c->pad, c->pad},
                   .right = {pad_right(c, c->height, c->out_height), pad_right(c, c->width, c->out_width)}};
}

/* A gradient's plan takes the forward's as a hint. */
static void *plan_2(bench_rival_conv *r, const shape *s, bench_direction direction, void *hint)
{
    void *plan = NULL;
    if (direction == BENCH_FORWARD)
        check(((forward_2_fn *)function(r, "dnnl_dilated_convolution_forward_desc_init"))(
                  &r->problem, FORWARD_TRAINING, ALGORITHM_AUTO, s->x, s->weights, NULL, s->y, s->strides,
                  s->dilates, s->left, s->right),
              "convolution forward");
    else if (direction == BENCH_INPUT)
        check(((input_2_fn *)function(r, "dnnl_dilated_convolution_backward_data_desc_init"))(
                  &r->problem, ALGORITHM_AUTO, s->x, s->weights, s->y, s->strides, s->dilates, s->left,
                  s->right),
              "convolution backward data");
    else
        check(((weight_2_fn *)function(r, "dnnl_dilated_convolution_backward_weights_desc_init"))(
                  &r->problem, ALGORITHM_AUTO, s->x, s->weights, NULL, s->y, s->strides, s->dilates, s->left,
                  s->right),
              "convolution backward weights");
    check(((plan_2_fn *)function(r, "dnnl_primitive_desc_create"))(&plan, &r->problem, NULL, r->engine, hint),
          "primitive descriptor");
    return plan;
}

static void *plan_3(bench_rival_conv *r, const shape *s, bench_direction direction, void *hint)
{
    void *plan = NULL;
    if (direction == BENCH_FORWARD)
        check(((forward_3_fn *)function(r, "dnnl_convolution_forward_primitive_desc_create"))(
                  &plan, r->engine, FORWARD_TRAINING, ALGORITHM_AUTO, s->x, s->weights, NULL, s->y,
                  s->strides, s->dilates, s->left, s->right, NULL),
              "convolution forward");
    else if (direction == BENCH_INPUT)
        check(((input_3_fn *)function(r, "dnnl_convolution_backward_data_primitive_desc_create"))(
                  &plan, r->engine, ALGORITHM_AUTO, s->x, s->weights, s->y, s->strides, s->dilates, s->left,
                  s->right, hint, NULL),
              "convolution backward data");
    else
        check(((weight_3_fn *)function(r, "dnnl_convolution_backward_weights_primitive_desc_create"))(
                  &plan, r->engine, ALGORITHM_AUTO, s->x, s->weights, NULL, s->y, s->strides, s->dilates,
                  s->left, s->right, hint, NULL),
              "convolution backward weights");
    return plan;
}

static void *make_plan(bench_rival_conv *r)
{
    const shape s = shape_of(r);
    void *(*plan)(bench_rival_conv *, const shape *, bench_direction, void *) =
        r->version_2 ? plan_2 : plan_3;
    void *forward = plan(r, &s, BENCH_FORWARD, NULL);
    return r->c->direction == BENCH_FORWARD ? forward : plan(r, &s, r->c->direction, forward);
}

/* ---- what is computed ---------------------------------------------------------------------------------- */

static void *make_memory(const bench_rival_conv *r, const void *format, void *data)
{
    void *memory = NULL;
    check(((create_memory_fn *)function(r, "dnnl_memory_create"))(&memory, format, r->engine, data),
          "memory");
    return memory;
}

static void *make_primitive(const bench_rival_conv *r, const void *plan)
{
    void *primitive = NULL;
    check(((create_primitive_fn *)function(r, "dnnl_primitive_create"))(&primitive, plan), "primitive");
    return primitive;
}

static void *make_reorder(const bench_rival_conv *r, const void *from, const void *to)
{
    void *plan = NULL;
    check(((create_reorder_fn *)function(r, "dnnl_reorder_primitive_desc_create"))(&plan, from, r->engine, to,
                                                                                   r->engine, NULL),
          "reorder");
    return make_primitive(r, plan);
}

static void execute(const bench_rival_conv *r, const void *primitive, int n, const argument *arguments)
{
    check(((execute_fn *)r->execute)(primitive, r->stream, n, arguments), "execute");
    check(((wait_fn *)r->wait)(r->stream), "wait");
}

/* Weights in its own format, filled from ours unless they are the result. */
static void make_weights(bench_rival_conv *r, const void *plan)
{
    const bool gradient = r->c->direction == BENCH_WEIGHT;
    const void *theirs = ((query_fn *)function(r, "dnnl_primitive_desc_query_md"))(
        plan, gradient ? QUERY_DIFF_WEIGHTS : QUERY_WEIGHTS, 0);
    void *const allocate = (void *)UINTPTR_MAX; /* DNNL_MEMORY_ALLOCATE */
    r->memory[2] = make_memory(r, theirs, allocate);
    r->our_weights = make_memory(r, r->plain, r->c->weight);
    if (gradient)
        r->to_ours = make_reorder(r, theirs, r->plain);
    else
        execute(r, make_reorder(r, r->plain, theirs), 2,
                (const argument[]){{ARG_SRC, r->our_weights}, {ARG_DST, r->memory[2]}});
}

bench_rival_conv *bench_rival_conv_create(const bench_rival *rival, const bench_convolution *c)
{
    bench_rival_conv *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->rival = rival;
    r->c = c;
    r->version_2 = rival->version[0] == '2';
    check(((create_engine_fn *)function(r, "dnnl_engine_create"))(&r->engine, CPU, 0), "engine");
    check(((create_stream_fn *)function(r, "dnnl_stream_create"))(&r->stream, r->engine, IN_ORDER), "stream");
    r->execute = function(r, "dnnl_primitive_execute");
    r->wait = function(r, "dnnl_stream_wait");
    r->plain = describe_weights(r, 3, false);
    const void *plan = make_plan(r);
    r->primitive = make_primitive(r, plan);
    r->memory[0] = make_memory(r, describe_image(r, 4, c->height, c->width, c->in), c->x);
    r->memory[1] = make_memory(r, describe_image(r, 4, c->out_height, c->out_width, c->out), c->y);
    make_weights(r, plan);
    return r;
}

void bench_rival_conv_run(const bench_rival_conv *r)
{
    static const int numbers[][3] = {[BENCH_FORWARD] = {ARG_SRC, ARG_DST, ARG_WEIGHTS},
                                     [BENCH_INPUT] = {ARG_DIFF_SRC, ARG_DIFF_DST, ARG_WEIGHTS},
                                     [BENCH_WEIGHT] = {ARG_SRC, ARG_DIFF_DST, ARG_DIFF_WEIGHTS}};
    argument arguments[3];
    for (int i = 0; i < 3; i++)
        arguments[i] = (argument){numbers[r->c->direction][i], r->memory[i]};
    execute(r, r->primitive, 3, arguments);
}

void bench_rival_conv_read(const bench_rival_conv *r)
{
    if (r->to_ours)
        execute(r, r->to_ours, 2, (const argument[]){{ARG_SRC, r->memory[2]}, {ARG_DST, r->our_weights}});
}

void bench_rival_conv_destroy(bench_rival_conv *r)
{
    free(r); /* the library's objects live as long as this small program */
}
