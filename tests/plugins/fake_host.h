/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small host for unit tests of one plugin: options are given as texts, services do their work in the caller's thread.
 *
 * Options are read by the plugin's own table, so a test fails if a name or a default is wrong. The memory service can
 * fail its n-th call; the parallel service runs chunks forwards or backwards.
 */
#ifndef TCTL_TESTS_FAKE_HOST_H
#define TCTL_TESTS_FAKE_HOST_H

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "base/error.h"
#include "base/num.h"
#include "seed/stream.h"
#include "trainctl/host/math.h"
#include "trainctl/host/random.h"
#include "trainctl/host/services.h"
#include "trainctl/plugin.h"

typedef struct fake_option {
    const char *name, *text; /* ended by a NULL name */
} fake_option;

/* What our tctl_config pointers point at. */
typedef struct fake_config {
    const tctl_plugin *plugin;
    const fake_option *options;
} fake_config;

/* What the services are told to do, and what they saw. */
typedef struct fake_world {
    int64_t fail_allocation; /* this many allocations succeed, then one fails; below 0: none fails */
    int64_t allocated;       /* blocks that are out */
    bool backwards;          /* chunks from last to first */
    /* Services and parts that a test adds, ended by a NULL name. */
    const struct fake_service {
        const char *id;
        const void *service;
    } * services;
    const struct fake_part {
        const char *option;
        const tctl_part *part;
    } * parts;
} fake_world;
static fake_world fake = {.fail_allocation = -1};

static TCTL_UNUSED const tctl_plugin *fake_plugin(const char *name)
{
    char path[4096];
    const char *build = getenv("TRAINCTL_BUILD");
    snprintf(path, sizeof path, "%s/lib/trainctl/plugins/%s.so", build ? build : "build", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    const tctl_plugin *plugin = dlsym(library, "trainctl_plugin_v1");
    TCTL_BUG_IF(!plugin);
    return plugin;
}

/* The functions of an extension that the plugin must have. */
static TCTL_UNUSED const void *fake_extension(const tctl_plugin *plugin, const char *id)
{
    const void *found = tctl_plugin_extension(plugin, id);
    TCTL_BUG_IF(!found);
    return found;
}

static const char *fake_text(const tctl_config *opaque, const char *option)
{
    const fake_config *config = (const void *)opaque;
    const tctl_option *found = NULL;
    for (uint32_t i = 0; i < config->plugin->n_options; i++) {
        if (strcmp(config->plugin->options[i].name, option) == 0)
            found = &config->plugin->options[i];
    }
    TCTL_BUG_IF(!found);
    for (const fake_option *o = config->options; o && o->name; o++) {
        if (strcmp(o->name, option) == 0)
            return o->text;
    }
    return found->default_yaml;
}

static int fake_given(const tctl_config *config, const char *option)
{
    return fake_text(config, option) != NULL;
}

static int fake_bool(const tctl_config *config, const char *option)
{
    const char *text = fake_text(config, option);
    return text && strcmp(text, "true") == 0;
}

static int64_t fake_int(const tctl_config *config, const char *option)
{
    const char *text = fake_text(config, option);
    int64_t value = 0;
    TCTL_BUG_IF(!text || !tctl_parse_int(text, strcspn(text, " "), &value));
    return value;
}

static double fake_real(const tctl_config *config, const char *option)
{
    const char *text = fake_text(config, option);
    double value = 0;
    TCTL_BUG_IF(!text || !tctl_parse_real(text, strlen(text), &value));
    return value;
}

/* A repeated option is written with commas: "0.1,0.2". */
static uint32_t fake_length(const tctl_config *config, const char *option)
{
    const char *text = fake_text(config, option);
    uint32_t n = text && *text;
    for (; text && *text; text++)
        n += *text == ',';
    return n;
}

static double fake_real_at(const tctl_config *config, const char *option, uint32_t i)
{
    const char *text = fake_text(config, option);
    double value = 0;
    for (; text && i > 0; i--)
        text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL;
    TCTL_BUG_IF(!text || !tctl_parse_real(text, strcspn(text, ","), &value));
    return value;
}

/* The text, or what stands behind the blank of a count. */
static const char *fake_word(const tctl_config *config, const char *option)
{
    const char *text = fake_text(config, option), *blank = text ? strchr(text, ' ') : NULL;
    return blank ? blank + 1 : text;
}

static tctl_status fake_fail(tctl_error *err, tctl_status code, const char *fmt, ...) TCTL_PRINTF(3, 4);
static tctl_status fake_fail(tctl_error *err, tctl_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    code = tctl_vfail(err, code, fmt, ap);
    va_end(ap);
    return code;
}

static tctl_status fake_fail_option(tctl_error *err, const tctl_config *config, const char *option,
                                    const char *fmt, ...) TCTL_PRINTF(4, 5);
static tctl_status fake_fail_option(tctl_error *err, const tctl_config *config, const char *option,
                                    const char *fmt, ...)
{
    (void)fake_text(config, option); /* the option must be in the table */
    va_list ap;
    va_start(ap, fmt);
    tctl_status code = tctl_vfail(err, TCTL_ESPEC, fmt, ap);
    va_end(ap);
    return code;
}

static void *fake_allocate(const tctl_host *host, size_t size)
{
    (void)host;
    if (fake.fail_allocation == 0)
        return NULL;
    if (fake.fail_allocation > 0)
        fake.fail_allocation--;
    fake.allocated++;
    /* aligned as the real one */
    size_t rounded = (size + 63) / 64 * 64;
    void *block = aligned_alloc(64, rounded ? rounded : 64);
    if (block)
        memset(block, 0, rounded);
    return block;
}

static void fake_release(const tctl_host *host, void *block)
{
    (void)host;
    fake.allocated -= block != NULL;
    free(block);
}

static void fake_run(const tctl_host *host, uint64_t n, void (*fn)(void *, uint64_t, uint32_t), void *arg)
{
    (void)host;
    for (uint64_t i = 0; i < n; i++)
        fn(arg, fake.backwards ? n - 1 - i : i, 0);
}

static double fake_cospi(double x)
{
    return cos(acos(-1.0) * x);
}

static tctl_random_address fake_address(const tctl_host *host, const char *name, uint32_t when,
                                        uint64_t index)
{
    (void)host;
    return tctl_stream(1029, name, when, index);
}

static const void *fake_find_service(const tctl_host *host, const char *id)
{
    (void)host;
    static const tctl_memory memory = {
        .struct_size = sizeof memory, .allocate = fake_allocate, .release = fake_release};
    static const tctl_parallel parallel = {.struct_size = sizeof parallel, .n_threads = 1, .run = fake_run};
    static const tctl_math math = {.struct_size = sizeof math, .cospi = fake_cospi};
    static const tctl_random random = {.struct_size = sizeof random,
                                       .address = fake_address,
                                       .bits = tctl_draw_bits,
                                       .uniform = tctl_draw_uniform,
                                       .bounded = tctl_draw_bounded,
                                       .normal = tctl_draw_normal};
    if (strcmp(id, TCTL_RANDOM_ID) == 0)
        return &random;
    for (const struct fake_service *s = fake.services; s && s->id; s++) {
        if (strcmp(id, s->id) == 0)
            return s->service;
    }
    if (strcmp(id, TCTL_MEMORY_ID) == 0)
        return &memory;
    if (strcmp(id, TCTL_PARALLEL_ID) == 0)
        return &parallel;
    return strcmp(id, TCTL_MATH_ID) == 0 ? &math : NULL;
}

/* Lives until the 8th call after it. */
static const char *fake_text_at(const tctl_config *config, const char *option, uint32_t i)
{
    static char rooms[8][256];
    static uint32_t calls;
    const char *text = fake_text(config, option);
    for (; text && i > 0; i--)
        text = strchr(text, ',') ? strchr(text, ',') + 1 : NULL;
    TCTL_BUG_IF(!text);
    char *room = rooms[calls++ % 8];
    snprintf(room, sizeof rooms[0], "%.*s", (int)strcspn(text, ","), text);
    return room;
}

static const tctl_part *fake_cfg_part(const tctl_config *config, const char *option)
{
    (void)fake_text(config, option); /* the option must be in the table */
    for (const struct fake_part *p = fake.parts; p && p->option; p++) {
        if (strcmp(option, p->option) == 0)
            return p->part;
    }
    return NULL;
}

static const tctl_host fake_host = {
    .struct_size = sizeof fake_host,
    .service = fake_find_service,
    .fail = fake_fail,
    .fail_option = fake_fail_option,
    .cfg_given = fake_given,
    .cfg_bool = fake_bool,
    .cfg_int = fake_int,
    .cfg_real = fake_real,
    .cfg_text = fake_word,
    .cfg_length = fake_length,
    .cfg_real_at = fake_real_at,
    .cfg_text_at = fake_text_at,
    .cfg_part = fake_cfg_part,
};

/* create, with these options, which must live as long as the stage. The last 64 stages are served. */
static TCTL_UNUSED tctl_status fake_create(const tctl_plugin *plugin, const fake_option *texts,
                                           tctl_stage **ret, tctl_error *err)
{
    static fake_config configs[64];
    static size_t n;
    fake_config *config = &configs[n++ % (sizeof configs / sizeof configs[0])];
    *config = (fake_config){.plugin = plugin, .options = texts};
    return plugin->create(&fake_host, (const void *)config, ret, err);
}

/* The same; the process stops if it fails. */
static TCTL_UNUSED tctl_stage *fake_stage(const tctl_plugin *plugin, const fake_option *texts)
{
    tctl_error err;
    tctl_stage *stage = NULL;
    if (fake_create(plugin, texts, &stage, &err)) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return stage;
}

#endif
