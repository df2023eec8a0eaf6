/* SPDX-License-Identifier: Apache-2.0 */
/* The recipe: the same for every way of writing the same thing, different for every change of meaning. Overrides. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "tests/config/fake.h"
#include "tests/config/load.h"

static const char base[] = "name: a\n"
                           "seed: 7\n"
                           "data:\n"
                           "  train: {use: idx, images: x, transforms: [{use: normalize, mean: 0.1}]}\n"
                           "model:\n"
                           "  - {op: conv, out: 8}\n"
                           "  - relu\n"
                           "train: {use: native, epochs: 2, batch: 64, optimizer: {use: sgd, lr: 0.1}}\n"
                           "stages: [{use: amp, dtype: bf16}]\n";

/* The canonical text of a spec's recipe; free it. */
static char *recipe_of(const char *text, const char *const *set, const char *const *without, const char *seed)
{
    loaded l = load(text, set, without, seed);
    tctl_buf out = TCTL_BUF_INIT;
    assert_string_equal(l.said, "");
    assert_int_equal(tctl_json_canonical(l.spec->recipe, &out, NULL), TCTL_OK);
    unload(&l);
    return tctl_buf_detach(&out);
}

static void check_same(const char *text, bool wanted)
{
    char *one = recipe_of(base, NULL, NULL, NULL), *other = recipe_of(text, NULL, NULL, NULL);
    if ((strcmp(one, other) == 0) != wanted) {
        print_error("recipes %s:\n%s\n%s\n", wanted ? "differ" : "are the same", one, other);
        fail();
    }
    free(one);
    free(other);
}

static void a_recipe_to_the_letter(void **state)
{
    (void)state;
    char *text = recipe_of(base, NULL, NULL, NULL);
    assert_string_equal(
        text,
        "{\"contract\":\"exact\",\"data\":{\"train\":{\"options\":{\"images\":\"x\"},\"plugin\":\"idx@1.2."
        "0\","
        "\"transforms\":[{\"name\":\"normalize\",\"options\":{\"mean\":[0.1]},\"plugin\":\"normalize@1.2.0\"}"
        "]}},"
        "\"format\":\"trainctl-recipe/"
        "1\",\"model\":[{\"from\":[\"input\"],\"name\":\"conv1\",\"op\":\"conv\","
        "\"options\":{\"bias\":true,\"kernel\":3,\"out\":8,\"pad\":0}},{\"from\":[\"conv1\"],\"name\":"
        "\"relu1\","
        "\"op\":\"relu\",\"options\":{}}],\"seed\":\"7\",\"stages\":[{\"name\":\"amp\",\"options\":{"
        "\"dtype\":"
        "\"bf16\"},\"plugin\":\"amp@1.2.0\"}],\"train\":{\"options\":{\"batch\":64,\"epochs\":2,"
        "\"optimizer\":"
        "{\"options\":{\"lr\":0.1,\"momentum\":0,\"nesterov\":false},\"plugin\":\"sgd@1.2.0\"}},\"plugin\":"
        "\"native@1.2.0\"}}");
    free(text);
}

static void writing_it_otherwise_changes_nothing(void **state)
{
    (void)state;
    /* Order, comments, quotes, block instead of flow, forms of numbers, spelled-out defaults, what is no recipe. */
    check_same("# a comment\n"
               "train:\n"
               "  optimizer: {momentum: 0.0, lr: 1e-1, use: 'sgd', nesterov: false}\n"
               "  batch: 0x40\n"
               "  report: 5 s\n"
               "  epochs: +2 # two\n"
               "  use: \"native\"\n"
               "model: [{out: 8, op: conv, kernel: 3, name: conv1, from: input}, {op: relu, from: [conv1]}]\n"
               "seed: 7\r\n"
               "contract: exact\n"
               "name: another\n"
               "stages: [{dtype: \"bf16\", use: amp}, {use: checkpoint, every: 1 epoch}]\n"
               "data: {train: {verify: false, use: idx, images: \"x\", transforms: [{use: normalize, mean: "
               "[0.10]}]}}\n"
               "resources: {threads: 1, workers: 0, prefetch: 0, cache: 0, device: cpu}\n"
               "secrets: [TOKEN]\n",
               true);
}

/* base with one piece replaced. */
static void check_change(const char *from, const char *to)
{
    char text[sizeof base + 256];
    const char *at = strstr(base, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
    check_same(text, false);
}

static void every_change_of_meaning_shows(void **state)
{
    (void)state;
    check_change("seed: 7", "seed: 8");
    check_change("seed: 7", "seed: 7\ncontract: off");
    check_change("images: x", "images: ./x");
    check_change("images: x", "images: x, labels: y");
    check_change("mean: 0.1", "mean: [0.1, 0.1]");
    check_change("{use: normalize, mean: 0.1}", "{use: normalize, mean: 0.1, name: n}");
    check_change("{use: normalize, mean: 0.1}", "flip, {use: normalize, mean: 0.1}");
    check_change("{use: normalize, mean: 0.1}", "");
    check_change("  train: {", "  other: {");
    check_change("out: 8", "out: 9");
    check_change("out: 8", "out: 8, name: c");
    check_change("  - relu\n", "  - {op: relu, from: input}\n");
    check_change("  - relu\n", "");
    check_change("epochs: 2", "epochs: 3");
    check_change("lr: 0.1", "lr: 0.10000000000000002");
    check_change("lr: 0.1", "lr: 0.1, nesterov: true");
    check_change("{use: sgd, lr: 0.1}", "{use: sgd, lr: 0.1}, schedule: onecycle");
    check_change("dtype: bf16", "dtype: fp16");
    check_change("[{use: amp, dtype: bf16}]", "[]");
    check_change("dtype: bf16}", "dtype: bf16}, quantize");
}

static void a_recipe_of_a_command(void **state)
{
    (void)state;
    char *text =
        recipe_of("name: a\nrun: ./go --fast\ndata: {d: {path: data/}}\noutputs: m.bin\n", NULL, NULL, NULL);
    assert_string_equal(
        text, "{\"contract\":\"machine\",\"data\":{\"d\":{\"path\":\"data/\"}},"
              "\"determinism\":{\"addresses\":\"fixed\",\"denormals\":\"keep\",\"entropy\":\"count\","
              "\"interposer\":true,\"libc_seeds\":true,\"python\":true,\"python_seeds\":true,"
              "\"sort_directories\":true,\"state_check\":true,\"torch\":true,\"trace\":1,\"variables\":true},"
              "\"format\":\"trainctl-recipe/1\",\"outputs\":[\"m.bin\"],\"run\":\"./go --fast\","
              "\"seed\":\"0\",\"seed_scope\":\"worker\",\"stages\":[]}");
    free(text);
}

/* The value of a path "a.b" in the recipe of a spec, as canonical text; free it. NULL if it is not there. */
static char *member_of(const char *spec, const char *outer, const char *inner)
{
    loaded l = load(spec, NULL, NULL, NULL);
    tctl_buf out = TCTL_BUF_INIT;
    assert_string_equal(l.said, "");
    const json_t *value = json_object_get(l.spec->recipe, outer);
    value = inner ? json_object_get(value, inner) : value;
    if (value)
        assert_int_equal(tctl_json_canonical(value, &out, NULL), TCTL_OK);
    unload(&l);
    return value ? tctl_buf_detach(&out) : NULL;
}

static void check_member(const char *spec, const char *outer, const char *inner, const char *wanted)
{
    char *is = member_of(spec, outer, inner);
    if (wanted)
        assert_string_equal(is, wanted);
    else
        assert_null(is);
    free(is);
}

static void knobs_are_part_of_a_commands_recipe(void **state)
{
    (void)state;
    check_member("name: a\nrun: x\ndeterminism: {sort_directories: false}\n", "determinism",
                 "sort_directories", "false");
    check_member("name: a\nrun: x\ndeterminism: {unpin: XLA_FLAGS}\n", "determinism", "unpin",
                 "[\"XLA_FLAGS\"]");
    check_member("name: a\nrun: x\ndata: {seed_scope: sample}\n", "seed_scope", NULL, "\"sample\"");
    check_member("name: a\nrun: x\ndata: {seed_scope: sample}\n", "data", NULL, "{}");
}

static void without_a_promise_the_knobs_are_off(void **state)
{
    (void)state;
    static const char off[] = "name: a\nrun: x\ncontract: off\n",
                      some[] = "name: a\nrun: x\ncontract: off\ndeterminism: {torch: true}\n";
    check_member(off, "determinism", "torch", "false");
    check_member(off, "determinism", "trace", "0");
    check_member(off, "determinism", "denormals", "\"off\"");
    check_member(off, "determinism", "interposer", "true");
    check_member(some, "determinism", "torch", "true");
    check_member(some, "determinism", "python", "false");
}

/* Its results depend on none of them, and recipes made before there were knobs keep their digest. */
static void knobs_at_their_defaults_are_not_in_a_trainers_recipe(void **state)
{
    (void)state;
    char text[sizeof base + 256];
    snprintf(text, sizeof text, "%sdeterminism: {torch: true}\n", base);
    check_member(base, "determinism", NULL, NULL);
    check_member(text, "determinism", NULL, NULL);
    snprintf(text, sizeof text, "%sdeterminism: {torch: false}\n", base);
    check_member(text, "determinism", "torch", "false");
}

/* The recipe with overrides is that of the spec in which they were written. */
static void check_set(const char *override, const char *from, const char *to)
{
    char text[sizeof base + 256];
    const char *const set[] = {override, NULL};
    const char *at = strstr(base, from);
    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
    char *one = recipe_of(base, set, NULL, NULL), *other = recipe_of(text, NULL, NULL, NULL);
    assert_string_equal(one, other);
    free(one);
    free(other);
}

static void overrides_are_like_writing_it(void **state)
{
    (void)state;
    check_set("train.epochs=5", "epochs: 2", "epochs: 5");
    check_set("train.optimizer.lr=1e-3", "lr: 0.1", "lr: 1e-3");
    check_set("train.optimizer={use: sgd, lr: 2}", "{use: sgd, lr: 0.1}", "{use: sgd, lr: 2}");
    check_set("train.schedule=onecycle", "batch: 64", "batch: 64, schedule: onecycle");
    check_set("stages[0].dtype=fp16", "dtype: bf16", "dtype: fp16");
    check_set("stages.0.dtype=fp16", "dtype: bf16", "dtype: fp16");
    check_set("stages.amp.dtype=fp16", "dtype: bf16", "dtype: fp16");
    check_set("model.conv1.out=9", "out: 8", "out: 9");
    check_set("model[0].kernel=5", "out: 8", "out: 8, kernel: 5");
    check_set("model.relu1.from=input", "- relu", "- {op: relu, from: input}");
    check_set("data.train.transforms=[flip]", "[{use: normalize, mean: 0.1}]", "[flip]");
    check_set("resources.threads=1", "seed: 7", "seed: 7");
    const char *const amp[] = {"amp", NULL};
    char *one = recipe_of(base, NULL, amp, "8");
    assert_non_null(strstr(one, "\"seed\":\"8\",\"stages\":[]"));
    free(one);
}

static void check_refused(const char *set, const char *without, const char *seed, const char *golden)
{
    const char *const sets[] = {set, NULL}, *const withouts[] = {without, NULL};
    loaded l = load(base, sets, withouts, seed);
    assert_int_equal(l.status, TCTL_ESPEC);
    assert_string_equal(l.said, golden);
    unload(&l);
}

static void wrong_overrides_are_named(void **state)
{
    (void)state;
    check_refused("train.optimizer.lr=fast", NULL, NULL,
                  "--set train.optimizer.lr=fast: error: 'lr' must be a number of at least 0, got 'fast'\n"
                  "  note: in plugin 'sgd', train.optimizer\n"
                  "  hint: lr: learning rate at the peak of the schedule\n");
    check_refused("train.epochs=0", NULL, NULL,
                  "--set train.epochs=0: error: 'epochs' must be an integer from 1 to 100000, got '0'\n"
                  "  note: in plugin 'native', train\n"
                  "  hint: epochs: passes over the training data\n");
    check_refused("trian.epochs=1", NULL, NULL,
                  "--set trian.epochs=1: error: unknown key 'trian' in the spec\n"
                  "  hint: did you mean 'train'?\n");
    check_refused("stages.ampp.dtype=fp16", NULL, NULL,
                  "--set stages.ampp.dtype=fp16: error: no item of the list is called 'ampp'\n"
                  "  hint: an item is meant by its name, by its plugin, or by its number as in [0]\n");
    check_refused("stages[3].dtype=fp16", NULL, NULL,
                  "--set stages[3].dtype=fp16: error: there is no item 3: the list has 1, counted from 0\n");
    check_refused("train", NULL, NULL,
                  "--set train: error: this is not KEY=VALUE\n"
                  "  hint: as in train.lr=0.1, model[2].out=64, stages.amp.dtype=bf16\n");
    check_refused("train.epochs=[1", NULL, NULL, "--set train.epochs=[1: error: expected ',' or ']' here\n");
    check_refused("train.epochs=", NULL, NULL,
                  "--set train.epochs=: error: 'epochs' has no value\n"
                  "  note: in plugin 'native', train\n"
                  "  hint: write an integer from 1 to 100000\n");
    check_refused(NULL, "apm", NULL,
                  "--without apm: error: the spec has no stage 'apm'\n  hint: did you mean 'amp'?\n");
    check_refused(NULL, NULL, "-1",
                  "--seed -1: error: 'seed' must be an integer of at least 0, got '-1'\n"
                  "  hint: seed: the root of all random numbers\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_to_the_letter),
        cmocka_unit_test(writing_it_otherwise_changes_nothing),
        cmocka_unit_test(every_change_of_meaning_shows),
        cmocka_unit_test(a_recipe_of_a_command),
        cmocka_unit_test(knobs_are_part_of_a_commands_recipe),
        cmocka_unit_test(without_a_promise_the_knobs_are_off),
        cmocka_unit_test(knobs_at_their_defaults_are_not_in_a_trainers_recipe),
        cmocka_unit_test(overrides_are_like_writing_it),
        cmocka_unit_test(wrong_overrides_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
