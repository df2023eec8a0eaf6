/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgd and adamw against their definitions in double, and the bits of a range against those of the whole. What PyTorch
 * 1.13 gives for the same numbers is written down as well.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/fake_host.h"
#include "trainctl/ext/optimizer.h"

enum { N = 1000 };

typedef struct problem {
    float w[N], v0[N], v1[N], g[N];
} problem;

/* Numbers in [-1, 1) from a linear congruential generator (Knuth's MMIX constants). */
static void fill(float *to, uint64_t seed)
{
    for (int i = 0; i < N; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        to[i] = (float)(int32_t)(seed >> 40) * 0x1p-23f - 1;
    }
}

static const tctl_parameter weight = {.name = "w", .count = N},
                            bias = {.name = "b", .count = N, .flags = TCTL_PARAMETER_NO_DECAY};

static void step(const tctl_plugin *plugin, tctl_stage *stage, const tctl_parameter *p, problem *at,
                 uint64_t from, uint64_t n, uint64_t number, double factor)
{
    const tctl_optimizer *o = fake_extension(plugin, TCTL_OPTIMIZER_ID);
    const tctl_update u = {.struct_size = sizeof u,
                           .parameter = p,
                           .n = n,
                           .param = at->w + from,
                           .grad = at->g + from,
                           .slot = {at->v0 + from, at->v1 + from},
                           .lr_factor = factor,
                           .step = number};
    o->update(stage, &u);
}

static void assert_near(const float *a, const double *b, double tolerance)
{
    for (int i = 0; i < N; i++) {
        if (!(fabs((double)a[i] - b[i]) <= tolerance))
            fail_msg("element %d: %.9g, expected %.9g", i, (double)a[i], b[i]);
    }
}

/* ---- sgd --------------------------------------------------------------------------------------------- */

static void check_sgd(const fake_option *options, const tctl_parameter *p, double lr, double mu, double decay,
                      bool ahead)
{
    const tctl_plugin *plugin = fake_plugin("sgd");
    tctl_stage *stage = fake_stage(plugin, options);
    problem at = {0};
    double w[N], v[N] = {0};
    fill(at.w, 1);
    for (int i = 0; i < N; i++)
        w[i] = (double)at.w[i];
    for (uint64_t t = 1; t <= 20; t++) {
        fill(at.g, t + 7);
        for (int i = 0; i < N; i++) {
            double g = (double)at.g[i] + decay * w[i];
            v[i] = mu * v[i] + g;
            w[i] -= lr * 0.5 * (mu == 0 ? g : ahead ? g + mu * v[i] : v[i]);
        }
        step(plugin, stage, p, &at, 0, N, t, 0.5);
    }
    assert_near(at.w, w, 2e-6);
    plugin->destroy(stage);
}

static void sgd_does_what_it_says(void **state)
{
    (void)state;
    check_sgd((fake_option[]){{"lr", "0.1"}, {NULL, NULL}}, &weight, 0.1, 0, 0, false);
    check_sgd((fake_option[]){{"lr", "0.1"}, {"weight_decay", "0.01"}, {NULL, NULL}}, &weight, 0.1, 0, 0.01,
              false);
    check_sgd((fake_option[]){{"lr", "0.1"}, {"momentum", "0.9"}, {"weight_decay", "5e-4"}, {NULL, NULL}},
              &weight, 0.1, 0.9, 5e-4, false);
    const fake_option all[] = {
        {"lr", "0.1"}, {"momentum", "0.9"}, {"nesterov", "true"}, {"weight_decay", "0.01"}, {NULL, NULL}};
    check_sgd(all, &weight, 0.1, 0.9, 0.01, true);
    check_sgd(all, &bias, 0.1, 0.9, 0, true);
}

static void sgd_refuses_nesterov_without_momentum(void **state)
{
    (void)state;
    const tctl_plugin *plugin = fake_plugin("sgd");
    const fake_option options[] = {{"lr", "0.1"}, {"nesterov", "true"}, {NULL, NULL}};
    tctl_stage *stage = NULL;
    tctl_error err;
    assert_int_equal(fake_create(plugin, options, &stage, &err), TCTL_ESPEC);
    assert_string_equal(err.message, "'nesterov' needs a momentum above 0");
    assert_null(stage);
}

/* ---- adamw ------------------------------------------------------------------------------------------- */

static void check_adamw(const tctl_parameter *p, double decay)
{
    const tctl_plugin *plugin = fake_plugin("adamw");
    const fake_option options[] = {{"lr", "0.01"}, {"weight_decay", "0.1"}, {NULL, NULL}};
    tctl_stage *stage = fake_stage(plugin, options);
    problem at = {0};
    double w[N], m[N] = {0}, v[N] = {0};
    fill(at.w, 1);
    for (int i = 0; i < N; i++)
        w[i] = (double)at.w[i];
    for (uint64_t t = 1; t <= 20; t++) {
        fill(at.g, t + 7);
        double lr = 0.01 * 0.5;
        for (int i = 0; i < N; i++) {
            double g = (double)at.g[i];
            w[i] *= 1 - lr * decay;
            m[i] = 0.9 * m[i] + (1 - 0.9) * g;
            v[i] = 0.999 * v[i] + (1 - 0.999) * g * g;
            double mean = m[i] / (1 - pow(0.9, (double)t)), square = v[i] / (1 - pow(0.999, (double)t));
            w[i] -= lr * mean / (sqrt(square) + 1e-8);
        }
        step(plugin, stage, p, &at, 0, N, t, 0.5);
    }
    assert_near(at.w, w, 2e-6);
    plugin->destroy(stage);
}

static void adamw_does_what_it_says(void **state)
{
    (void)state;
    check_adamw(&weight, 0.1);
    check_adamw(&bias, 0);
}

/* torch 1.13: three steps from w = 0.5 with g = 0.1, -0.2, 0.3. */
static void both_agree_with_pytorch(void **state)
{
    (void)state;
    static const float grads[] = {0.1f, -0.2f, 0.3f};
    static const struct {
        const char *name;
        fake_option options[5];
        double expected;
    } cases[] = {
        {"sgd",
         {{"lr", "0.1"}, {"momentum", "0.9"}, {"nesterov", "true"}, {"weight_decay", "0.01"}, {NULL, NULL}},
         0.458823144},
        {"adamw", {{"lr", "0.01"}, {"weight_decay", "0.1"}, {NULL, NULL}}, 0.488746464},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const tctl_plugin *plugin = fake_plugin(cases[k].name);
        tctl_stage *stage = fake_stage(plugin, cases[k].options);
        problem at = {.w = {0.5f}};
        for (uint64_t t = 1; t <= 3; t++) {
            at.g[0] = grads[t - 1];
            step(plugin, stage, &weight, &at, 0, 1, t, 1);
        }
        assert_true(fabs((double)at.w[0] - cases[k].expected) < 1e-7);
        plugin->destroy(stage);
    }
}

/* ---- both -------------------------------------------------------------------------------------------- */

static void ranges_do_not_show(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        fake_option options[5];
    } cases[] = {
        {"sgd", {{"lr", "0.1"}, {"weight_decay", "0.01"}, {NULL, NULL}}},
        {"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}, {NULL, NULL}}},
        {"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}, {"nesterov", "true"}, {NULL, NULL}}},
        {"adamw", {{"weight_decay", "0.1"}, {NULL, NULL}}},
    };
    static const uint64_t cuts[] = {0, 1, 4, 11, 27, 300, 301, 999, N};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const tctl_plugin *plugin = fake_plugin(cases[k].name);
        tctl_stage *stage = fake_stage(plugin, cases[k].options);
        problem a = {0}, b = {0};
        fill(a.w, 3);
        fill(b.w, 3);
        for (uint64_t t = 1; t <= 5; t++) {
            fill(a.g, t);
            fill(b.g, t);
            step(plugin, stage, &weight, &a, 0, N, t, 1);
            for (size_t c = sizeof cuts / sizeof cuts[0] - 1; c > 0; c--)
                step(plugin, stage, &weight, &b, cuts[c - 1], cuts[c] - cuts[c - 1], t, 1);
        }
        assert_memory_equal(&a, &b, sizeof a);
        plugin->destroy(stage);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_does_what_it_says),   cmocka_unit_test(sgd_refuses_nesterov_without_momentum),
        cmocka_unit_test(adamw_does_what_it_says), cmocka_unit_test(both_agree_with_pytorch),
        cmocka_unit_test(ranges_do_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
