/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources of made-up data: `pictures` (bytes, one of 10 classes) and `sentences` (token numbers, and the one that follows
 * each). Sample i is a function of i; a class shows in its pictures, and the next token mostly follows from the last.
 */
#include <stdlib.h>

#include "bench/bits_network/data.h"
#include "trainctl/ext/source.h"
#include "trainctl/host/random.h"

enum { CLASSES = 10 };

struct tctl_stage {
    const tctl_random *random;
    tctl_random_address stream;
    int64_t count, height, width, channels; /* of sentences: length, 1, vocabulary */
};

static uint64_t count_of(tctl_stage *s)
{
    return (uint64_t)s->count;
}

static tctl_status make(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = calloc(1, sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes", sizeof *s);
    s->random = host->service(host, TCTL_RANDOM_ID);
    s->stream = s->random->address(host, "samples", 0, 0);
    s->count = host->cfg_int(config, "count");
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

/* ---- pictures ------------------------------------------------------------------------------------------ */

static tctl_status pictures_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                   tctl_error *err)
{
    tctl_status st = make(host, config, ret, err);
    if (!st) {
        (*ret)->height = host->cfg_int(config, "height");
        (*ret)->width = host->cfg_int(config, "width");
        (*ret)->channels = host->cfg_int(config, "channels");
    }
    return st;
}

static uint32_t pictures_describe(tctl_stage *s, tctl_field *fields, uint32_t cap)
{
    const tctl_field all[] = {
        {.name = "image", .dtype = TCTL_U8, .rank = 3, .dims = {s->height, s->width, s->channels}},
        {.name = "label", .dtype = TCTL_I64},
    };
    for (uint32_t i = 0; i < TCTL_COUNT_OF(all) && i < cap; i++)
        fields[i] = all[i];
    return TCTL_COUNT_OF(all);
}

static tctl_status pictures_read(tctl_stage *s, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    tctl_random_address at = s->stream;
    at.index = sample;
    const uint32_t class = s->random->bounded(&at, (uint64_t)1 << 32, CLASSES);
    unsigned char *pixels = out[0].data;
    for (uint64_t i = 0; i < out[0].size_bytes; i++)
        pixels[i] = (unsigned char)((s->random->bits(&at, i) & 127) + 12 * (class + (i + class) % 3));
    *(int64_t *)out[1].data = class;
    return TCTL_OK;
}

static const tctl_option picture_options[] = {
    {"count", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 65536, 0, 0, NULL, NULL, "samples", "0.1.0"},
    {"height", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 4096, 0, 0, NULL, "pixels", "rows", "0.1.0"},
    {"width", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 4096, 0, 0, NULL, "pixels", "columns", "0.1.0"},
    {"channels", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 64, 0, 0, NULL, NULL, "channels", "0.1.0"},
};
static const tctl_source pictures = {sizeof pictures, 0, count_of, pictures_describe, pictures_read};
static const tctl_extension picture_extensions[] = {{TCTL_SOURCE_ID, &pictures}};

const tctl_plugin bits_plugin_pictures = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(picture_options),
    .n_extensions = TCTL_COUNT_OF(picture_extensions),
    .name = "pictures",
    .options = picture_options,
    .extensions = picture_extensions,
    .create = pictures_create,
    .destroy = destroy,
};

/* ---- sentences ----------------------------------------------------------------------------------------- */

static tctl_status sentences_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                    tctl_error *err)
{
    tctl_status st = make(host, config, ret, err);
    if (!st) {
        (*ret)->height = host->cfg_int(config, "length");
        (*ret)->channels = host->cfg_int(config, "vocabulary");
    }
    return st;
}

static uint32_t sentences_describe(tctl_stage *s, tctl_field *fields, uint32_t cap)
{
    const tctl_field all[] = {
        {.name = "tokens", .dtype = TCTL_U8, .rank = 1, .dims = {s->height}},
        {.name = "label", .dtype = TCTL_I64, .rank = 1, .dims = {s->height}},
    };
    for (uint32_t i = 0; i < TCTL_COUNT_OF(all) && i < cap; i++)
        fields[i] = all[i];
    return TCTL_COUNT_OF(all);
}

static tctl_status sentences_read(tctl_stage *s, uint64_t sample, const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    tctl_random_address at = s->stream;
    at.index = sample;
    const uint32_t vocabulary = (uint32_t)s->channels;
    uint32_t token = s->random->bounded(&at, 0, vocabulary);
    for (uint64_t i = 0; i < (uint64_t)s->height; i++) {
        const uint32_t step = s->random->bounded(&at, 2 * i + 2, 3);
        ((unsigned char *)out[0].data)[i] = (unsigned char)token;
        token = (3 * token + step) % vocabulary;
        ((int64_t *)out[1].data)[i] = token;
    }
    return TCTL_OK;
}

static const tctl_option sentence_options[] = {
    {"count", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 65536, 0, 0, NULL, NULL, "samples", "0.1.0"},
    {"length", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 4096, 0, 0, NULL, "tokens", "of a sample", "0.1.0"},
    {"vocabulary", TCTL_INT, TCTL_OPT_REQUIRED, NULL, 1, 256, 0, 0, NULL, NULL, "tokens are below it",
     "0.1.0"},
};
static const tctl_source sentences = {sizeof sentences, 0, count_of, sentences_describe, sentences_read};
static const tctl_extension sentence_extensions[] = {{TCTL_SOURCE_ID, &sentences}};

const tctl_plugin bits_plugin_sentences = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(sentence_options),
    .n_extensions = TCTL_COUNT_OF(sentence_extensions),
    .name = "sentences",
    .options = sentence_options,
    .extensions = sentence_extensions,
    .create = sentences_create,
    .destroy = destroy,
};
