/* SPDX-License-Identifier: Apache-2.0 */
/* What a network promises beyond its bits: names, initial values, errors, modes, and what does not matter. */
#include <malloc.h>
#include <math.h>

#include "toy.h"

#include "engine/build.h"
#include "zoo_network.h"

static tctl_network_result forward(tctl_network *net, const tctl_network_batch *b)
{
    tctl_error err = {0};
    tctl_network_result r = {0};
    if (tctl_network_forward(net, b, &r, &err))
        fail_msg("%s", err.message);
    if (!r.outputs)
        abort();
    return r;
}

static void train(tctl_network *net, const tctl_network_batch *b)
{
    forward(net, b);
    assert_int_equal(tctl_network_backward(net, b, NULL), TCTL_OK);
}

static float *copy(const float *x, size_t n)
{
    float *out = random_floats(n, 0);
    memcpy(out, x, n * sizeof *x);
    return out;
}

/* ---- errors -------------------------------------------------------------------------------------------- */

/* Tokens come as bytes, 32-bit or 64-bit numbers. */
static void the_type_of_tokens_does_not_matter(void **state)
{
    (void)state;
    const toy *t = find("characters");
    static tctl_model model;
    toy_build(&model, t->ops, toy_count(t));
    toy_batch b = toy_make_batch(t, 5, 500, 11);
    uint8_t bytes[100];
    int32_t words[100];
    for (int i = 0; i < 100; i++) {
        bytes[i] = (uint8_t)b.tokens[i];
        words[i] = (int32_t)b.tokens[i];
    }
    const void *const tokens[] = {b.tokens, words, bytes};
    static const int32_t types[] = {TCTL_I64, TCTL_I32, TCTL_U8};
    float losses[3];
    for (int k = 0; k < 3; k++) {
        const tctl_field field = {.name = "tokens", .dtype = types[k], .rank = 1, .dims = {20}};
        const tctl_network_request q = {.model = &model,
                                        .models = &toy_models,
                                        .input = &field,
                                        .max_batch = 5,
                                        .n_labels = 20,
                                        .pool = pool};
        tctl_network *net = NULL;
        assert_int_equal(tctl_network_create(&q, &net, NULL), TCTL_OK);
        b.b.tokens = tokens[k];
        losses[k] = forward(net, &b.b).loss;
        tctl_network_destroy(net);
    }
    assert_memory_equal(&losses[0], &losses[1], sizeof losses[0]);
    assert_memory_equal(&losses[0], &losses[2], sizeof losses[0]);
    toy_free_batch(&b);
}

/* What comes later in a text changes nothing before it. */
static void causal_attention_does_not_look_ahead(void **state)
{
    (void)state;
    const toy *t = find("characters");
    tctl_network *net = create(t);
    toy_batch b = toy_make_batch(t, 1, 500, 11);
    tctl_error err = {0};
    tctl_network_result r;
    float before[20 * 11];
    assert_int_equal(tctl_network_evaluate(net, &b.b, &r, &err), TCTL_OK);
    memcpy(before, r.outputs, sizeof before);
    for (int i = 13; i < 20; i++)
        b.tokens[i] = (b.tokens[i] + 1) % 11;
    assert_int_equal(tctl_network_evaluate(net, &b.b, &r, &err), TCTL_OK);
    assert_memory_equal(before, r.outputs, 13 * 11 * sizeof *before);
    assert_memory_not_equal(before + 13 * 11, r.outputs + 13 * 11, 11 * sizeof *before);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

/* ---- parameters ---------------------------------------------------------------------------------------- */

static void parameters_have_names_places_and_flags(void **state)
{
    (void)state;
    tctl_network *net = create(find("residual"));
    const tctl_network_memory *m = tctl_network_memory_of(net);
    static const char *const names[] = {
        "conv0.weight", "conv0.bias",        "batchnorm1.weight", "batchnorm1.bias", "conv3.weight",
        "conv3.bias",   "batchnorm4.weight", "batchnorm4.bias",   "linear8.weight",  "linear8.bias"};
    assert_int_equal(m->n_parameters, 10);
    uint64_t end = 0;
    for (uint32_t i = 0; i < 10; i++) {
        const tctl_parameter *p = &m->parameters[i];
        assert_string_equal(p->name, names[i]);
        assert_int_equal(p->offset, end);
        assert_int_equal(p->flags & TCTL_PARAMETER_NO_DECAY, p->rank == 1);
        end += (p->count + 15) / 16 * 16;
        for (uint64_t k = p->offset + p->count; k < end; k++)
            assert_true(m->param[k] == 0);
    }
    assert_int_equal(m->n_elements, end);
    assert_int_equal(m->parameters[0].rank, 4);
    const int64_t dims[] = {3, 3, 3, 8};
    assert_memory_equal(m->parameters[0].dims, dims, sizeof dims);
    assert_int_equal(m->n_buffers, 4);
    assert_string_equal(m->buffers[3].name, "batchnorm4.running_var");
    assert_true((uintptr_t)m->param % 64 == 0 && (uintptr_t)m->grad % 64 == 0);
    tctl_network_destroy(net);
}

static void weights_start_at_the_documented_scale(void **state)
{
    (void)state;
    const toy t = {"", 8, 8, 16, 1, 0, {CONV(.out = 64, .kernel = 3), FLATTEN, LINEAR(10)}};
    tctl_network *net = create(&t);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    double sum = 0, squares = 0, n = (double)m->parameters[0].count;
    for (uint64_t i = 0; i < m->parameters[0].count; i++) {
        sum += (double)m->param[i];
        squares += (double)m->param[i] * (double)m->param[i];
    }
    assert_true(fabs(sqrt(squares / n) / sqrt(2.0 / (9 * 16)) - 1) < 0.03);
    assert_true(fabs(sum / n) < 0.004);
    float most = 0, bound = (float)(1 / sqrt(6 * 6 * 64));
    const tctl_parameter *w = &m->parameters[2];
    for (uint64_t i = 0; i < w->count; i++)
        most = fmaxf(most, fabsf(m->param[w->offset + i]));
    assert_true(most <= bound && most > 0.99f * bound);
    tctl_network_destroy(net);
}

static void other_operators_do_not_change_initial_weights(void **state)
{
    (void)state;
    const toy a = {"", 5, 5, 3, 1, 0, {CONV(.out = 4, .kernel = 3), FLATTEN, LINEAR(2)}};
    const toy b = {
        "", 5, 5, 3, 1, 0, {CONV(.out = 4, .kernel = 3), BATCHNORM, FLATTEN, DROPOUT(0.5), LINEAR(2)}};
    tctl_network *x = create(&a), *y = create(&b);
    assert_memory_equal(x->memory.param, y->memory.param, x->memory.parameters[0].count * sizeof(float));
    tctl_network_destroy(x);
    tctl_network_destroy(y);
}

/* ---- batches ------------------------------------------------------------------------------------------- */

static void room_for_larger_batches_does_not_show(void **state)
{
    (void)state;
    const toy *t = find("example, small");
    toy small = *t;
    small.batch = 7;
    tctl_network *a = create(t), *b = create(&small);
    toy_batch batch = toy_make_batch(t, 7, 9, 10);
    train(a, &batch.b);
    train(b, &batch.b);
    assert_memory_equal(a->memory.grad, b->memory.grad, a->memory.n_elements * sizeof(float));
    assert_memory_equal(a->memory.buffer, b->memory.buffer, a->memory.n_buffer_elements * sizeof(float));
    toy_free_batch(&batch);
    tctl_network_destroy(a);
    tctl_network_destroy(b);
}

static void accumulating_adds_to_the_gradients(void **state)
{
    (void)state;
    const toy *t = find("residual");
    tctl_network *net = create(t);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    toy_batch a = toy_make_batch(t, 4, 0, 4), b = toy_make_batch(t, 3, 50, 4);
    train(net, &a.b);
    float *first = copy(m->grad, m->n_elements);
    train(net, &b.b);
    float *second = copy(m->grad, m->n_elements);
    train(net, &a.b);
    b.b.accumulate = true;
    train(net, &b.b);
    for (uint64_t i = 0; i < m->n_elements; i++)
        assert_true(m->grad[i] == first[i] + second[i]);
    free(first);
    free(second);
    toy_free_batch(&a);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void a_loss_scale_multiplies_gradients_exactly(void **state)
{
    (void)state;
    const toy *t = find("example, small");
    tctl_network *net = create(t);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    toy_batch b = toy_make_batch(t, 20, 0, 10);
    train(net, &b.b);
    float *plain = copy(m->grad, m->n_elements);
    b.b.loss_scale = 1024;
    train(net, &b.b);
    for (uint64_t i = 0; i < m->n_elements; i++)
        assert_true(m->grad[i] == 1024 * plain[i]);
    free(plain);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void evaluation_changes_nothing_and_sees_samples_alone(void **state)
{
    (void)state;
    const toy *t = find("residual");
    tctl_network *net = create(t);
    const tctl_network_memory *m = tctl_network_memory_of(net);
    tctl_error err = {0};
    tctl_network_result r = {0}, alone = {0};
    toy_batch b = toy_make_batch(t, 4, 0, 4), one = toy_make_batch(t, 1, 2, 4);
    train(net, &b.b);
    float *buffer = copy(m->buffer, m->n_buffer_elements), *param = copy(m->param, m->n_elements);
    assert_int_equal(tctl_network_evaluate(net, &b.b, &r, &err), TCTL_OK);
    float *outputs = copy(r.outputs, 4 * 4);
    assert_int_equal(tctl_network_evaluate(net, &one.b, &alone, &err), TCTL_OK);
    assert_memory_equal(alone.outputs, outputs + 2 * 4, 4 * sizeof(float));
    assert_memory_equal(m->buffer, buffer, m->n_buffer_elements * sizeof(float));
    assert_memory_equal(m->param, param, m->n_elements * sizeof(float));
    uint64_t correct = 0;
    for (int i = 0; i < 4; i++) {
        int best = 0;
        for (int j = 1; j < 4; j++)
            best = outputs[4 * i + j] > outputs[4 * i + best] ? j : best;
        correct += best == b.labels[i];
    }
    assert_int_equal(r.correct, correct);
    free(outputs);
    free(buffer);
    free(param);
    toy_free_batch(&b);
    toy_free_batch(&one);
    tctl_network_destroy(net);
}

static void steps_allocate_nothing(void **state)
{
    (void)state;
    const toy *t = find("dropout");
    tctl_network *net = create(t);
    toy_batch b = toy_make_batch(t, 4, 0, 4);
    train(net, &b.b);
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 3; i++)
        train(net, &b.b);
    assert_int_equal(mallinfo2().uordblks, before);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void buffers_are_shared_where_the_graph_is_a_chain(void **state)
{
    (void)state;
    tctl_network *net = create(find("example, small"));
    size_t all = 0, scratch = net->shared_floats + 2 * net->scratch_stride;
    for (uint32_t i = 0; i < net->n_operations; i++)
        all += 2 * (size_t)tctl_shape_count(&net->operations[i].out) * 20 * sizeof(float);
    assert_true(net->memory.activation_bytes - scratch * sizeof(float) < all / 2);
    assert_ptr_equal(net->operations[10].y, net->operations[10].x[0]);   /* relu in place */
    assert_ptr_equal(net->operations[10].dy, net->operations[9].dy);     /* and so its gradient */
    assert_ptr_not_equal(net->operations[1].y, net->operations[1].x[0]); /* batchnorm needs its input */
    tctl_network_destroy(net);
}

/* Whether operation i computes nothing because operation `by` does it. */
static bool is_taken(const tctl_network *net, int i, int by)
{
    return (net->operations[i].flags & TCTL_OP_ALIAS) && net->operations[i].sources[0] == by;
}

/* That it changes no bit is what the golden digests say: they were made before there was any fusion. */
static void batchnorm_takes_what_nobody_else_reads(void **state)
{
    (void)state;
    tctl_network *net = create(find("example, small"));
    assert_true(is_taken(net, 2, 1) && is_taken(net, 3, 1) && is_taken(net, 6, 5) && is_taken(net, 7, 5));
    assert_int_equal(net->operations[4].sources[0], 1);
    assert_ptr_equal(net->operations[4].lender, &net->operations[5]); /* whose gradient is not stored */
    assert_null(net->operations[5].dx[0]);
    tctl_network_destroy(net);
    net = create(find("batchnorm, relu, overlapping pool"));
    assert_true(is_taken(net, 2, 1) && !is_taken(net, 3, 1));
    tctl_network_destroy(net);
    net = create(find("batchnorm between two convolutions"));
    assert_ptr_equal(net->operations[3].before, &net->operations[1]); /* which stores nothing, so that */
    assert_ptr_equal(net->operations[3].x[0], net->operations[0].y);  /* its input is read in its place */
    assert_ptr_equal(net->operations[5].before, &net->operations[4]);
    tctl_network_destroy(net);
    net = create(find("relu between two readers of batchnorm"));
    assert_true(!is_taken(net, 2, 1) && !net->operations[1].tail.relu);
    tctl_network_destroy(net);
    net = create(find("two readers behind relu"));
    assert_true(is_taken(net, 2, 1) && !net->operations[1].tail.pool);
    tctl_network_destroy(net);
    net = create(find("batchnorm and relu at the end"));
    assert_true(is_taken(net, 2, 1) && net->outputs == net->operations[1].y);
    tctl_network_destroy(net);
}

/* ---- operators ----------------------------------------------------------------------------------------- */

/* Sample i's draws are its own, wherever it stands in the batch; another step has others. */
static void dropout_belongs_to_the_sample_and_the_step(void **state)
{
    (void)state;
    const toy t = {"", 0, 0, 1000, 4, 0, {DROPOUT(0.3)}};
    tctl_network *net = create(&t);
    toy_batch b = toy_make_batch(&t, 4, 100, 1000), one = toy_make_batch(&t, 1, 102, 1000);
    tctl_network_result r = forward(net, &b.b);
    float *outputs = copy(r.outputs, 4000);
    int dropped = 0;
    for (int i = 0; i < 4000; i++) {
        dropped += outputs[i] == 0;
        assert_true(outputs[i] == 0 || outputs[i] == b.x[i] * (float)(1 / (1 - 0.3)));
    }
    assert_in_range(dropped, 1200 - 120, 1200 + 120);
    r = forward(net, &one.b);
    assert_memory_equal(r.outputs, outputs + 2000, 1000 * sizeof(float));
    one.b.step++;
    r = forward(net, &one.b);
    assert_memory_not_equal(r.outputs, outputs + 2000, 1000 * sizeof(float));
    assert_int_equal(tctl_network_evaluate(net, &one.b, &r, NULL), TCTL_OK);
    assert_memory_equal(r.outputs, one.x, 1000 * sizeof(float));
    free(outputs);
    toy_free_batch(&b);
    toy_free_batch(&one);
    tctl_network_destroy(net);
}

static void maxpool_takes_the_first_of_equals_and_the_first_not_a_number(void **state)
{
    (void)state;
    const toy t = {"", 3, 3, 1, 1, 0, {MAXPOOL(.kernel = 3)}};
    tctl_network *net = create(&t);
    toy_batch b = toy_make_batch(&t, 1, 0, 1);
    const int32_t *winner = net->operations[0].saved;
    for (int i = 0; i < 9; i++)
        b.x[i] = i == 0 ? 0 : 1;
    assert_true(forward(net, &b.b).outputs[0] == 1);
    assert_int_equal(*winner, 1);
    b.x[4] = b.x[7] = NAN;
    b.x[8] = INFINITY;
    assert_true(isnan(forward(net, &b.b).outputs[0]));
    assert_int_equal(*winner, 4);
    b.x[0] = NAN;
    assert_true(isnan(forward(net, &b.b).outputs[0]));
    assert_int_equal(*winner, 0);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void not_a_number_reaches_the_loss(void **state)
{
    (void)state;
    const toy *t = find("example, small");
    tctl_network *net = create(t);
    toy_batch b = toy_make_batch(t, 20, 0, 10);
    b.x[5] = NAN;
    assert_true(isnan(forward(net, &b.b).loss));
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void a_confident_network_has_a_finite_loss(void **state)
{
    (void)state;
    const toy t = {"", 0, 0, 3, 2, 0.1, {FLATTEN}};
    tctl_network *net = create(&t);
    toy_batch b = toy_make_batch(&t, 2, 0, 3);
    const float x[] = {1000, -1000, 0, 5, 5, 4};
    memcpy(b.x, x, sizeof x);
    b.labels[0] = 0;
    b.labels[1] = 1;
    tctl_network_result r = forward(net, &b.b);
    assert_int_equal(r.correct, 1); /* ties go to the lowest class */
    double e = 0.1 / 3, second = log(2 + exp(-1)) + e;
    assert_true(fabs((double)r.loss - (e * 3000 + second) / 2) < 1e-3);
    assert_int_equal(tctl_network_backward(net, &b.b, NULL), TCTL_OK);
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_type_of_tokens_does_not_matter),
        cmocka_unit_test(causal_attention_does_not_look_ahead),
        cmocka_unit_test(parameters_have_names_places_and_flags),
        cmocka_unit_test(weights_start_at_the_documented_scale),
        cmocka_unit_test(other_operators_do_not_change_initial_weights),
        cmocka_unit_test(room_for_larger_batches_does_not_show),
        cmocka_unit_test(accumulating_adds_to_the_gradients),
        cmocka_unit_test(a_loss_scale_multiplies_gradients_exactly),
        cmocka_unit_test(evaluation_changes_nothing_and_sees_samples_alone),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(buffers_are_shared_where_the_graph_is_a_chain),
        cmocka_unit_test(batchnorm_takes_what_nobody_else_reads),
        cmocka_unit_test(dropout_belongs_to_the_sample_and_the_step),
        cmocka_unit_test(maxpool_takes_the_first_of_equals_and_the_first_not_a_number),
        cmocka_unit_test(not_a_number_reaches_the_loss),
        cmocka_unit_test(a_confident_network_has_a_finite_loss),
    };
    return cmocka_run_group_tests(tests, make_pool, drop_pool);
}
