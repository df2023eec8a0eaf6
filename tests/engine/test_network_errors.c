/* SPDX-License-Identifier: Apache-2.0 */
/* What a network refuses, and how it says so: models that do not fit, requests without sense, labels and tokens outside. */
#include "toy.h"

#include "engine/build.h"
#include "zoo_network.h"

typedef struct refusal {
    toy t;
    const char *message;
} refusal;

static void check_refusals(const refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tctl_error err = {0};
        tctl_network *net = NULL;
        assert_int_equal(toy_create(&cases[i].t, pool, &net, &err), TCTL_ESPEC);
        assert_string_equal(err.message, cases[i].message);
        assert_null(net);
    }
}

static void operators_that_do_not_fit_their_image_are_named(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{"", 1, 1, 3, 1, 0, {CONV(.out = 2, .kernel = 3)}},
         "operator 'conv0' (conv): kernel 3 does not fit the padded input 1x1"},
        {{"", 4, 9, 3, 1, 0, {CONV(.out = 2, .kernel = 3, .dilation = 2)}},
         "operator 'conv0' (conv): kernel 5 (dilated) does not fit the padded input 4x9"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 4, .kernel = 3, .groups = 2)}},
         "operator 'conv0' (conv): groups 2 does not divide the 3 input channels"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 4, .kernel = 3, .groups = 3)}},
         "operator 'conv0' (conv): groups 3 does not divide the 4 output channels"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 4)}}, "operator 'conv0' (conv): option 'kernel' is missing"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 4, .kernel = 65)}},
         "operator 'conv0' (conv): kernel is 65; it must be 1 to 64"},
        {{"", 0, 0, 3, 1, 0, {CONV(.out = 4, .kernel = 1)}},
         "operator 'conv0' (conv): needs an image [height, width, channels]; its input is 3"},
        {{"", 4, 4, 3, 1, 0, {MAXPOOL(.kernel = 5)}},
         "operator 'maxpool0' (maxpool): kernel 5 does not fit the padded input 4x4"},
        {{"", 4, 4, 3, 1, 0, {MAXPOOL(.kernel = 2, .pad = 2)}},
         "operator 'maxpool0' (maxpool): pad 2 is not less than the kernel, 2"},
        {{"", 0, 0, 3, 1, 0, {AVGPOOL}},
         "operator 'globalavgpool0' (globalavgpool): needs an image or a sequence; its input is 3"},
        {{"", 4, 4, 3, 1, 0, {{.op = "avgpool", .kernel = 5}}},
         "operator 'avgpool0' (avgpool): kernel 5 does not fit the input 4x4"},
        {{"", 4, 4, 3, 1, 0, {{.op = "convtranspose", .out = 2, .kernel = 1, .pad = 2}}},
         "operator 'convtranspose0' (convtranspose): pad 2 leaves nothing of its output"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void operators_that_do_not_fit_their_sequence_are_named(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{"", 0, 0, 3, 1, 0, {{.op = "tokens"}}},
         "operator 'tokens0' (tokens): needs an image [height, width, channels]; its input is 3"},
        {{"", 4, 4, 3, 1, 0, {{.op = "position"}}},
         "operator 'position0' (position): needs a sequence [positions, features]; its input is 4 x 4 x 3"},
        {{"", 4, 4, 3, 1, 0, {{.op = "attention"}}},
         "operator 'attention0' (attention): needs a sequence [positions, features]; its input is 4 x 4 x 3"},
        {{"", 4, 4, 4, 1, 0, {{.op = "tokens"}, {.op = "attention"}}},
         "operator 'attention1' (attention): its input has 4 features; q, k and v need a multiple of 3"},
        {{"", 4, 4, 9, 1, 0, {{.op = "tokens"}, {.op = "attention", .heads = 2}}},
         "operator 'attention1' (attention): heads 2 does not divide the 3 features"},
        {{"", 4, 4, 9, 1, 0, {{.op = "tokens"}, LINEAR(3), {.op = "attention", .from = 1, .from2 = 2}}},
         "operator 'attention2' (attention): has 2 inputs; it takes one with q, k and v side by side, or "
         "these "
         "three"},
        {{"",
          4,
          4,
          9,
          1,
          0,
          {{.op = "tokens"}, LINEAR(3), {.op = "attention", .from = 1, .from2 = 2, .from3 = 2}}},
         "operator 'attention2' (attention): its inputs have different shapes, 16 x 9 and 16 x 3"},
        {{"", 4, 4, 3, 1, 0, {{.op = "embedding", .vocabulary = 0, .out = 3}}},
         "operator 'embedding0' (embedding): needs token numbers: integers of the data, one per position"},
        {{"", 0, 0, 5, 1, 0, {LINEAR(4), {.op = "embedding", .vocabulary = 7, .out = 3, .from = -1}}},
         "operator 'linear0' (linear): its input is token numbers; an 'embedding' turns them into features"},
        {{"", 0, 0, 5, 1, 0, {{.op = "embedding", .vocabulary = 7, .out = 3}, LINEAR(4)}},
         "operator 'linear1' (linear): the last operator has outputs at 5 positions; the data has 1 labels a "
         "sample (globalavgpool makes one of all positions)"},
        {{"", 0, 0, 5, 1, 0, {{.op = "embedding", .vocabulary = 7, .out = 3, .labels = 5}, AVGPOOL}},
         "operator 'globalavgpool1' (globalavgpool): the data has 5 labels a sample; the last operator's "
         "output "
         "is no sequence"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static void models_that_do_not_fit_together_are_named(void **state)
{
    (void)state;
    static const refusal cases[] = {
        {{"", 4, 4, 3, 1, 0, {LINEAR(3)}},
         "operator 'linear0' (linear): needs features, and its input is an image 4 x 4 x 3; put flatten "
         "before it"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 3, .kernel = 2), ADD(1, 0)}},
         "operator 'add1' (add): has 1 inputs; it takes 2 to 2"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 3, .kernel = 2), RELU, CONV(.out = 3, .kernel = 2), ADD(2, 3)}},
         "operator 'add3' (add): its inputs have different shapes, 3 x 3 x 3 and 2 x 2 x 3"},
        {{"", 4, 4, 3, 1, 0, {CONV(.out = 3, .kernel = 2), {.op = "concat", .from = 1, .from2 = -1}}},
         "operator 'concat1' (concat): its inputs differ in more than channels: 3 x 3 x 3 and 4 x 4 x 3"},
        {{"", 0, 0, 3, 1, 0, {DROPOUT(1.0)}},
         "operator 'dropout0' (dropout): p is 1; it must be 0 to 0.999999"},
        {{"", 0, 0, 3, 1, 0, {{.op = "softmax"}}},
         "operator 'softmax0': there is no operator 'softmax'; there are: conv, linear, batchnorm, relu, "
         "maxpool, "
         "globalavgpool, add, flatten, dropout, gelu, silu, sigmoid, tanh, scale, avgpool, concat, tokens, "
         "layernorm, embedding, position, attention, convtranspose"},
        {{"",
          0,
          0,
          3,
          1,
          0,
          {LINEAR(3), {.op = "linear", .out = 2, .from = 1}, {.op = "linear", .out = 2, .from = 1}}},
         "operator 'linear1' (linear): nothing reads its output"},
        {{"", 0, 0, 70000, 1, 0, {LINEAR(70000)}},
         "operator 'linear0' (linear): parameter 'weight' has more than 2^31 elements"},
        {{"", 1000, 1000, 1, 1000, 0, {CONV(.out = 3, .kernel = 1)}},
         "operator 'conv0' (conv): output 1000 x 1000 x 3 times batch 1000 has more than 2^31 elements"},
        {{"", 0, 0, 3, 1, 0, {{0}}}, "the model has no operators"},
    };
    check_refusals(cases, sizeof cases / sizeof cases[0]);
}

static tctl_status request(const tctl_field *field, uint32_t batch, uint32_t classes, double smoothing,
                           tctl_error *err)
{
    static tctl_model model;
    static const toy_op ops[] = {FLATTEN, LINEAR(4)};
    tctl_network *net = NULL;
    toy_build(&model, ops, 2);
    const tctl_network_request r = {.model = &model,
                                    .models = &toy_models,
                                    .input = field,
                                    .max_batch = batch,
                                    .n_classes = classes,
                                    .label_smoothing = smoothing,
                                    .pool = pool};
    tctl_status st = tctl_network_create(&r, &net, err);
    tctl_network_destroy(net);
    return st;
}

static void requests_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_field f = {.name = "image", .dtype = TCTL_F32, .rank = 3, .dims = {2, 2, 1}};
    assert_int_equal(request(&f, 2, 4, 0, &err), TCTL_OK);
    assert_int_equal(request(&f, 0, 4, 0, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "a network needs a batch of at least 1");
    assert_int_equal(request(&f, 2, 4, 1, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "label smoothing is 1; it must be at least 0 and less than 1");
    assert_int_equal(request(&f, 2, 10, 0, &err), TCTL_ESPEC);
    assert_string_equal(
        err.message, "operator 'linear1' (linear): the last operator has 4 outputs; the data has 10 classes");
    f.dtype = TCTL_U8;
    assert_int_equal(request(&f, 2, 4, 0, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "the network's input 'image' must be f32, or token numbers [positions]");
    f = (tctl_field){.name = "image", .dtype = TCTL_F32, .rank = 0};
    assert_int_equal(request(&f, 2, 4, 0, &err), TCTL_EINVAL);
    assert_string_equal(err.message,
                        "the network's input 'image' has rank 0; it must be [height, width, channels] "
                        "or [features]");
    assert_int_equal(setenv("TRAINCTL_SIMD", "mmx", 1), 0);
    f = (tctl_field){.name = "image", .dtype = TCTL_F32, .rank = 2, .dims = {2, 2}};
    assert_int_equal(request(&f, 2, 4, 0, &err), TCTL_EINVAL);
    assert_non_null(strstr(err.message, "no SIMD variant 'mmx' on this processor"));
    assert_int_equal(unsetenv("TRAINCTL_SIMD"), 0);
    assert_int_equal(request(&f, 2, 4, 0, &err), TCTL_OK);
}

static void labels_outside_the_classes_name_the_sample(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_network_result r;
    const toy *t = find("3x3");
    tctl_network *net = create(t);
    toy_batch b = toy_make_batch(t, 5, 500, 10);
    b.labels[3] = 10;
    assert_int_equal(tctl_network_forward(net, &b.b, &r, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "sample 503 has label 10; labels are 0 to 9");
    b.labels[3] = -1;
    assert_int_equal(tctl_network_evaluate(net, &b.b, &r, &err), TCTL_EFORMAT);
    b.labels[3] = 0;
    b.b.n = 6;
    assert_int_equal(tctl_network_forward(net, &b.b, &r, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "a batch of 6 samples; the network was made for 1 to 5");
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

static void tokens_outside_the_vocabulary_name_sample_and_position(void **state)
{
    (void)state;
    tctl_error err = {0};
    tctl_network_result r;
    const toy *t = find("characters");
    tctl_network *net = create(t);
    toy_batch b = toy_make_batch(t, 5, 500, 11);
    b.tokens[2 * 20 + 7] = 11;
    assert_int_equal(tctl_network_forward(net, &b.b, &r, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "sample 502 has token 11 at position 7; tokens are 0 to 10");
    b.tokens[2 * 20 + 7] = -1;
    assert_int_equal(tctl_network_backward(net, &b.b, &err), TCTL_EFORMAT);
    b.tokens[2 * 20 + 7] = 0;
    b.labels[4 * 20 + 19] = 11;
    assert_int_equal(tctl_network_forward(net, &b.b, &r, &err), TCTL_EFORMAT);
    assert_string_equal(err.message, "sample 504 has label 11; labels are 0 to 10");
    toy_free_batch(&b);
    tctl_network_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_that_do_not_fit_their_image_are_named),
        cmocka_unit_test(operators_that_do_not_fit_their_sequence_are_named),
        cmocka_unit_test(models_that_do_not_fit_together_are_named),
        cmocka_unit_test(requests_that_make_no_sense_are_refused),
        cmocka_unit_test(labels_outside_the_classes_name_the_sample),
        cmocka_unit_test(tokens_outside_the_vocabulary_name_sample_and_position),
    };
    return cmocka_run_group_tests(tests, make_pool, drop_pool);
}
