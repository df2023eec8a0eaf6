/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole networks against the naive reference in float: logits, loss, every gradient, and running statistics have
 * equal bits, for any number of threads and every SIMD variant; and stale memory is never read.
 */
#include <math.h>

#include "toy.h"

#include "base/fmath.h"
#include "engine/build.h"
#include "seed/stream.h"
#include "zoo.h"

static float f_activation(const toy_op *o, float x)
{
    if (strcmp(o->op, "gelu") == 0)
        return o->tanh_form ? tctl_gelu_tanhf(x) : tctl_geluf(x);
    return strcmp(o->op, "silu") == 0   ? tctl_siluf(x)
           : strcmp(o->op, "tanh") == 0 ? tctl_tanhf(x)
                                        : tctl_sigmoidf(x);
}

static float f_slope(const toy_op *o, float x, float y)
{
    if (strcmp(o->op, "gelu") == 0)
        return o->tanh_form ? tctl_gelu_tanh_slopef(x) : tctl_gelu_slopef(x);
    return strcmp(o->op, "silu") == 0   ? tctl_silu_slopef(x)
           : strcmp(o->op, "tanh") == 0 ? 1 - y * y
                                        : y * (1 - y);
}

#define REAL         float
#define FMA(a, b, c) fmaf(a, b, c)
#define EXP(x)       tctl_expf(x)
#define LOG(x)       tctl_logf(x)
#define SQRT(x)      sqrtf(x)
#define NAME(x)      f_##x
#include "reference_body.h"

static void load_reference(f_net *ref, const tctl_network_memory *m, const toy_batch *batch)
{
    assert_int_equal(ref->n_params, m->n_parameters);
    for (uint32_t i = 0; i < m->n_parameters; i++) {
        assert_int_equal(ref->size[i], m->parameters[i].count);
        memcpy(ref->param[i], m->param + m->parameters[i].offset, (size_t)ref->size[i] * sizeof(float));
    }
    memcpy(ref->input.y, batch->x, (size_t)(ref->n * f_count(&ref->input)) * sizeof(float));
    ref->batch = batch->b;
}

static void same_bits(const toy *t, const char *what, const float *got, const float *expected, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(&got[i], &expected[i], sizeof *got) != 0 && !(isnan(got[i]) && isnan(expected[i])))
            fail_msg("model '%s': %s[%lld] is %a; the reference has %a", t->name, what, (long long)i,
                     (double)got[i], (double)expected[i]);
    }
}

static void compare(const toy *t, f_net *ref, const tctl_network_memory *m, const tctl_network_result *result)
{
    same_bits(t, "logits", result->outputs, ref->values[ref->n_ops - 1].y, ref->n * ref->classes);
    same_bits(t, "loss", &result->loss, &ref->loss, 1);
    for (uint32_t i = 0; i < m->n_parameters; i++)
        same_bits(t, m->parameters[i].name, m->grad + m->parameters[i].offset, ref->grad[i], ref->size[i]);
    uint32_t buffer = 0;
    for (int i = 0; i < ref->n_ops; i++) {
        if (strcmp(t->ops[i].op, "batchnorm") != 0)
            continue;
        for (int k = 0; k < 2; k++, buffer++)
            same_bits(t, m->buffers[buffer].name, m->buffer + m->buffers[buffer].offset,
                      ref->running[2 * i + k], ref->values[i].c);
    }
    assert_int_equal(buffer, m->n_buffers);
}

static void poison(float *p, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof *p; i++)
        p[i] = NAN;
}

/* Two steps with the same batch, the second in memory full of not-a-number. */
static void run_engine(const toy *t, const char *simd, uint32_t threads, f_net *ref)
{
    tctl_error err = {0};
    tctl_pool *pool;
    tctl_network *net;
    assert_int_equal(setenv("TRAINCTL_SIMD", simd, 1), 0);
    assert_int_equal(tctl_pool_create(threads, &pool, &err), TCTL_OK);
    if (toy_create(t, pool, &net, &err))
        fail_msg("model '%s': %s", t->name, err.message);
    toy_batch batch = toy_make_batch(t, t->batch, 1000, (int)net->loss.classes);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    if (!ref->t) {
        f_create(ref, t, t->batch);
        load_reference(ref, m, &batch);
        f_forward(ref);
        f_backward(ref);
    }
    tctl_network_result result = {0};
    for (int step = 0; step < 2; step++) {
        size_t scratch = net->shared_floats + net->scratch_stride * threads;
        poison(net->activations, m->activation_bytes - scratch * sizeof(float));
        poison(net->scratch, scratch * sizeof(float));
        for (uint64_t i = 0; i < m->n_elements; i++)
            m->grad[i] = 0;
        for (uint32_t i = 0; i < m->n_buffers; i++) {
            for (uint64_t k = 0; k < m->buffers[i].count; k++)
                m->buffer[m->buffers[i].offset + k] = (float)(i % 2);
        }
        assert_int_equal(tctl_network_forward(net, &batch.b, &result, &err), TCTL_OK);
        assert_int_equal(tctl_network_backward(net, &batch.b, &err), TCTL_OK);
        compare(t, ref, m, &result);
    }
    toy_free_batch(&batch);
    tctl_network_destroy(net);
    tctl_pool_destroy(pool);
}

static void networks_equal_the_reference(void **state)
{
    (void)state;
    uint32_t n;
    const tctl_simd *const *simd = tctl_simd_available(&n);
    for (size_t z = 0; z < ZOO; z++) {
        f_net ref = {0};
        for (uint32_t v = 0; v < n; v++) {
            static const uint32_t threads[] = {1, 2, 3, 5};
            for (size_t k = 0; k < (v ? 1 : 4); k++)
                run_engine(&zoo[z], simd[v]->name, threads[k], &ref);
        }
        f_destroy(&ref);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_equal_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
