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
};

static const tctl_op *const all[TCTL_NETWORK_OPS] = {
    &tctl_op_conv,          &tctl_op_linear, &tctl_op_batchnorm, &tctl_op_relu,    &tctl_op_maxpool,
    &tctl_op_globalavgpool, &tctl_op_add,    &tctl_op_flatten,   &tctl_op_dropout,
};

const tctl_op *tctl_op_find(const char *name)
{
    for (uint32_t i = 0; i < TCTL_NETWORK_OPS; i++) {
        if (strcmp(tctl_network_op_table[i].op, name) == 0)
            return all[i];
    }
    return NULL;
}
