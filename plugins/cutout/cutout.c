/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transform `cutout`: overwrites one square at a random place (DeVries and Taylor, "Improved Regularization of
 * Convolutional Neural Networks with Cutout", 2017).
 *
 * The centre is uniform over the pixels (draws 0, 1 for its row, 2, 3 for its column); the square covers rows
 * centre - size/2 to centre - size/2 + size - 1 and is clipped at the border, as in the paper.
 */
#include "trainctl/ext/transform.h"
#include "trainctl/host/random.h"
#include "trainctl/host/services.h"
#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

struct tctl_stage {
    const tctl_host *host;
    const tctl_config *config;
    const tctl_memory *memory;
    const tctl_random *random;
    int64_t size;
    double fill;
    uint32_t field; /* of the image */
    int64_t height, width, channels;
    int32_t dtype;
};

static int64_t clamp(int64_t x, int64_t max)
{
    return x < 0 ? 0 : x > max ? max : x;
}

/* Rows y0..y1-1 and columns x0..x1-1. */
static void fill_square(const tctl_stage *stage, void *image, int64_t y0, int64_t y1, int64_t x0, int64_t x1)
{
    size_t row = (size_t)(stage->width * stage->channels), n = (size_t)((x1 - x0) * stage->channels);
    for (int64_t y = y0; y < y1; y++) {
        size_t at = (size_t)y * row + (size_t)(x0 * stage->channels);
        if (stage->dtype == TCTL_U8) {
            memset((unsigned char *)image + at, (int)stage->fill, n);
        } else {
            float *pixels = (float *)image + at;
            for (size_t i = 0; i < n; i++)
                pixels[i] = (float)stage->fill;
        }
    }
}

static tctl_status cutout_apply(tctl_stage *stage, const tctl_random_address *address, const tctl_tensor *in,
                                const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    const tctl_tensor *from = &in[stage->field], *to = &out[stage->field];
    int64_t y = (int64_t)stage->random->bounded(address, 0, (uint32_t)stage->height) - stage->size / 2;
    int64_t x = (int64_t)stage->random->bounded(address, 2, (uint32_t)stage->width) - stage->size / 2;
    memcpy(to->data, from->data,
           (size_t)(stage->height * stage->width * stage->channels) * tctl_dtype_size(stage->dtype));
    fill_square(stage, to->data, clamp(y, stage->height), clamp(y + stage->size, stage->height),
                clamp(x, stage->width), clamp(x + stage->size, stage->width));
    return TCTL_OK;
}

static tctl_status cutout_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                   tctl_error *err)
{
    const tctl_host *host = stage->host;
    uint32_t field = tctl_pass_fields(in, n, out, "image");
    if (field == n)
        return host->fail(err, TCTL_EUNSUPPORTED,
                          "cutout needs a field 'image', which the source does not have");
    const tctl_field *image = &in[field];
    if (image->rank != 3 || (image->dtype != TCTL_U8 && image->dtype != TCTL_F32))
        return host->fail(
            err, TCTL_EUNSUPPORTED,
            "cutout needs field 'image' as u8 or f32 [height, width, channels]; it has dtype %d and "
            "rank %d",
            image->dtype, image->rank);
    if (image->dtype == TCTL_U8 &&
        !(stage->fill >= 0 && stage->fill <= 255 && stage->fill == (double)(int)stage->fill))
        return host->fail_option(err, stage->config, "fill",
                                 "images of bytes need a whole number from 0 to 255 here");
    stage->height = image->dims[0];
    stage->width = image->dims[1];
    stage->channels = image->dims[2];
    stage->dtype = image->dtype;
    stage->field = field;
    out[field].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    return TCTL_OK;
}

static void cutout_destroy(tctl_stage *stage)
{
    if (stage)
        stage->memory->release(stage->host, stage);
}

static tctl_status cutout_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                 tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    const tctl_random *random = host->service(host, TCTL_RANDOM_ID);
    if (!memory || !random)
        return host->fail(err, TCTL_EUNSUPPORTED, "the host has no service '%s'",
                          memory ? TCTL_RANDOM_ID : TCTL_MEMORY_ID);
    tctl_stage *stage = memory->allocate(host, sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->host = host;
    stage->config = config;
    stage->memory = memory;
    stage->random = random;
    stage->size = host->cfg_int(config, "size");
    stage->fill = host->cfg_real(config, "fill");
    *ret = stage;
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"size", TCTL_INT, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC, NULL, 1, 65536, 0, 0, NULL, "pixels",
     "side of the square", "0.1.0"},
    {"fill", TCTL_REAL, TCTL_OPT_SEMANTIC, "0", 0, 0, -1e9, 1e9, NULL, NULL,
     "value written into the square, in the units of the image at this place of the chain", "0.1.0"},
};

static const tctl_transform transform = {sizeof transform, 0, cutout_describe, cutout_apply};

static const tctl_extension extensions[] = {{TCTL_TRANSFORM_ID, &transform}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "cutout",
    "0.1.0",
    "Apache-2.0",
    "overwrites a square at a random place of each image",
    options,
    extensions,
    cutout_create,
    cutout_destroy,
};
