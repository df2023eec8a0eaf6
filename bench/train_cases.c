/* SPDX-License-Identifier: Apache-2.0 */
/* See train_cases.h. A function adds a layer or a block behind node `input` and returns the number of its last node. */
#include "train_cases.h"

#include <stdio.h>

#include "host/model.h"

/* ---- nodes --------------------------------------------------------------------------------------------- */

static tctl_attr number(const char *name, int64_t value)
{
    return (tctl_attr){.name = name, .type = TCTL_INT, .i = value};
}

static tctl_attr flag(const char *name, bool value)
{
    return (tctl_attr){.name = name, .type = TCTL_BOOL, .i = value};
}

static tctl_attr real(const char *name, double value)
{
    return (tctl_attr){.name = name, .type = TCTL_REAL, .r = value};
}

static int32_t add_node(bench_graph *g, tctl_node *node)
{
    char name[32];
    const uint32_t n = tctl_model_service_of()->n_nodes(g->model);
    snprintf(name, sizeof name, "node%u", n);
    node->name = name;
    if (!g->status)
        g->status = tctl_model_service_of()->insert(g->model, n, node, g->err);
    return (int32_t)n;
}

static int32_t layer(bench_graph *g, const char *op, int32_t input, const tctl_attr *attrs, uint32_t n_attrs)
{
    tctl_node node = {.op = op, .n_inputs = 1, .inputs = {input}, .attrs = attrs, .n_attrs = n_attrs};
    return add_node(g, &node);
}

static int32_t plain(bench_graph *g, const char *op, int32_t input)
{
    return layer(g, op, input, NULL, 0);
}

static int32_t with(bench_graph *g, const char *op, int32_t input, tctl_attr attr)
{
    return layer(g, op, input, &attr, 1);
}

static int32_t sum(bench_graph *g, int32_t a, int32_t b)
{
    tctl_node node = {.op = "add", .n_inputs = 2, .inputs = {a, b}};
    return add_node(g, &node);
}

static int32_t linear(bench_graph *g, int32_t input, int64_t out, bool bias)
{
    const tctl_attr attrs[] = {number("out", out), flag("bias", bias)};
    return layer(g, "linear", input, attrs, TCTL_COUNT_OF(attrs));
}

/* ---- convolutional networks ---------------------------------------------------------------------------- */

/* Convolution, batch normalization, ReLU, and a max-pool over `pool` x `pool` unless that is 1. */
static int32_t conv_block(bench_graph *g, int32_t input, int64_t out, int64_t pool)
{
    const tctl_attr attrs[] = {number("out", out), number("kernel", 3), number("pad", 1),
                               flag("bias", false)};
    int32_t x = layer(g, "conv", input, attrs, TCTL_COUNT_OF(attrs));
    x = plain(g, "relu", plain(g, "batchnorm", x));
    return pool == 1 ? x : with(g, "maxpool", x, number("kernel", pool));
}

static int32_t residual(bench_graph *g, int32_t input, int64_t width)
{
    return sum(g, input, conv_block(g, conv_block(g, input, width, 1), width, 1));
}

/* Three convolutions, two linear: 68 MFLOP a forward and backward of an image. */
static void cnn(bench_graph *g)
{
    int32_t x = conv_block(g, TCTL_MODEL_INPUT, 32, 1);
    x = conv_block(g, conv_block(g, x, 32, 2), 64, 2);
    x = plain(g, "relu", linear(g, plain(g, "flatten", x), 128, true));
    linear(g, x, 10, true);
}

/* Page, "How to train your ResNet", 2018. */
static void resnet9(bench_graph *g)
{
    int32_t x = conv_block(g, TCTL_MODEL_INPUT, 64, 1);
    x = residual(g, conv_block(g, x, 128, 2), 128);
    x = conv_block(g, x, 256, 2);
    x = residual(g, conv_block(g, x, 512, 2), 512);
    x = plain(g, "flatten", with(g, "maxpool", x, number("kernel", 3)));
    with(g, "scale", linear(g, x, 10, false), real("by", 0.125));
}

/* ---- transformers -------------------------------------------------------------------------------------- */

enum { BLOCKS = 4, HEADS = 4 };

/* A pre-norm block: attention, then two linear layers with GELU between them, each added to what runs through. */
static int32_t block(bench_graph *g, int32_t stream, int64_t width, bool causal)
{
    const tctl_attr heads[] = {number("heads", HEADS), flag("causal", causal)};
    int32_t x = linear(g, plain(g, "layernorm", stream), 3 * width, true);
    x = layer(g, "attention", x, heads, TCTL_COUNT_OF(heads));
    stream = sum(g, stream, linear(g, x, width, true));
    x = linear(g, plain(g, "layernorm", stream), 4 * width, true);
    return sum(g, stream, linear(g, plain(g, "gelu", x), width, true));
}

static int32_t blocks(bench_graph *g, int32_t stream, int64_t width, bool causal)
{
    for (int i = 0; i < BLOCKS; i++)
        stream = block(g, stream, width, causal);
    return plain(g, "layernorm", stream);
}

static void vit_tiny(bench_graph *g)
{
    const tctl_attr patches[] = {number("out", 64), number("kernel", 4), number("stride", 4)};
    int32_t x = layer(g, "conv", TCTL_MODEL_INPUT, patches, TCTL_COUNT_OF(patches));
    x = blocks(g, plain(g, "position", plain(g, "tokens", x)), 64, false);
    linear(g, plain(g, "globalavgpool", x), 10, true);
}

static void gpt_mini(bench_graph *g)
{
    const tctl_attr embedding[] = {number("vocabulary", 256), number("out", 128), real("deviation", 0.02)};
    int32_t x = layer(g, "embedding", TCTL_MODEL_INPUT, embedding, TCTL_COUNT_OF(embedding));
    linear(g, blocks(g, plain(g, "position", x), 128, true), 256, true);
}

#define IMAGE                                                                                                \
    {                                                                                                        \
        .name = "image", .dtype = TCTL_F32, .rank = 3, .dims = { 28, 28, 1 }                                 \
    }
#define TEXT                                                                                                 \
    {                                                                                                        \
        .name = "text", .dtype = TCTL_U8, .rank = 1, .dims = { 128 }                                         \
    }

const bench_case bench_cases[] = {
    {.name = "cnn", .input = IMAGE, .batch = 128, .n_classes = 10, .build = cnn},
    {.name = "resnet9", .input = IMAGE, .batch = 128, .n_classes = 10, .build = resnet9},
    {.name = "vit-tiny", .input = IMAGE, .batch = 64, .n_classes = 10, .build = vit_tiny},
    {.name = "gpt-mini", .input = TEXT, .batch = 16, .n_classes = 256, .n_labels = 128, .build = gpt_mini},
};
const uint32_t bench_n_cases = TCTL_COUNT_OF(bench_cases);
