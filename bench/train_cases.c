/* SPDX-License-Identifier: Apache-2.0 */
/* See train_cases.h. */
#include "train_cases.h"

#include "base/error.h"

#define INT(key, value)                                                                                      \
    {                                                                                                        \
        .name = key, .type = TCTL_INT, .i = value                                                            \
    }
#define NODE(title, kind, input, attributes)                                                                 \
    {                                                                                                        \
        .name = title, .op = kind, .n_inputs = 1, .inputs = {input}, .attrs = attributes,                    \
        .n_attrs = TCTL_COUNT_OF(attributes)                                                                 \
    }
#define PLAIN(title, kind, input)                                                                            \
    {                                                                                                        \
        .name = title, .op = kind, .n_inputs = 1, .inputs = { input }                                        \
    }

#define CONV(width)                                                                                          \
    {                                                                                                        \
        INT("out", width), INT("kernel", 3), INT("pad", 1),                                                  \
        {                                                                                                    \
            .name = "bias", .type = TCTL_BOOL, .i = 0                                                        \
        }                                                                                                    \
    }
static const tctl_attr conv32[] = CONV(32), conv64[] = CONV(64), pool2[] = {INT("kernel", 2)},
                       out128[] = {INT("out", 128)}, out10[] = {INT("out", 10)};

/* 1 x 28 x 28, three convolutions, two linear: 68 MFLOP a forward and backward of an image. */
static const tctl_node cnn[] = {
    NODE("conv1", "conv", TCTL_MODEL_INPUT, conv32),
    PLAIN("norm1", "batchnorm", 0),
    PLAIN("relu1", "relu", 1),
    NODE("conv2", "conv", 2, conv32),
    PLAIN("norm2", "batchnorm", 3),
    PLAIN("relu2", "relu", 4),
    NODE("pool2", "maxpool", 5, pool2),
    NODE("conv3", "conv", 6, conv64),
    PLAIN("norm3", "batchnorm", 7),
    PLAIN("relu3", "relu", 8),
    NODE("pool3", "maxpool", 9, pool2),
    PLAIN("flat", "flatten", 10),
    NODE("linear1", "linear", 11, out128),
    PLAIN("relu4", "relu", 12),
    NODE("linear2", "linear", 13, out10),
};

const bench_case bench_cases[] = {
    {.name = "cnn",
     .input = {.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {28, 28, 1}},
     .batch = 128,
     .n_classes = 10,
     .n_nodes = TCTL_COUNT_OF(cnn),
     .nodes = cnn},
};
const uint32_t bench_n_cases = TCTL_COUNT_OF(bench_cases);
