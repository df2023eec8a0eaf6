/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stochastic gradient descent with momentum, Nesterov's form of it, and L2 weight decay.
 *
 * PyTorch's definition (torch.optim.SGD, dampening 0): with g the gradient plus weight_decay times w,
 *     v <- momentum v + g,    w <- w - lr (g + momentum v) if nesterov, else w - lr v.
 * The velocity starts at zero, so the first v is g. Every element is one fixed sequence of float operations, each
 * rounded (no fused multiply-add), with scalars rounded once from double: same bits on every machine.
 *
 * Sutskever, Martens, Dahl, Hinton, "On the importance of initialization and momentum in deep learning", ICML 2013.
 */
#include <stdlib.h>

#include "trainctl/ext/optimizer.h"

struct tctl_stage {
    double lr;
    float momentum, weight_decay;
    int nesterov;
};

static void plain(uint64_t n, float *restrict w, const float *restrict grad, float lr, float decay)
{
    for (uint64_t i = 0; i < n; i++) {
        float g = grad[i] + decay * w[i];
        w[i] = w[i] - lr * g;
    }
}

static void momentum(uint64_t n, float *restrict w, const float *restrict grad, float *restrict v, float lr,
                     float decay, float mu)
{
    for (uint64_t i = 0; i < n; i++) {
        float g = grad[i] + decay * w[i];
        v[i] = mu * v[i] + g;
        w[i] = w[i] - lr * v[i];
    }
}

static void nesterov(uint64_t n, float *restrict w, const float *restrict grad, float *restrict v, float lr,
                     float decay, float mu)
{
    for (uint64_t i = 0; i < n; i++) {
        float g = grad[i] + decay * w[i];
        v[i] = mu * v[i] + g;
        w[i] = w[i] - lr * (g + mu * v[i]);
    }
}

static void update(tctl_stage *s, const tctl_update *u)
{
    float lr = (float)(s->lr * u->lr_factor);
    float decay = u->parameter->flags & TCTL_PARAMETER_NO_DECAY ? 0 : s->weight_decay;
    if (s->momentum == 0)
        plain(u->n, u->param, u->grad, lr, decay);
    else if (s->nesterov)
        nesterov(u->n, u->param, u->grad, u->slot[0], lr, decay, s->momentum);
    else
        momentum(u->n, u->param, u->grad, u->slot[0], lr, decay, s->momentum);
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->lr = host->cfg_real(config, "lr");
    s->momentum = (float)host->cfg_real(config, "momentum");
    s->weight_decay = (float)host->cfg_real(config, "weight_decay");
    s->nesterov = host->cfg_bool(config, "nesterov");
    if (s->nesterov && s->momentum == 0) {
        free(s);
        return host->fail_option(err, config, "nesterov", "'nesterov' needs a momentum above 0");
    }
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const tctl_option options[] = {
    {"lr", TCTL_REAL, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC, NULL, 0, 0, 0, 1e6, NULL, NULL,
     "learning rate, before the schedule's factor", "0.1.0"},
    {"momentum", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, 0, 1, NULL, NULL,
     "share of the velocity that is kept; 0 for none", "0.1.0"},
    {"nesterov", TCTL_BOOL, TCTL_OPT_SEMANTIC, "false", 0, 0, 0, 0, NULL, NULL,
     "look ahead along the velocity (needs momentum)", "0.1.0"},
    {"weight_decay", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, 0, 1e3, NULL, NULL,
     "L2 penalty added to the gradient; biases and batch-norm parameters are left alone", "0.1.0"},
};

static const char *const slots[] = {"momentum"};

static const tctl_optimizer optimizer = {
    .struct_size = sizeof optimizer, .n_slots = 1, .slot_names = slots, .update = update};

static const tctl_extension extensions[] = {{TCTL_OPTIMIZER_ID, &optimizer}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME,
    .name = "sgd",
    .version = "0.1.0",
    .license = "Apache-2.0",
    .summary = "stochastic gradient descent with momentum, Nesterov momentum and weight decay",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
