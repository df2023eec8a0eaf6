/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax cross-entropy with label smoothing.
 *
 * With logits z, m = max z, s = sum over j ascending of exp(z_j - m), smoothing e and K classes:
 *
 *     loss = log s - ((1 - e) (z_label - m) + e/K sum over j ascending of (z_j - m))
 *     dz_j = (exp(z_j - m) / s - target_j) * scale       target = e/K, and 1 - e + e/K at the label
 *
 * in float, every operation rounded on its own, exp and log from base/fmath.h; without smoothing the second sum is
 * left out. Losses are summed by leaves and the tree; a sequence of labels is an image of one column.
 */
#ifndef TCTL_ENGINE_LOSS_H
#define TCTL_ENGINE_LOSS_H

#include "base/pool.h"
#include "engine/math/math.h"

typedef struct tctl_loss {
    int64_t classes, labels; /* labels of a sample: at least 1 */
    double smoothing;
    const tctl_math *math;
    float *losses;  /* [max_batch * labels] */
    uint8_t *right; /* [max_batch * labels] */
} tctl_loss;

/* The sum of the losses of n samples, and how many labels are right: those whose largest logit (the first of equals; a
 * not-a-number never wins, except at class 0 where it stays) is at the label. Labels are 0..classes-1, logits
 * [n, labels, classes]. */
void tctl_loss_forward(const tctl_loss *, tctl_pool *, const float *logits, const int64_t *labels, int64_t n,
                       float *ret_sum, uint64_t *ret_right);
void tctl_loss_backward(const tctl_loss *, tctl_pool *, const float *logits, const int64_t *labels, int64_t n,
                        float scale, float *gradient);

#endif
