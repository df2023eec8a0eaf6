/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_bits THREADS WORKERS PREFETCH CACHE_BYTES: trains the networks of recipes.c with the tree's own trainer,
 * loader and plugins, and prints the digest of every tensor of every step (host.h). All that is printed depends on the
 * recipes alone; bench/bits compares it between builds, processors, kernels (TRAINCTL_SIMD) and resources.
 * bench_bits simd: the kernels that this processor has.
 *
 * It needs the C library and nothing else, so that it can be built for processors of another kind.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "bench/bits_network/host.h"
#include "bench/bits_network/recipes.h"
#include "bench/bits_network/words.h"
#include "engine/gemm/gemm.h"
#include "engine/network.h"

/* ---- nothing is left out ------------------------------------------------------------------------------- */

static bool starts_with(const char *text, const char *word)
{
    return text && strncmp(text, word, strlen(word)) == 0 && strchr(" ", text[strlen(word)]);
}

static bool any_starts_with(const char *const *texts, uint32_t n, const char *word)
{
    for (uint32_t i = 0; i < n; i++) {
        if (starts_with(texts[i], word))
            return true;
    }
    return false;
}

static bool has_plugin(const bits_recipe *r, const char *name)
{
    return starts_with(r->train, name) || starts_with(r->optimizer, name) || starts_with(r->schedule, name) ||
           starts_with(r->trainer, name) || any_starts_with(r->train_transforms, BITS_MAX_PARTS, name) ||
           any_starts_with(r->stages, BITS_MAX_PARTS, name);
}

/* Every operator of the engine and every plugin that is linked in must be in some recipe. */
static tctl_status check_recipes(tctl_error *err)
{
    for (uint32_t i = 0; i < TCTL_NETWORK_OPS; i++) {
        bool found = false;
        for (uint32_t r = 0; r < bits_n_recipes; r++)
            found |= any_starts_with(bits_recipes[r].model, BITS_MAX_OPS, tctl_network_op_table[i].op);
        if (!found)
            return tctl_fail(err, TCTL_EINVAL, "operator '%s' is in no recipe: add it to recipes.c",
                             tctl_network_op_table[i].op);
    }
    for (uint32_t i = 0; i < bits_n_plugins; i++) {
        bool found = false;
        for (uint32_t r = 0; r < bits_n_recipes; r++)
            found |= has_plugin(&bits_recipes[r], bits_plugins[i]->name);
        if (!found)
            return tctl_fail(err, TCTL_EINVAL, "plugin '%s' is in no recipe: add it to recipes.c",
                             bits_plugins[i]->name);
    }
    return TCTL_OK;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

typedef struct run {
    bits_session session;
    tctl_part transforms[2][BITS_MAX_PARTS], stages[BITS_MAX_PARTS], trainer, optimizer, schedule;
    tctl_dataset datasets[2];
    uint32_t n_stages;
    tctl_model model;
} run;

static tctl_status make_parts(run *r, const char *const *texts, const char *prefix, tctl_part *ret,
                              uint32_t *ret_n, tctl_error *err)
{
    tctl_status st = TCTL_OK;
    uint32_t n = 0;
    while (!st && n < BITS_MAX_PARTS && texts[n]) {
        const char *streams =
            tctl_arena_format(r->session.arena, "%s%s", prefix, bits_words_read(texts[n]).first);
        st = streams ? bits_part_make(&r->session, texts[n], streams, NULL, NULL, &ret[n], err)
                     : tctl_fail_memory(err, 0);
        n++;
    }
    *ret_n = n;
    return st;
}

static tctl_status make_dataset(run *r, uint32_t at, const char *name, const char *source,
                                const char *const *transforms, tctl_error *err)
{
    tctl_dataset *d = &r->datasets[at];
    *d = (tctl_dataset){.name = name, .transforms = r->transforms[at]};
    tctl_status st = bits_part_make(&r->session, source, name, NULL, NULL, &d->source, err);
    return st ? st : make_parts(r, transforms, name, r->transforms[at], &d->n_transforms, err);
}

static tctl_status make_all(run *r, const bits_recipe *recipe, tctl_error *err)
{
    bits_session *s = &r->session;
    bits_model_make(recipe, &r->model);
    tctl_status st = make_dataset(r, 0, "train", recipe->train, recipe->train_transforms, err);
    if (!st && recipe->test)
        st = make_dataset(r, 1, "test", recipe->test, recipe->test_transforms, err);
    if (!st)
        st = bits_part_make(s, recipe->optimizer, "optimizer", NULL, NULL, &r->optimizer, err);
    if (!st)
        st = bits_part_make(s, recipe->schedule, "schedule", NULL, NULL, &r->schedule, err);
    if (!st)
        st = make_parts(r, recipe->stages, "", r->stages, &r->n_stages, err);
    if (!st)
        st = bits_part_make(s, recipe->trainer, "", &r->optimizer, &r->schedule, &r->trainer, err);
    return st;
}

static tctl_status train(const bits_recipe *recipe, const tctl_resources *resources, tctl_error *err)
{
    static run r;
    r = (run){.n_stages = 0};
    tctl_status st = bits_session_begin(&r.session, recipe->name, resources->threads, err);
    if (!st)
        st = make_all(&r, recipe, err);
    if (!st) {
        const tctl_job job = {.struct_size = sizeof job,
                              .n_datasets = recipe->test ? 2 : 1,
                              .n_stages = r.n_stages,
                              .seed = r.session.seed,
                              .model = &r.model,
                              .models = &bits_models,
                              .datasets = r.datasets,
                              .stages = r.stages,
                              .resources = resources};
        const tctl_trainer *trainer = tctl_plugin_extension(r.trainer.plugin, TCTL_TRAINER_ID);
        st = trainer ? trainer->run(r.trainer.stage, &job, err)
                     : tctl_fail(err, TCTL_EPLUGIN, "'%s' is no trainer", recipe->trainer);
    }
    bits_session_end(&r.session);
    return st;
}

/* ---- the program --------------------------------------------------------------------------------------- */

static int print_simd(void)
{
    uint32_t n;
    const tctl_simd *const *available = tctl_simd_available(&n);
    for (uint32_t i = 0; i < n; i++)
        printf("%s\n", available[i]->name);
    return 0;
}

static bool read_numbers(char **words, uint64_t ret[4])
{
    for (int i = 0; i < 4; i++) {
        if (!tctl_parse_uint(words[i], strlen(words[i]), &ret[i]))
            return false;
    }
    return ret[0] >= 1 && ret[0] <= 1024 && ret[1] <= 1024 && ret[2] <= 1024;
}

int main(int argc, char **argv)
{
    uint64_t numbers[4];
    if (argc == 2 && strcmp(argv[1], "simd") == 0)
        return print_simd();
    if (argc != 5 || !read_numbers(argv + 1, numbers)) {
        fprintf(stderr, "usage: bench_bits THREADS WORKERS PREFETCH CACHE_BYTES, or bench_bits simd\n");
        return 2;
    }
    const tctl_resources resources = {.struct_size = sizeof resources,
                                      .threads = (uint32_t)numbers[0],
                                      .workers = (uint32_t)numbers[1],
                                      .prefetch = (uint32_t)numbers[2],
                                      .cache_bytes = numbers[3],
                                      .device = "cpu"};
    tctl_error err = {0};
    tctl_status st = check_recipes(&err);
    for (uint32_t i = 0; !st && i < bits_n_recipes; i++)
        st = train(&bits_recipes[i], &resources, &err);
    if (st) {
        fprintf(stderr, "bench_bits: %s\n", err.message);
        for (uint32_t i = 0; i < err.n_notes; i++)
            fprintf(stderr, "  note: %s\n", err.notes[i]);
    }
    return st || fflush(stdout) ? 1 : 0;
}
