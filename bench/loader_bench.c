/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_loader FOLDER WORKERS EPOCHS: images per second of the loader on Fashion-MNIST, through the same option reader,
 * plugin loader and services as a run: idx, random-crop (padding 2), flip, normalize, batches of 128, shuffled.
 *
 * Prints the images per second of each epoch after the first, one a line. A byte of every batch is read, nothing
 * is trained.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/num.h"
#include "config/options.h"
#include "config/yaml.h"
#include "engine/loader.h"
#include "host/plugins.h"
#include "host/services.h"
#include "host/stage.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/transform.h"

#define SEED 1029

enum { MAX_STEPS = 4 };

typedef struct bench {
    tctl_buf text;
    tctl_arena *arena;
    tctl_diags diags;
    tctl_plugins *plugins;
    tctl_services *services;
    tctl_stages *stages;
    tctl_loader *loader;
    tctl_part parts[MAX_STEPS]; /* the source, then the transforms */
} bench;

/* Reads one `use:` of the text and makes its stage. */
static tctl_status make_part(bench *b, const tctl_reader_context *context, const tctl_yaml_node *node,
                             const char *extension, tctl_part *ret, tctl_error *err)
{
    tctl_use *use = NULL;
    tctl_status status = tctl_use_read(context, node, extension, NULL, "data.train", &use);
    if (status)
        return tctl_fail(err, status, "%s", tctl_status_text(status));
    if (b->diags.n > 0) {
        *err = b->diags.errors[0];
        return err->code;
    }
    status = tctl_stages_add(b->stages, use, NULL, err);
    *ret = use->part;
    return status;
}

static tctl_status make_parts(bench *b, const char *folder, tctl_error *err)
{
    tctl_buf_add_format(&b->text,
                        "- {use: idx, images: %s/train-images-idx3-ubyte.gz, "
                        "labels: %s/train-labels-idx1-ubyte.gz}\n"
                        "- {use: random-crop, pad: 2}\n"
                        "- {use: flip}\n"
                        "- {use: normalize, mean: 0.2860, std: 0.3530}\n",
                        folder, folder);
    const char *text = tctl_buf_text(&b->text);
    b->arena = tctl_arena_create();
    if (!text || !b->arena)
        return tctl_fail_memory(err, b->text.size);
    tctl_yaml_node *list = NULL;
    tctl_status status = tctl_yaml_parse(b->arena, "bench.yaml", text, b->text.size, &list, &b->diags);
    if (status)
        return tctl_fail(err, status, "the folder's name cannot stand in a spec");
    const tctl_plugin_finder finder = tctl_plugins_finder(b->plugins);
    const tctl_reader_context context = {
        .arena = b->arena, .diags = &b->diags, .folder = "/", .finder = &finder};
    for (size_t i = 0; i < MAX_STEPS && !status; i++)
        status = make_part(b, &context, list->items[i], i == 0 ? TCTL_SOURCE_ID : TCTL_TRANSFORM_ID,
                           &b->parts[i], err);
    return status;
}

static tctl_status make_loader(bench *b, const char *folder, uint32_t workers, tctl_error *err)
{
    const tctl_services_request services = {.seed = SEED, .log_fd = -1, .events_fd = -1};
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return tctl_fail(err, TCTL_EIO, "cannot find this program");
    program[length] = '\0';
    tctl_status status = tctl_plugins_create(program, &b->plugins, err);
    if (!status)
        status = tctl_services_create(&services, &b->services, err);
    const tctl_stages_request stages = {.services = b->services};
    if (!status)
        status = tctl_stages_begin(&stages, &b->stages, err);
    if (!status)
        status = make_parts(b, folder, err);
    if (status)
        return status;
    const tctl_dataset dataset = {
        .name = "train", .source = b->parts[0], .transforms = b->parts + 1, .n_transforms = MAX_STEPS - 1};
    const tctl_resources resources = {
        .struct_size = sizeof resources, .threads = 1, .workers = workers, .prefetch = 4};
    const tctl_loader_request request = {
        .dataset = &dataset, .seed = SEED, .shuffle = true, .batch = 128, .resources = &resources};
    return tctl_loader_create(&request, &b->loader, err);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static tctl_status load_epochs(bench *b, uint32_t epochs, tctl_error *err)
{
    volatile float sink = 0; /* so that the batch is looked at */
    for (uint32_t epoch = 0; epoch <= epochs; epoch++) {
        double begin = seconds();
        const tctl_loaded_batch *batch = NULL;
        tctl_status status = tctl_loader_start(b->loader, epoch, 0, err);
        while (!status && !(status = tctl_loader_next(b->loader, &batch, err)) && batch)
            sink = sink + ((const float *)batch->tensors[0].data)[0];
        if (status)
            return status;
        if (epoch > 0)
            printf("%.0f\n", (double)tctl_loader_samples(b->loader) / (seconds() - begin));
    }
    return TCTL_OK;
}

int main(int argc, char **argv)
{
    bench b = {.text = TCTL_BUF_INIT};
    tctl_error err = {0};
    int64_t workers = 0, epochs = 0;
    if (argc != 4 || !tctl_parse_int(argv[2], strlen(argv[2]), &workers) || workers < 0 || workers > 1000 ||
        !tctl_parse_int(argv[3], strlen(argv[3]), &epochs) || epochs < 1 || epochs > 1000) {
        fprintf(stderr, "usage: bench_loader FOLDER WORKERS EPOCHS\n");
        return 2;
    }
    tctl_status status = make_loader(&b, argv[1], (uint32_t)workers, &err);
    if (!status)
        status = load_epochs(&b, (uint32_t)epochs, &err);
    if (status)
        fprintf(stderr, "bench_loader: %s\n", err.message);
    tctl_loader_destroy(b.loader);
    tctl_stages_destroy(b.stages);
    tctl_services_destroy(b.services);
    tctl_plugins_destroy(b.plugins);
    tctl_diags_release(&b.diags);
    tctl_arena_destroy(b.arena);
    tctl_buf_release(&b.text);
    return status ? 1 : 0;
}
