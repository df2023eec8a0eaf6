/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_conv DIRECTION THREADS BATCH HEIGHT WIDTH IN OUT KERNEL STRIDE PAD GROUPS: a convolution by the engine and by
 * oneDNN (rival_conv.h), in one process, in turns, on images that lie channels-last. DIRECTION is forward, input (its
 * gradient) or weight. Both sides' results are compared. Prints "OURS RIVAL VERSION": GFLOP/s, medians; operations are
 * counted as if no tap lay outside the image. On one thread the processor's time is measured, which other programs of
 * the machine do not take; on more, the clock's. Exit status 3: oneDNN is not installed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "base/pool.h"
#include "bench/duel.h"
#include "bench/rival_conv.h"
#include "engine/conv.h"

enum { ARGUMENTS = 9 };

static const double tolerance = 1e-3; /* of the largest number, between two orders of one sum */

typedef struct bench {
    bench_convolution problem;
    int threads;
    tctl_operation operation;
    tctl_op_call call;
    bench_rival_conv *rival;
} bench;

/* ---- the two sides ------------------------------------------------------------------------------------- */

static void by_us(const void *arg)
{
    const bench *b = arg;
    if (b->problem.direction == BENCH_FORWARD)
        tctl_conv_forward(&b->call);
    else if (b->problem.direction == BENCH_INPUT)
        tctl_conv_input_gradient(&b->call);
    else
        tctl_conv_weight_gradient(&b->call);
}

static void by_rival(const void *arg)
{
    const bench *b = arg;
    bench_rival_conv_run(b->rival);
}

static void measure(const bench *b, const char *version)
{
    const bench_convolution *p = &b->problem;
    const bench_duel duel = {.ours = by_us,
                             .rival = by_rival,
                             .arg = b,
                             .threads = b->threads,
                             .work = 2e-9 * (double)(p->batch * p->out_height * p->out_width * p->out) *
                                     (double)(p->kernel * p->kernel * p->in / p->groups),
                             .seconds = 0.06};
    double ours, rival;
    bench_fight(&duel, &ours, &rival);
    printf("%.2f %.2f %s\n", ours, rival, version);
}

/* Both write the same array, one after the other. */
static bool agree(const bench *b)
{
    const bench_convolution *p = &b->problem;
    const size_t counts[] = {[BENCH_FORWARD] = (size_t)(p->batch * p->out_height * p->out_width * p->out),
                             [BENCH_INPUT] = (size_t)(p->batch * p->height * p->width * p->in),
                             [BENCH_WEIGHT] = (size_t)(p->kernel * p->kernel * p->in / p->groups * p->out)};
    float *const results[] = {[BENCH_FORWARD] = p->y, [BENCH_INPUT] = p->x, [BENCH_WEIGHT] = p->weight};
    const size_t n = counts[p->direction];
    const float *result = results[p->direction];
    float *first = bench_numbers(n);
    by_us(b);
    memcpy(first, result, n * sizeof *first);
    by_rival(b);
    bench_rival_conv_read(b->rival);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < n; i++) {
        largest = fmax(largest, fabs((double)first[i]));
        difference = fmax(difference, fabs((double)first[i] - (double)result[i]));
    }
    free(first);
    return largest > 0 && difference <= tolerance * largest;
}

/* ---- the engine's side --------------------------------------------------------------------------------- */

static void make_operation(bench *b, tctl_arena *arena, const tctl_simd *simd)
{
    bench_convolution *p = &b->problem;
    tctl_error err = {0};
    const struct {
        const char *name;
        int64_t value;
    } options[] = {{"out", p->out}, {"kernel", p->kernel}, {"stride", p->stride},
                   {"pad", p->pad}, {"groups", p->groups}, {"bias", 0}};
    tctl_attr attrs[TCTL_COUNT_OF(options)];
    for (size_t i = 0; i < TCTL_COUNT_OF(options); i++)
        attrs[i] = (tctl_attr){.name = options[i].name, .type = TCTL_INT, .i = options[i].value};
    const tctl_node node = {.name = "conv", .attrs = attrs, .n_attrs = TCTL_COUNT_OF(attrs)};
    const tctl_op_site site = {arena, simd, (uint32_t)p->batch, 1};
    tctl_operation *self = &b->operation;
    self->op = tctl_op_find("conv");
    self->name = node.name;
    self->node = &node;
    self->in[0] = (tctl_shape){3, p->height, p->width, p->in};
    if (self->op->infer(&site, self, &err)) {
        fprintf(stderr, "bench_conv: %s\n", err.message);
        exit(2);
    }
    self->node = NULL;
    p->out_height = self->out.height;
    p->out_width = self->out.width;
}

static void bind_memory(bench *b)
{
    bench_convolution *p = &b->problem;
    tctl_operation *self = &b->operation;
    p->x = bench_numbers((size_t)(p->batch * tctl_shape_count(&self->in[0])));
    p->y = bench_numbers((size_t)(p->batch * tctl_shape_count(&self->out)));
    p->weight = bench_numbers((size_t)self->parameters[0].count);
    self->x[0] = self->dx[0] = p->x;
    self->dy = self->y = p->y;
    self->param[0] = self->grad[0] = p->weight;
}

static void prepare(bench *b, const bench_rival *rival, tctl_arena *arena, tctl_pool *pool,
                    const tctl_simd *simd)
{
    static tctl_network_batch batch;
    make_operation(b, arena, simd);
    bind_memory(b);
    const size_t stride = (b->operation.scratch_floats + 15) / 16 * 16;
    batch.n = (uint32_t)b->problem.batch;
    b->call = (tctl_op_call){.self = &b->operation,
                             .batch = &batch,
                             .n = b->problem.batch,
                             .pool = pool,
                             .simd = simd,
                             .shared = bench_numbers(b->operation.shared_floats),
                             .scratch = bench_numbers(stride * (size_t)b->threads),
                             .scratch_stride = stride};
    b->rival = bench_rival_conv_create(rival, &b->problem);
}

static void release(bench *b)
{
    bench_rival_conv_destroy(b->rival);
    free(b->problem.x);
    free(b->problem.y);
    free(b->problem.weight);
    free(b->call.shared);
    free(b->call.scratch);
}

static bool read_arguments(char **argv, bench *b)
{
    static const char *const directions[] = {"forward", "input", "weight"};
    uint64_t n[ARGUMENTS + 1];
    bool known = false;
    for (int i = 0; i < 3; i++) {
        if (strcmp(argv[1], directions[i]) == 0) {
            b->problem.direction = (bench_direction)i;
            known = true;
        }
    }
    for (int i = 0; i <= ARGUMENTS; i++) {
        const char *text = argv[2 + i];
        if (!tctl_parse_uint(text, strlen(text), &n[i]) || n[i] > 1000000)
            return false;
    }
    b->threads = (int)n[0];
    b->problem = (bench_convolution){.direction = b->problem.direction,
                                     .batch = (int64_t)n[1],
                                     .height = (int64_t)n[2],
                                     .width = (int64_t)n[3],
                                     .in = (int64_t)n[4],
                                     .out = (int64_t)n[5],
                                     .kernel = (int64_t)n[6],
                                     .stride = (int64_t)n[7],
                                     .pad = (int64_t)n[8],
                                     .groups = (int64_t)n[9]};
    return known && b->threads >= 1 && b->threads <= 64 && n[1] && n[2] && n[3] && n[4] && n[9];
}

int main(int argc, char **argv)
{
    static bench b;
    bench_rival rival;
    tctl_error err = {0};
    tctl_pool *pool;
    const tctl_simd *simd;
    if (argc != ARGUMENTS + 3 || !read_arguments(argv, &b)) {
        fprintf(stderr, "usage: bench_conv forward|input|weight THREADS BATCH HEIGHT WIDTH IN OUT KERNEL "
                        "STRIDE PAD GROUPS\n");
        return 2;
    }
    if (!bench_rival_open("onednn", &rival))
        return 3;
    if (tctl_simd_choose(getenv("TRAINCTL_SIMD"), &simd, &err) ||
        tctl_pool_create((uint32_t)b.threads, &pool, &err)) {
        fprintf(stderr, "bench_conv: %s\n", err.message);
        return 1;
    }
    tctl_arena *arena = tctl_arena_create();
    if (!arena)
        return 1;
    rival.set_threads(&rival, b.threads);
    prepare(&b, &rival, arena, pool, simd);
    const bool same = b.rival && agree(&b);
    if (same)
        measure(&b, rival.version);
    else
        fprintf(stderr, "bench_conv: the two sides compute different things\n");
    release(&b);
    tctl_pool_destroy(pool);
    tctl_arena_destroy(arena);
    return same ? 0 : 1;
}
