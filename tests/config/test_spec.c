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
    assert_string_equal(l.spec->outputs[1].path, "a/b.json");
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

/* Loads a text and looks for one error, which must begin like this. */
static void check_error(const char *text, size_t n_errors, const char *wanted)
{
    loaded l = load(text, NULL, NULL, NULL);
    if (!strstr(l.said, wanted) || l.n_errors != n_errors) {
        print_error("%s\ngave %zu errors\n%sinstead of %zu with\n%s\n", text, l.n_errors, l.said, n_errors,
                    wanted);
        fail();
    }
    unload(&l);
}

#define TRAIN                                                                                                \
    "name: x\ndata: {train: {use: idx, images: a}}\nmodel: [{op: conv, out: 1}]\n"                           \
    "train: {use: native, epochs: 1}\n"
#define RUN "name: x\nrun: python3 train.py\n"

static void what_is_no_spec_is_refused(void **state)
{
    (void)state;
    check_error("", 1, "exp.yaml:1:1: error: the spec is empty\n");
    check_error("# nothing\n", 1, "exp.yaml:1:1: error: the spec is empty\n");
    check_error("- a\n", 1, "exp.yaml:1:1: error: a spec must be a mapping ('key: value'), got a list\n");
    check_error("seed:1\n", 1, "hint: is a blank missing behind ':'?\n");
    check_error("{}\n", 2, "exp.yaml:1:1: error: the spec needs the key 'train' or 'run'\n");
    check_error("name: [x]\nrun: y\n", 1, "exp.yaml:1:7: error: 'name' must be a text, got a list\n");
    check_error("name: a/b\nrun: y\n", 1,
                "exp.yaml:1:7: error: 'name' must be 1 to 64 letters, digits, '_' or '-'");
}

static void trainers_and_commands_exclude_each_other(void **state)
{
    (void)state;
    check_error(TRAIN "run: x\n", 1, "exp.yaml:5:1: error: a spec has 'train' or 'run', not both\n");
    check_error(TRAIN "outputs: [x]\n", 1, "exp.yaml:5:1: error: 'outputs' has no meaning with 'train'\n");
    check_error(RUN "model: [relu]\n", 1, "exp.yaml:3:1: error: 'model' has no meaning with 'run'\n");
    check_error(
        "name: x\ndata: {seed_scope: sample, train: {use: idx, images: a}}\nmodel: [{op: conv, out: 1}]\n"
        "train: {use: native, epochs: 1}\n",
        1, "exp.yaml:2:8: error: 'seed_scope' has no meaning with 'train'\n");
    check_error(RUN "data: {seed_scope: step}\n", 1, "exp.yaml:3:20: error:");
    check_error(RUN "determinism: {tourch: false}\n", 1, "did you mean 'torch'");
    check_error(RUN "contract: exact\n", 1,
                "exp.yaml:3:11: error: a command cannot keep the contract 'exact'\n");
    check_error(RUN "outputs: [../x, /y]\n", 2,
                "exp.yaml:3:17: error: 'outputs' must name files in the output");
    check_error(RUN "secrets: ['A=b']\n", 1, "exp.yaml:3:11: error: 'secrets' must be names of environment");
    check_error("name: x\ntrain: {use: native, epochs: 1}\n", 2,
                "exp.yaml:1:1: error: the spec needs the key 'model'\n");
}

static void plugins_must_fit_their_place(void **state)
{
    (void)state;
    check_error("name: x\ndata: {a: {use: idx, images: a}}\nmodel: [relu]\ntrain: idx\n", 1,
                "exp.yaml:4:8: error: plugin 'idx' is not a trainer\n");
    check_error("name: x\ndata: {a: sgd}\nmodel: [relu]\ntrain: {use: native, epochs: 1}\n", 1,
                "exp.yaml:2:11: error: plugin 'sgd' is not a data source\n");
    check_error(TRAIN "stages: [sgd]\n", 1, "exp.yaml:5:10: error: plugin 'sgd' is not a stage\n");
    check_error(TRAIN "stages: [chekpoint]\n", 1, "exp.yaml:5:10: error: there is no plugin 'chekpoint'\n");
    check_error(TRAIN "stages: [{name: x}]\n", 1, "exp.yaml:5:10: error: stages[0] needs the key 'use'\n");
    check_error(TRAIN "stages: [amp, amp]\n", 1, "exp.yaml:5:15: error: the name 'amp' is taken\n");
    check_error(TRAIN "stages: {use: amp}\n", 1,
                "exp.yaml:5:9: error: 'stages' must be a list, got a mapping\n");
    check_error(RUN "stages: [quantize]\n", 1,
                "exp.yaml:3:10: error: stage 'quantize' cannot serve a command\n");
    check_error(RUN "data: {a: {use: idx, images: x}}\n", 1,
                "exp.yaml:3:11: error: data.a cannot have a source: a command reads its own files\n");
    check_error(RUN "data: {a: {pth: x}}\n", 1, "exp.yaml:3:12: error: unknown key 'pth' in data set 'a'\n");
    check_error(RUN "data: {a: x}\n", 1,
                "exp.yaml:3:11: error: data.a must be a mapping ('key: value'), got a value\n");
    check_error(RUN "data: [x]\n", 1, "exp.yaml:3:7: error: 'data' must be a mapping of at most 256 names\n");
    check_error("name: x\ndata: {train: {path: a}}\nmodel: [relu]\ntrain: {use: native, epochs: 1}\n", 1,
                "exp.yaml:2:15: error: data.train needs the key 'use'\n");
}

static void memory_without_state_excludes_checkpoints(void **state)
{
    (void)state;
    loaded l = load(TRAIN "stages:\n  - average\n  - {use: checkpoint, every: 1 epoch}\n", NULL, NULL, NULL);
    assert_said(&l, "exp.yaml:6:5: error: stage 'average' cannot be combined with checkpoints\n"
                    "    6 |   - average\n"
                    "      |     ^~~~~~~\n"
                    "  note: plugin 'average' remembers something from step to step and does not provide "
                    "trainctl.state/1\n"
                    "exp.yaml:7:11: note: checkpoints are asked for here\n"
                    "    7 |   - {use: checkpoint, every: 1 epoch}\n"
                    "      |           ^~~~~~~~~~\n"
                    "  hint: leave one of the two out\n");
    unload(&l);
    l = load(TRAIN "stages: [average]\n", NULL, NULL, NULL);
    assert_said(&l, "");
    unload(&l);
}

#define MODEL(ops)                                                                                           \
    "name: x\ndata: {a: {use: idx, images: a}}\ntrain: {use: native, epochs: 1}\nmodel: [" ops "]\n"

static void the_graph_is_checked(void **state)
{
    (void)state;
    check_error(MODEL(""), 1, "exp.yaml:4:8: error: 'model' must be a list of 1 to 4096 operators\n");
    check_error(MODEL("{name: a}"), 1, "exp.yaml:4:9: error: model[0] needs the key 'op'\n");
    check_error(MODEL("relu, add"), 1, "exp.yaml:4:15: error: operator 'add' reads 2 to 8 outputs, got 1\n");
    check_error(MODEL("{op: relu, from: [input, input]}"), 1,
                "exp.yaml:4:26: error: operator 'relu' reads 1 outputs, got 2\n");
    check_error(MODEL("{op: relu, name: a}, {op: add, from: [a, b]}, {op: relu, name: b}"), 1,
                "exp.yaml:4:50: error: 'from' names 'b', but no operator before this one is called so\n");
    check_error(MODEL("{op: relu, name: a}, {op: relu, name: a}"), 1,
                "exp.yaml:4:47: error: the name 'a' is taken\n");
    check_error(MODEL("{op: relu, name: relu2}, relu"), 1,
                "exp.yaml:4:34: error: the name 'relu2' is taken\n");
    check_error(MODEL("{op: relu, name: input}"), 1, "exp.yaml:4:26: error: the name 'input' is taken\n");
    check_error(MODEL("{op: relu, name: a.b}"), 1, "exp.yaml:4:26: error: 'name' must be 1 to 64 letters");
    check_error(MODEL("{op: relu, form: a}"), 1,
                "exp.yaml:4:20: error: unknown key 'form' in operator 'relu'\n");
    /* A misspelt operator does not make those behind it wrong. */
    check_error(MODEL("relux, {op: relu, from: relu1}"), 1,
                "exp.yaml:4:9: error: unknown operator 'relux'\n");
}

static void syntax_does_not_hide_meaning(void **state)
{
    (void)state;
    check_error("name: x\nname: y\nrun: &a z\nsed: 1\n", 3, "exp.yaml:4:1: error: unknown key 'sed'");
}

static void more_than_twenty_are_counted(void **state)
{
    (void)state;
    char text[1024] = RUN;
    for (int i = 0; i < 25; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "zzz%d: 1\n", i);
    check_error(text, 25, "25 errors, 5 of them not shown\n");
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    const tctl_spec_request request = {.path = "/nonexistent/exp.yaml"};
    tctl_diags diags = {0};
    tctl_spec *spec = NULL;
    assert_int_equal(tctl_spec_load(&request, &fake_finder, &spec, &diags), TCTL_ENOENT);
    assert_non_null(strstr(diags.errors[0].message, "No such file or directory"));
    tctl_spec_destroy(spec);
    tctl_diags_release(&diags);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_spec_is_resolved),
        cmocka_unit_test(a_command_is_resolved),
        cmocka_unit_test(seven_mistakes_are_seven_errors),
        cmocka_unit_test(what_is_no_spec_is_refused),
        cmocka_unit_test(trainers_and_commands_exclude_each_other),
        cmocka_unit_test(plugins_must_fit_their_place),
        cmocka_unit_test(memory_without_state_excludes_checkpoints),
        cmocka_unit_test(the_graph_is_checked),
        cmocka_unit_test(syntax_does_not_hide_meaning),
        cmocka_unit_test(more_than_twenty_are_counted),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
