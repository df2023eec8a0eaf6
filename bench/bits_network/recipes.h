/* SPDX-License-Identifier: Apache-2.0 */
/* What is trained: small networks that together have every operator, every chunk size and every plugin. */
#ifndef TCTL_BENCH_BITS_RECIPES_H
#define TCTL_BENCH_BITS_RECIPES_H

#include "trainctl/model.h"

enum { BITS_MAX_OPS = 48, BITS_MAX_PARTS = 5 };

/* Lists end with NULL. Texts are read by words.h. */
typedef struct bits_recipe {
    const char *name;
    const char *train, *test; /* sources */
    const char *train_transforms[BITS_MAX_PARTS], *test_transforms[BITS_MAX_PARTS];
    const char *trainer, *optimizer, *schedule;
    const char *stages[BITS_MAX_PARTS];
    const char *model[BITS_MAX_OPS]; /* "conv out=7 kernel=3 from=trunk name=left" */
} bits_recipe;

extern const bits_recipe bits_recipes[];
extern const uint32_t bits_n_recipes;

/* ---- model.c: a recipe's model ------------------------------------------------------------------------- */

/* Nodes are named after operator and place ("conv0") or as `name` says; `from` is an earlier name, else the node before. */
struct tctl_model {
    tctl_node nodes[BITS_MAX_OPS];
    tctl_attr attrs[BITS_MAX_OPS][8];
    char names[BITS_MAX_OPS][64], texts[BITS_MAX_OPS][16];
    uint32_t n;
};

void bits_model_make(const bits_recipe *, tctl_model *ret);
extern const tctl_model_service bits_models;

#endif
