/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operators' options: constant data, which the native trainer's descriptor points at. `trainctl check`, the
 * reference documentation and the editor's schema are made from it; the operators read their options by it.
 */
#include "engine/op.h"

#define SEMANTIC TCTL_OPT_SEMANTIC
#define REQUIRED (TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC)

static const tctl_option conv[] = {
    {"out", TCTL_INT, REQUIRED, NULL, 1, 65536, 0, 0, NULL, "channels", "output channels", "0.1.0"},
    {"kernel", TCTL_INT, REQUIRED, NULL, 1, 64, 0, 0, NULL, "pixels", "height and width of the kernel",
     "0.1.0"},
    {"stride", TCTL_INT, SEMANTIC, "1", 1, 64, 0, 0, NULL, "pixels", "step of the kernel in both directions",
     "0.1.0"},
    {"pad", TCTL_INT, SEMANTIC, "0", 0, 1024, 0, 0, NULL, "pixels", "zeros added on each side", "0.1.0"},
    {"dilation", TCTL_INT, SEMANTIC, "1", 1, 64, 0, 0, NULL, "pixels", "distance between taps of the kernel",
     "0.1.0"},
    {"groups", TCTL_INT, SEMANTIC, "1", 1, 65536, 0, 0, NULL, NULL,
     "channels are cut into this many groups, each with its own kernels", "0.1.0"},
    {"bias", TCTL_BOOL, SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "add a learned number to each output channel", "0.1.0"},
};

static const tctl_option linear[] = {
    {"out", TCTL_INT, REQUIRED, NULL, 1, 16777216, 0, 0, NULL, "features", "output features", "0.1.0"},
    {"bias", TCTL_BOOL, SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "add a learned number to each output feature", "0.1.0"},
};

static const tctl_option batchnorm[] = {
    {"eps", TCTL_REAL, SEMANTIC, "1e-5", 0, 0, 1e-12, 1, NULL, NULL, "added to the variance before the root",
     "0.1.0"},
    {"momentum", TCTL_REAL, SEMANTIC, "0.1", 0, 0, 0, 1, NULL, NULL,
     "weight of a batch in the running mean and variance", "0.1.0"},
    {"affine", TCTL_BOOL, SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "scale and shift each channel by learned numbers", "0.1.0"},
};

static const tctl_option maxpool[] = {
    {"kernel", TCTL_INT, REQUIRED, NULL, 1, 64, 0, 0, NULL, "pixels", "height and width of the window",
     "0.1.0"},
    {"stride", TCTL_INT, SEMANTIC, NULL, 1, 64, 0, 0, NULL, "pixels",
     "step of the window; the kernel if not given", "0.1.0"},
    {"pad", TCTL_INT, SEMANTIC, "0", 0, 63, 0, 0, NULL, "pixels",
     "border that never wins on each side; less than the kernel", "0.1.0"},
};

static const tctl_option dropout[] = {
    {"p", TCTL_REAL, SEMANTIC, "0.5", 0, 0, 0, 0.999999, NULL, NULL,
     "probability that an element becomes zero", "0.1.0"},
};

static const char *const gelu_forms[] = {"erf", "tanh", NULL};

static const tctl_option gelu[] = {
    {"form", TCTL_ENUM, SEMANTIC, "erf", 0, 0, 0, 0, gelu_forms, NULL,
     "the function itself, or its older approximation by tanh", "0.1.0"},
};

static const tctl_option scale[] = {
    {"by", TCTL_REAL, REQUIRED, NULL, 0, 0, -1e30, 1e30, NULL, NULL, "what every element is multiplied by",
     "0.1.0"},
};

static const tctl_option avgpool[] = {
    {"kernel", TCTL_INT, REQUIRED, NULL, 1, 64, 0, 0, NULL, "pixels", "height and width of the window",
     "0.1.0"},
    {"stride", TCTL_INT, SEMANTIC, NULL, 1, 64, 0, 0, NULL, "pixels",
     "step of the window; the kernel if not given", "0.1.0"},
};

static const tctl_option layernorm[] = {
    {"eps", TCTL_REAL, SEMANTIC, "1e-5", 0, 0, 1e-12, 1, NULL, NULL, "added to the variance before the root",
     "0.1.0"},
    {"affine", TCTL_BOOL, SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "scale and shift each channel by learned numbers", "0.1.0"},
};

static const tctl_option embedding[] = {
    {"vocabulary", TCTL_INT, REQUIRED, NULL, 1, 16777216, 0, 0, NULL, "tokens",
     "how many token numbers there are; they begin with 0", "0.1.0"},
    {"out", TCTL_INT, REQUIRED, NULL, 1, 65536, 0, 0, NULL, "features", "learned features of each token",
     "0.1.0"},
    {"deviation", TCTL_REAL, SEMANTIC, "1", 0, 0, 0, 1000, NULL, NULL,
     "standard deviation of the initial weights", "0.1.0"},
};

static const tctl_option position[] = {
    {"deviation", TCTL_REAL, SEMANTIC, "0.02", 0, 0, 0, 1000, NULL, NULL,
     "standard deviation of the initial weights", "0.1.0"},
};

static const tctl_option attention[] = {
    {"heads", TCTL_INT, SEMANTIC, "1", 1, 1024, 0, 0, NULL, NULL,
     "features are cut into this many parts, each with its own attention", "0.1.0"},
    {"causal", TCTL_BOOL, SEMANTIC, "false", 0, 0, 0, 0, NULL, NULL,
     "a position sees itself and those before it", "0.1.0"},
};

static const tctl_option convtranspose[] = {
    {"out", TCTL_INT, REQUIRED, NULL, 1, 65536, 0, 0, NULL, "channels", "output channels", "0.1.0"},
    {"kernel", TCTL_INT, REQUIRED, NULL, 1, 64, 0, 0, NULL, "pixels", "height and width of the kernel",
     "0.1.0"},
    {"stride", TCTL_INT, SEMANTIC, "1", 1, 64, 0, 0, NULL, "pixels",
     "distance of the kernel's copies in the output", "0.1.0"},
    {"pad", TCTL_INT, SEMANTIC, "0", 0, 1024, 0, 0, NULL, "pixels", "cut off on each side of the output",
     "0.1.0"},
    {"bias", TCTL_BOOL, SEMANTIC, "true", 0, 0, 0, 0, NULL, NULL,
     "add a learned number to each output channel", "0.1.0"},
};

#define OPTIONS(table) (table), TCTL_COUNT_OF(table)

const tctl_op_schema tctl_network_op_table[TCTL_NETWORK_OPS] = {
    [TCTL_OP_CONV] = {"conv", "convolution of an image with learned kernels", OPTIONS(conv), 1, 1, 0},
    [TCTL_OP_LINEAR] = {"linear", "every output is a weighted sum of all inputs", OPTIONS(linear), 1, 1, 0},
    [TCTL_OP_BATCHNORM] = {"batchnorm", "each channel is brought to mean 0 and variance 1 over the batch",
                           OPTIONS(batchnorm), 1, 1, 0},
    [TCTL_OP_RELU] = {"relu", "negative numbers become zero", NULL, 0, 1, 1, 0},
    [TCTL_OP_MAXPOOL] = {"maxpool", "the largest number of each window", OPTIONS(maxpool), 1, 1, 0},
    [TCTL_OP_GLOBALAVGPOOL] = {"globalavgpool", "the mean of each channel over the image", NULL, 0, 1, 1, 0},
    [TCTL_OP_ADD] = {"add", "the sum of two inputs of one shape (a residual connection)", NULL, 0, 2, 2, 0},
    [TCTL_OP_FLATTEN] = {"flatten", "an image becomes a row of features (height, width, channel)", NULL, 0, 1,
                         1, 0},
    [TCTL_OP_DROPOUT] = {"dropout", "elements become zero at random while training", OPTIONS(dropout), 1, 1,
                         0},
    [TCTL_OP_GELU] = {"gelu", "x times the normal distribution's function of x", OPTIONS(gelu), 1, 1, 0},
    [TCTL_OP_SILU] = {"silu", "x times the sigmoid of x (swish)", NULL, 0, 1, 1, 0},
    [TCTL_OP_SIGMOID] = {"sigmoid", "1 / (1 + e^-x)", NULL, 0, 1, 1, 0},
    [TCTL_OP_TANH] = {"tanh", "the hyperbolic tangent", NULL, 0, 1, 1, 0},
    [TCTL_OP_SCALE] = {"scale", "every element times one number that is not learned", OPTIONS(scale), 1, 1,
                       0},
    [TCTL_OP_AVGPOOL] = {"avgpool", "the mean of each window", OPTIONS(avgpool), 1, 1, 0},
    [TCTL_OP_CONCAT] = {"concat", "the channels of several inputs, one after the other", NULL, 0, 2,
                        TCTL_NODE_MAX_INPUTS, 0},
    [TCTL_OP_TOKENS] = {"tokens", "an image becomes a sequence of its pixels, row after row", NULL, 0, 1, 1,
                        0},
    [TCTL_OP_LAYERNORM] = {"layernorm", "the channels of each position are brought to mean 0 and variance 1",
                           OPTIONS(layernorm), 1, 1, 0},
    [TCTL_OP_EMBEDDING] = {"embedding", "learned features for each token number", OPTIONS(embedding), 1, 1,
                           0},
    [TCTL_OP_POSITION] = {"position", "adds learned features to each position of a sequence",
                          OPTIONS(position), 1, 1, 0},
    [TCTL_OP_ATTENTION] = {"attention",
                           "every position takes a mean of all, weighted by likeness; q, k and v are side by "
                           "side in one input, or three inputs",
                           OPTIONS(attention), 1, 3, 0},
    [TCTL_OP_CONVTRANSPOSE] = {"convtranspose", "the transpose of a convolution: images become larger",
                               OPTIONS(convtranspose), 1, 1, 0},
};

static const tctl_op *const all[TCTL_NETWORK_OPS] = {
    &tctl_op_conv,          &tctl_op_linear,        &tctl_op_batchnorm, &tctl_op_relu,      &tctl_op_maxpool,
    &tctl_op_globalavgpool, &tctl_op_add,           &tctl_op_flatten,   &tctl_op_dropout,   &tctl_op_gelu,
    &tctl_op_silu,          &tctl_op_sigmoid,       &tctl_op_tanh,      &tctl_op_scale,     &tctl_op_avgpool,
    &tctl_op_concat,        &tctl_op_tokens,        &tctl_op_layernorm, &tctl_op_embedding, &tctl_op_position,
    &tctl_op_attention,     &tctl_op_convtranspose,
};

const tctl_op *tctl_op_find(const char *name)
{
    for (uint32_t i = 0; i < TCTL_NETWORK_OPS; i++) {
        if (strcmp(tctl_network_op_table[i].op, name) == 0)
            return all[i];
    }
    return NULL;
}
