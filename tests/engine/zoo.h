/* SPDX-License-Identifier: Apache-2.0 */
/* The models that the engine's tests go through: every operator, every option, and the corners. */
#ifndef TCTL_TESTS_ENGINE_ZOO_H
#define TCTL_TESTS_ENGINE_ZOO_H

#include "toy.h"

#define CONV(...)                                                                                            \
    {                                                                                                        \
        .op = "conv", __VA_ARGS__                                                                            \
    }
#define LINEAR(n)                                                                                            \
    {                                                                                                        \
        .op = "linear", .out = n                                                                             \
    }
#define RELU                                                                                                 \
    {                                                                                                        \
        .op = "relu"                                                                                         \
    }
#define FLATTEN                                                                                              \
    {                                                                                                        \
        .op = "flatten"                                                                                      \
    }
#define BATCHNORM                                                                                            \
    {                                                                                                        \
        .op = "batchnorm"                                                                                    \
    }
#define MAXPOOL(...)                                                                                         \
    {                                                                                                        \
        .op = "maxpool", __VA_ARGS__                                                                         \
    }
#define AVGPOOL                                                                                              \
    {                                                                                                        \
        .op = "globalavgpool"                                                                                \
    }
#define DROPOUT(q)                                                                                           \
    {                                                                                                        \
        .op = "dropout", .p = q                                                                              \
    }
#define ADD(a, b)                                                                                            \
    {                                                                                                        \
        .op = "add", .from = a, .from2 = b                                                                   \
    }

static const toy zoo[] = {
    {"one linear, one sample", 0, 0, 3, 1, 0, {LINEAR(4)}},
    {"perceptron", 0, 0, 17, 70, 0.1, {LINEAR(33), RELU, LINEAR(5)}},
    {"two leaves of features", 0, 0, 5, 130, 0, {LINEAR(7), RELU, LINEAR(3)}},
    {"1x1 image", 1, 1, 3, 2, 0, {CONV(.out = 7, .kernel = 1), RELU, FLATTEN, LINEAR(3)}},
    {"1x1 image, padded kernel", 1, 1, 1, 1, 0, {CONV(.out = 2, .kernel = 3, .pad = 1), FLATTEN, LINEAR(2)}},
    {"3x3",
     7,
     6,
     3,
     5,
     0,
     {CONV(.out = 7, .kernel = 3, .pad = 1), RELU, CONV(.out = 17, .kernel = 3), FLATTEN, LINEAR(10)}},
    {"wide",
     6,
     6,
     17,
     3,
     0,
     {CONV(.out = 40, .kernel = 3, .pad = 1), RELU, CONV(.out = 5, .kernel = 1), FLATTEN, LINEAR(4)}},
    {"stride 2",
     9,
     8,
     3,
     3,
     0.2,
     {CONV(.out = 4, .kernel = 1), CONV(.out = 5, .kernel = 3, .stride = 2, .pad = 1), RELU,
      CONV(.out = 3, .kernel = 1, .stride = 2), FLATTEN, LINEAR(3)}},
    {"stride 3 skips pixels",
     11,
     10,
     2,
     2,
     0,
     {CONV(.out = 3, .kernel = 1), CONV(.out = 4, .kernel = 2, .stride = 3), FLATTEN, LINEAR(3)}},
    {"dilated",
     9,
     9,
     2,
     2,
     0,
     {CONV(.out = 3, .kernel = 1), CONV(.out = 4, .kernel = 3, .dilation = 2, .pad = 1, .stride = 2), FLATTEN,
      LINEAR(3)}},
    {"dilation 3, stride 3",
     12,
     12,
     2,
     2,
     0,
     {CONV(.out = 3, .kernel = 1), CONV(.out = 4, .kernel = 3, .dilation = 3, .stride = 3, .pad = 2), FLATTEN,
      LINEAR(3)}},
    {"groups",
     5,
     5,
     4,
     3,
     0,
     {CONV(.out = 6, .kernel = 1), CONV(.out = 9, .kernel = 3, .groups = 3, .pad = 1), RELU, FLATTEN,
      LINEAR(3)}},
    {"depthwise, no bias",
     6,
     6,
     5,
     2,
     0,
     {CONV(.out = 5, .kernel = 1, .no_bias = 1),
      CONV(.out = 5, .kernel = 3, .groups = 5, .stride = 2, .no_bias = 1), FLATTEN, LINEAR(3)}},
    {"large kernel", 6, 6, 3, 2, 0, {CONV(.out = 4, .kernel = 6, .pad = 3), RELU, FLATTEN, LINEAR(2)}},
    {"large image",
     40,
     33,
     2,
     3,
     0,
     {CONV(.out = 3, .kernel = 3, .pad = 1, .no_bias = 1), BATCHNORM, RELU, AVGPOOL, LINEAR(3)}},
    {"large image, bias",
     5,
     600,
     1,
     2,
     0,
     {CONV(.out = 2, .kernel = 3, .pad = 1), RELU, MAXPOOL(.kernel = 2), AVGPOOL, LINEAR(2)}},
    {"batchnorm",
     5,
     4,
     3,
     6,
     0,
     {CONV(.out = 17, .kernel = 3, .pad = 1, .no_bias = 1), BATCHNORM, RELU, FLATTEN, LINEAR(4)}},
    {"batchnorm of features", 0, 0, 6, 9, 0, {LINEAR(20), BATCHNORM, RELU, LINEAR(3)}},
    {"batchnorm without scale",
     3,
     3,
     2,
     4,
     0,
     {CONV(.out = 3, .kernel = 2), {.op = "batchnorm", .not_affine = 1}, FLATTEN, LINEAR(3)}},
    {"batchnorm of one position", 0, 0, 4, 1, 0, {LINEAR(3), BATCHNORM, LINEAR(3)}},
    {"maxpool",
     8,
     7,
     3,
     3,
     0,
     {CONV(.out = 7, .kernel = 3, .pad = 1), MAXPOOL(.kernel = 2), FLATTEN, LINEAR(4)}},
    {"overlapping maxpool",
     9,
     9,
     2,
     2,
     0,
     {CONV(.out = 5, .kernel = 3), RELU, MAXPOOL(.kernel = 3, .stride = 2, .pad = 1), FLATTEN, LINEAR(4)}},
    {"global average", 7, 7, 3, 4, 0, {CONV(.out = 8, .kernel = 3), RELU, AVGPOOL, LINEAR(4)}},
    {"dropout",
     4,
     4,
     3,
     4,
     0,
     {CONV(.out = 6, .kernel = 3, .pad = 1), RELU, DROPOUT(0.3), FLATTEN, DROPOUT(0.5), LINEAR(4)}},
    {"residual",
     6,
     6,
     3,
     4,
     0.1,
     {CONV(.out = 8, .kernel = 3, .pad = 1), BATCHNORM, RELU, CONV(.out = 8, .kernel = 3, .pad = 1),
      BATCHNORM, ADD(5, 3), RELU, AVGPOOL, LINEAR(4)}},
    {"residual, shortcut first",
     6,
     6,
     3,
     3,
     0,
     {CONV(.out = 5, .kernel = 1), RELU, CONV(.out = 5, .kernel = 3, .pad = 1), ADD(2, 3), FLATTEN,
      LINEAR(4)}},
    {"projection with stride",
     8,
     8,
     3,
     2,
     0,
     {CONV(.out = 4, .kernel = 3, .pad = 1),
      RELU,
      CONV(.out = 6, .kernel = 3, .stride = 2, .pad = 1),
      {.op = "conv", .out = 6, .kernel = 1, .stride = 2, .from = 2},
      ADD(3, 4),
      RELU,
      AVGPOOL,
      LINEAR(3)}},
    {"read three times",
     4,
     4,
     2,
     2,
     0,
     {CONV(.out = 3, .kernel = 1), RELU, ADD(2, 2), ADD(3, 2), FLATTEN, LINEAR(3)}},
    {"maxpool and batchnorm of one input",
     6,
     6,
     2,
     3,
     0,
     {CONV(.out = 4, .kernel = 1),
      BATCHNORM,
      {.op = "maxpool", .kernel = 3, .stride = 1, .pad = 1, .from = 1},
      ADD(2, 3),
      RELU,
      FLATTEN,
      LINEAR(3)}},
    {"relu and dropout beside their input",
     3,
     3,
     2,
     3,
     0,
     {CONV(.out = 4, .kernel = 1),
      RELU,
      ADD(1, 2),
      {.op = "dropout", .p = 0.4, .from = 3},
      ADD(3, 4),
      FLATTEN,
      LINEAR(3)}},
    {"average beside its input",
     1,
     1,
     2,
     3,
     0,
     {CONV(.out = 4, .kernel = 1), AVGPOOL, {.op = "flatten", .from = 1}, ADD(2, 3), LINEAR(3)}},
    {"flat first", 3, 3, 2, 3, 0, {FLATTEN, LINEAR(5), RELU, DROPOUT(0.25), LINEAR(3)}},
    {"example, small",
     12,
     12,
     1,
     20,
     0.05,
     {CONV(.out = 8, .kernel = 3, .pad = 1, .no_bias = 1), BATCHNORM, RELU, MAXPOOL(.kernel = 2),
      CONV(.out = 16, .kernel = 3, .pad = 1, .no_bias = 1), BATCHNORM, RELU, MAXPOOL(.kernel = 2), FLATTEN,
      LINEAR(32), RELU, LINEAR(10)}},
};

enum { ZOO = sizeof zoo / sizeof zoo[0] };

#endif
