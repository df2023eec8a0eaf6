/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transform `flip`: mirrors the image left to right with a given probability.
 *
 * Draw 0 of the address decides; every other field passes through.
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
    double probability;
    uint32_t field; /* of the image */
    int64_t height, width;
    size_t pixel_bytes;
};

/* Mirrors one row. `bytes` is a constant where it is inlined, so that each copy is one move. */
static inline void mirror_row(const unsigned char *in, unsigned char *out, int64_t width, size_t bytes)
{
    for (int64_t x = 0; x < width; x++)
        memcpy(out + (size_t)x * bytes, in + (size_t)(width - 1 - x) * bytes, bytes);
}

static void mirror(const tctl_stage *stage, const unsigned char *in, unsigned char *out)
{
    size_t row = (size_t)stage->width * stage->pixel_bytes;
    for (int64_t y = 0; y < stage->height; y++, in += row, out += row) {
        switch (stage->pixel_bytes) {
        case 1:
            mirror_row(in, out, stage->width, 1);
            break;
        case 3:
            mirror_row(in, out, stage->width, 3);
            break;
        case 4:
            mirror_row(in, out, stage->width, 4);
            break;
        case 12:
            mirror_row(in, out, stage->width, 12);
            break;
        default:
            mirror_row(in, out, stage->width, stage->pixel_bytes);
            break;
        }
    }
}

static tctl_status flip_apply(tctl_stage *stage, const tctl_random_address *address, const tctl_tensor *in,
                              const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    const tctl_tensor *from = &in[stage->field], *to = &out[stage->field];
    if ((double)stage->random->uniform(address, 0) < stage->probability)
        mirror(stage, from->data, to->data);
    else
        memcpy(to->data, from->data, (size_t)(stage->height * stage->width) * stage->pixel_bytes);
    return TCTL_OK;
}

static tctl_status flip_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                 tctl_error *err)
{
    const tctl_host *host = stage->host;
    uint32_t field = tctl_pass_fields(in, n, out, "image");
    if (field == n)
        return host->fail(err, TCTL_EUNSUPPORTED,
                          "flip needs a field 'image', which the source does not have");
    const tctl_field *image = &in[field];
    if (image->rank != 3 || (image->dtype != TCTL_U8 && image->dtype != TCTL_F32))
        return host->fail(
            err, TCTL_EUNSUPPORTED,
            "flip needs field 'image' as u8 or f32 [height, width, channels]; it has dtype %d and "
            "rank %d",
            image->dtype, image->rank);
    stage->height = image->dims[0];
    stage->width = image->dims[1];
    stage->pixel_bytes = tctl_dtype_size(image->dtype) * (size_t)image->dims[2];
    stage->field = field;
    out[field].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    return TCTL_OK;
}

static void flip_destroy(tctl_stage *stage)
{
    if (stage)
        stage->memory->release(stage->host, stage);
}

static tctl_status flip_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
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
    stage->probability = host->cfg_real(config, "probability");
    *ret = stage;
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"probability", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.5", 0, 0, 0, 1, NULL, NULL,
     "share of the images that are mirrored", "0.1.0"},
};

static const tctl_transform transform = {sizeof transform, 0, flip_describe, flip_apply};

static const tctl_extension extensions[] = {{TCTL_TRANSFORM_ID, &transform}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "flip",
    "0.1.0",
    "Apache-2.0",
    "mirrors images left to right",
    options,
    extensions,
    flip_create,
    flip_destroy,
};
