/* SPDX-License-Identifier: Apache-2.0 */
/* A whole spec: what is read, what is refused, in which words, all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/config/fake.h"
#include "tests/config/load.h"

static const char good[] =
    "name: fashion-cnn\n"
    "seed: 1029\n"
    "data:\n"
    "  train: {use: idx, images: a/train.gz, transforms: [flip, {use: normalize, mean: [1, 2]}]}\n"
    "  test: {use: idx, images: /abs/x}\n"
    "model:\n"
    "  - {op: conv, out: 32, kernel: 5}\n"
    "  - relu\n"
    "  - {op: conv, out: 16, name: c2}\n"
    "  - {op: add, from: [c2, relu1]}\n"
    "  - {op: linear, out: 10, from: input}\n"
    "train: {use: native, epochs: 3, optimizer: {use: sgd, lr: 1e-1}, schedule: onecycle}\n"
    "stages: [amp, {use: checkpoint, every: 1 epoch}]\n"
    "resources: {threads: 3, cache: 64 MiB}\n";

static void a_good_spec_is_resolved(void **state)
{
    (void)state;
    loaded l = load(good, NULL, NULL, NULL);
    const tctl_spec *s = l.spec;
    assert_said(&l, "");
    assert_int_equal(l.status, TCTL_OK);
    assert_string_equal(s->name, "fashion-cnn");
    assert_int_equal(s->seed, 1029);
    assert_int_equal(s->contract, TCTL_CONTRACT_EXACT);
    assert_int_equal(s->n_data, 2);
    assert_string_equal(s->data[0].source->plugin->name, "idx");
    const tctl_config_entry *images = tctl_config_find(s->data[0].source->config, "images");
    assert_string_equal(images->values[0].text, "/w/a/train.gz");
    assert_string_equal(images->values[0].written, "a/train.gz");
    assert_int_equal(s->data[0].n_transforms, 2);
    assert_string_equal(s->data[0].transforms[1]->name, "normalize");
    assert_int_equal(s->n_ops, 5);
    assert_string_equal(s->ops[0].name, "conv1");
    assert_int_equal(s->ops[0].inputs[0], TCTL_MODEL_INPUT);
    assert_string_equal(s->ops[1].name, "relu1");
    assert_int_equal(s->ops[1].inputs[0], 0);
    assert_int_equal(s->ops[3].n_inputs, 2);
    assert_int_equal(s->ops[3].inputs[0], 2);
    assert_int_equal(s->ops[3].inputs[1], 1);
    assert_int_equal(s->ops[4].inputs[0], TCTL_MODEL_INPUT);
    const tctl_value *optimizer = tctl_config_find(s->trainer->config, "optimizer")->values;
    assert_string_equal(optimizer->use->plugin->name, "sgd");
    assert_true(tctl_config_find(optimizer->use->config, "lr")->values[0].r == 0.1);
    assert_int_equal(s->n_stages, 2);
    assert_string_equal(s->stages[0]->name, "amp");
    const tctl_value *every = tctl_config_find(s->stages[1]->config, "every")->values;
    assert_int_equal(every->i, 1);
    assert_string_equal(every->text, "epochs");
    assert_int_equal(s->resources.threads, 3);
    assert_int_equal(s->resources.workers, 2);
    assert_int_equal(s->resources.prefetch, 4);
    assert_true(s->resources.cache_bytes == (uint64_t)64 << 20);
    assert_string_equal(s->resources.device, "cpu");
    unload(&l);
}

static void a_command_is_resolved(void **state)
{
    (void)state;
    loaded l = load("name: t\nrun: python3 train.py --out $TRAINCTL_OUT\ndata: {mnist: {path: data/}}\n"
                    "outputs: [model.pt, 'a/b.json']\nsecrets: TOKEN\nstages: [amp]\n",
                    NULL, NULL, NULL);
    assert_said(&l, "");
    assert_int_equal(l.spec->contract, TCTL_CONTRACT_MACHINE);
    assert_string_equal(l.spec->command, "python3 train.py --out $TRAINCTL_OUT");
    assert_string_equal(l.spec->data[0].path, "/w/data/");
    assert_string_equal(l.spec->data[0].written, "data/");
    assert_null(l.spec->trainer);
    assert_int_equal(l.spec->n_outputs, 2);
    assert_string_equal(l.spec->outputs[1], "a/b.json");
    assert_string_equal(l.spec->secrets[0], "TOKEN");
    assert_true(l.spec->resources.threads >= 1);
    unload(&l);
}

static void seven_mistakes_are_seven_errors(void **state)
{
    (void)state;
    loaded l = load("name: cnn\n"
                    "sed: 1029\n"
                    "data:\n"
                    "  train: {use: idx, imges: a.gz}\n"
                    "model:\n"
                    "  - {op: conv, out: 70000, bias: yes}\n"
                    "  - {op: relux}\n"
                    "train:\n"
                    "  use: native\n"
                    "  epochs: 3\n"
                    "  optimizer: {use: sgd, lr: fast}\n"
                    "stages:\n"
                    "  - {use: amp, dtype: bf61}\n",
                    NULL, NULL, NULL);
    assert_int_equal(l.status, TCTL_ESPEC);
    assert_said(&l, "exp.yaml:2:1: error: unknown key 'sed' in the spec\n"
                    "    2 | sed: 1029\n"
                    "      | ^~~\n"
                    "  hint: did you mean 'seed'?\n"
                    "exp.yaml:4:21: error: unknown key 'imges' in plugin 'idx'\n"
                    "    4 |   train: {use: idx, imges: a.gz}\n"
                    "      |                     ^~~~~\n"
                    "  note: in data.train\n"
                    "  hint: did you mean 'images'?\n"
                    "exp.yaml:6:21: error: 'out' must be an integer from 1 to 65536, got '70000'\n"
                    "    6 |   - {op: conv, out: 70000, bias: yes}\n"
                    "      |                     ^~~~~\n"
                    "  note: in operator 'conv', model[0]\n"
                    "  hint: out: number of output channels\n"
                    "exp.yaml:6:34: error: 'bias' must be true or false, got 'yes'\n"
                    "    6 |   - {op: conv, out: 70000, bias: yes}\n"
                    "      |                                  ^~~\n"
                    "  note: in operator 'conv', model[0]\n"
                    "  hint: write 'bias: true'\n"
                    "exp.yaml:7:10: error: unknown operator 'relux'\n"
                    "    7 |   - {op: relux}\n"
                    "      |          ^~~~~\n"
                    "  note: in model[1]; the trainer is plugin 'native'\n"
                    "  hint: did you mean 'relu'?\n"
                    "exp.yaml:11:29: error: 'lr' must be a number of at least 0, got 'fast'\n"
                    "   11 |   optimizer: {use: sgd, lr: fast}\n"
                    "      |                             ^~~~\n"
                    "  note: in plugin 'sgd', train.optimizer\n"
                    "  hint: lr: learning rate at the peak of the schedule\n"
                    "exp.yaml:13:23: error: 'dtype' must be one of bf16, fp16, got 'bf61'\n"
                    "   13 |   - {use: amp, dtype: bf61}\n"
                    "      |                       ^~~~\n"
                    "  note: in plugin 'amp', stages[0]\n"
                    "  hint: did you mean 'bf16'?\n"
                    "7 errors\n");
    unload(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_spec_is_resolved),
        cmocka_unit_test(a_command_is_resolved),
        cmocka_unit_test(seven_mistakes_are_seven_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
