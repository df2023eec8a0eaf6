/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdamW: Adam with weight decay that is not part of the gradient.
 *
 * PyTorch's definition (torch.optim.AdamW, amsgrad off). With t the number of this update, from 1:
 *     w <- w (1 - lr weight_decay)
 *     m <- beta1 m + (1 - beta1) g,    v <- beta2 v + (1 - beta2) g²
 *     w <- w - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 * Every element is one fixed sequence of float operations, each rounded; the scalars are computed in double, powers
 * by squaring, and rounded once. Square roots are IEEE 754's: same bits on every machine. Built with
 * -fno-math-errno, which changes no result and lets the loop use vectors.
 *
 * Loshchilov, Hutter, "Decoupled Weight Decay Regularization", ICLR 2019, algorithm 2.
 */
#include <math.h>
#include <stdlib.h>

#include "trainctl/ext/optimizer.h"

struct tctl_stage {
    double lr, beta1, beta2, eps, weight_decay;
};

/* base^exponent by squaring, from the lowest bit up: the order of the products is fixed. */
static double power(double base, uint64_t exponent)
{
    double result = 1;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

static void update(tctl_stage *s, const tctl_update *u)
{
    double lr = s->lr * u->lr_factor;
    double decay = u->parameter->flags & TCTL_PARAMETER_NO_DECAY ? 0 : s->weight_decay;
    const float keep = (float)(1 - lr * decay), eps = (float)s->eps;
    const float b1 = (float)s->beta1, c1 = (float)(1 - s->beta1), b2 = (float)s->beta2,
                c2 = (float)(1 - s->beta2);
    const float rate = (float)(lr / (1 - power(s->beta1, u->step)));
    const float root = (float)sqrt(1 - power(s->beta2, u->step));
    float *restrict w = u->param, *restrict m = u->slot[0], *restrict v = u->slot[1];
    const float *restrict grad = u->grad;
    for (uint64_t i = 0; i < u->n; i++) {
        float g = grad[i];
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * (g * g);
        float denominator = sqrtf(v[i]) / root + eps;
        w[i] = keep * w[i] - rate * (m[i] / denominator);
    }
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->lr = host->cfg_real(config, "lr");
    s->beta1 = host->cfg_real(config, "beta1");
    s->beta2 = host->cfg_real(config, "beta2");
    s->eps = host->cfg_real(config, "eps");
    s->weight_decay = host->cfg_real(config, "weight_decay");
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const tctl_option options[] = {
    {"lr", TCTL_REAL, TCTL_OPT_SEMANTIC, "1e-3", 0, 0, 0, 1e6, NULL, NULL,
     "learning rate, before the schedule's factor", "0.1.0"},
    {"beta1", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.9", 0, 0, 0, 0.999999, NULL, NULL,
     "share of the mean gradient that is kept", "0.1.0"},
    {"beta2", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.999", 0, 0, 0, 0.999999, NULL, NULL,
     "share of the mean squared gradient that is kept", "0.1.0"},
    {"eps", TCTL_REAL, TCTL_OPT_SEMANTIC, "1e-8", 0, 0, 1e-30, 1, NULL, NULL, "added to the denominator",
     "0.1.0"},
    {"weight_decay", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.01", 0, 0, 0, 1e3, NULL, NULL,
     "share of the weights taken off per unit of learning rate; biases and batch-norm parameters are left "
     "alone",
     "0.1.0"},
};

static const char *const slots[] = {"mean", "square"};

static const tctl_optimizer optimizer = {
    .struct_size = sizeof optimizer, .n_slots = 2, .slot_names = slots, .update = update};

static const tctl_extension extensions[] = {{TCTL_OPTIMIZER_ID, &optimizer}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME,
    .name = "adamw",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "Adam with decoupled weight decay",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
