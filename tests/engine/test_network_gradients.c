/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's gradients in double: some elements of each against central differences of the loss, which need nobody's
 * backward; all of them against the naive reference's backward.
 */
#include <math.h>

#include "toy.h"

#include "engine/build.h"
#include "seed/stream.h"
#include "zoo.h"

static double d_activation(const toy_op *o, double x)
{
    const double u = sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x);
    if (strcmp(o->op, "gelu") == 0)
        return o->tanh_form ? x / 2 * (1 + tanh(u)) : x / 2 * erfc(-x / sqrt(2));
    return strcmp(o->op, "silu") == 0   ? x / (1 + exp(-x))
           : strcmp(o->op, "tanh") == 0 ? tanh(x)
                                        : 1 / (1 + exp(-x));
}

/* Of the function above, by differences: the engine's slopes are tested against nothing of their own. */
static double d_slope(const toy_op *o, double x, double y)
{
    const double h = 1e-5;
    (void)y;
    return (d_activation(o, x + h) - d_activation(o, x - h)) / (2 * h);
}

#define REAL         double
#define FMA(a, b, c) ((a) * (b) + (c))
#define EXP(x)       exp(x)
#define LOG(x)       log(x)
#define SQRT(x)      sqrt(x)
#define NAME(x)      d_##x
#include "reference_body.h"

/* Elements of a parameter that differences are taken of. They are one thread's arithmetic, so that a build that looks for
 * races has no use for many. */
#if defined(__SANITIZE_THREAD__)
enum { MAX_CHECKS = 1 };
#else
enum { MAX_CHECKS = 6 };
#endif

static double loss_at(d_net *ref, double *where, double value)
{
    double before = *where;
    *where = value;
    d_forward(ref);
    *where = before;
    return ref->loss;
}

/* Kinks (relu, maxpool) between the two points show as a difference that depends on the step: a smaller one is
 * tried. */
static double difference(d_net *ref, double *where, double step)
{
    return (loss_at(ref, where, *where + step) - loss_at(ref, where, *where - step)) / (2 * step);
}

/* What a float gradient may be off by: rounding of sums whose terms are as large as the largest gradient. */
static bool close_enough(double got, double expected, double largest)
{
    return fabs(got - expected) <= 2e-4 * fabs(expected) + 2e-5 * largest + 1e-7;
}

static void check_parameter(const toy *t, d_net *ref, uint32_t i, const char *name, const float *grad)
{
    double largest = 0;
    for (int64_t k = 0; k < ref->size[i]; k++)
        largest = fmax(largest, fabs((double)grad[k]));
    for (int64_t k = 0; k < ref->size[i]; k++) {
        if (!close_enough((double)grad[k], ref->grad[i][k], largest))
            fail_msg("model '%s': gradient %s[%lld] is %.9g, in double %.9g", t->name, name, (long long)k,
                     (double)grad[k], ref->grad[i][k]);
    }
    int64_t stride = ref->size[i] / MAX_CHECKS + 1;
    for (int64_t k = 0; k < ref->size[i]; k += stride) {
        double got = (double)grad[k], expected = 0;
        bool good = false;
        for (double step = 1e-5; step > 1e-8 && !good; step /= 10) {
            expected = difference(ref, &ref->param[i][k], step);
            good = close_enough(got, expected, largest);
        }
        if (!good)
            fail_msg("model '%s': gradient %s[%lld] is %.9g, by differences %.9g", t->name, name,
                     (long long)k, got, expected);
    }
}

static void check_model(const toy *t, tctl_pool *pool)
{
    tctl_error err = {0};
    tctl_network *net;
    if (toy_create(t, pool, &net, &err))
        fail_msg("model '%s': %s", t->name, err.message);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    toy_batch batch = toy_make_batch(t, t->batch, 1000, (int)net->loss.classes);
    tctl_network_result result;
    assert_int_equal(tctl_network_forward(net, &batch.b, &result, &err), TCTL_OK);
    assert_int_equal(tctl_network_backward(net, &batch.b, &err), TCTL_OK);
    d_net ref;
    d_create(&ref, t, t->batch);
    ref.batch = batch.b;
    for (int64_t k = 0; k < ref.n * d_count(&ref.input); k++)
        ref.input.y[k] = (double)batch.x[k];
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        for (int64_t k = 0; k < ref.size[i]; k++)
            ref.param[i][k] = (double)m->param[m->parameters[i].offset + (uint64_t)k];
    }
    d_forward(&ref);
    d_backward(&ref);
    if (!(fabs((double)result.loss - ref.loss) <= 1e-5 * (1 + ref.loss)))
        fail_msg("model '%s': loss %.9g, in double %.9g", t->name, (double)result.loss, ref.loss);
    for (uint32_t i = 0; i < m->n_parameters; i++)
        check_parameter(t, &ref, i, m->parameters[i].name, m->grad + m->parameters[i].offset);
    d_destroy(&ref);
    toy_free_batch(&batch);
    tctl_network_destroy(net);
}

static void gradients_are_the_slopes_of_the_loss(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_pool *pool;
    assert_int_equal(tctl_pool_create(1, &pool, &err), TCTL_OK);
    for (size_t z = 0; z < ZOO; z++)
        check_model(&zoo[z], pool);
    tctl_pool_destroy(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_the_slopes_of_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
