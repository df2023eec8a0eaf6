/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transform `random-crop`: pads the image on all sides and cuts a window of the original size at a random place.
 *
 * The window's corner is uniform over the (2 pad + 1)^2 places (draws 0, 1 for its row, 2, 3 for its column). The
 * padding is never made: rows are copied with a shift, and what lies outside is written.
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
    int64_t pad;
    int reflect;
    uint32_t field; /* of the image */
    int64_t height, width;
    size_t pixel_bytes;
};

/* The index in 0..n-1 that i in -pad..n-1+pad mirrors to; the border itself is not repeated. */
static int64_t reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
}

/* out[x] = in[x + shift] for the columns inside, what the mode says outside. */
static void shift_row(const tctl_stage *stage, const unsigned char *in, unsigned char *out, int64_t shift)
{
    int64_t width = stage->width, first = shift < 0 ? -shift : 0, last = shift > 0 ? width - shift : width;
    size_t bytes = stage->pixel_bytes;
    if (first > width)
        first = width;
    if (last < 0)
        last = 0;
    if (first < last)
        memcpy(out + (size_t)first * bytes, in + (size_t)(first + shift) * bytes,
               (size_t)(last - first) * bytes);
    if (!stage->reflect) {
        memset(out, 0, (size_t)first * bytes);
        memset(out + (size_t)last * bytes, 0, (size_t)(width - last) * bytes);
        return;
    }
    for (int64_t x = 0; x < first; x++)
        memcpy(out + (size_t)x * bytes, in + (size_t)reflect(x + shift, width) * bytes, bytes);
    for (int64_t x = last; x < width; x++)
        memcpy(out + (size_t)x * bytes, in + (size_t)reflect(x + shift, width) * bytes, bytes);
}

static tctl_status crop_apply(tctl_stage *stage, const tctl_random_address *address, const tctl_tensor *in,
                              const tctl_tensor *out, tctl_error *err)
{
    (void)err;
    const unsigned char *from = in[stage->field].data;
    unsigned char *to = out[stage->field].data;
    uint32_t places = (uint32_t)(2 * stage->pad + 1);
    int64_t dy = (int64_t)stage->random->bounded(address, 0, places) - stage->pad;
    int64_t dx = (int64_t)stage->random->bounded(address, 2, places) - stage->pad;
    size_t row = (size_t)stage->width * stage->pixel_bytes;
    for (int64_t y = 0; y < stage->height; y++, to += row) {
        int64_t source = y + dy;
        if (stage->reflect)
            source = reflect(source, stage->height);
        if (source < 0 || source >= stage->height)
            memset(to, 0, row);
        else
            shift_row(stage, from + (size_t)source * row, to, dx);
    }
    return TCTL_OK;
}

static tctl_status crop_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                 tctl_error *err)
{
    const tctl_host *host = stage->host;
    uint32_t field = tctl_pass_fields(in, n, out, "image");
    if (field == n)
        return host->fail(err, TCTL_EUNSUPPORTED,
                          "random-crop needs a field 'image', which the source does not have");
    const tctl_field *image = &in[field];
    if (image->rank != 3 || (image->dtype != TCTL_U8 && image->dtype != TCTL_F32))
        return host->fail(
            err, TCTL_EUNSUPPORTED,
            "random-crop needs field 'image' as u8 or f32 [height, width, channels]; it has dtype %d and "
            "rank %d",
            image->dtype, image->rank);
    if (stage->reflect && (stage->pad >= image->dims[0] || stage->pad >= image->dims[1]))
        return host->fail_option(
            err, stage->config, "pad",
            "an image of %lld x %lld pixels can be reflected by less than its height and width",
            (long long)image->dims[0], (long long)image->dims[1]);
    stage->height = image->dims[0];
    stage->width = image->dims[1];
    stage->pixel_bytes = tctl_dtype_size(image->dtype) * (size_t)image->dims[2];
    stage->field = field;
    out[field].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    return TCTL_OK;
}

static void crop_destroy(tctl_stage *stage)
{
    if (stage)
        stage->memory->release(stage->host, stage);
}

static tctl_status crop_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
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
    stage->pad = host->cfg_int(config, "pad");
    stage->reflect = strcmp(host->cfg_text(config, "mode"), "reflect") == 0;
    *ret = stage;
    return TCTL_OK;
}

static const char *const modes[] = {"zero", "reflect", NULL};

static const tctl_option options[] = {
    {"pad", TCTL_INT, TCTL_OPT_SEMANTIC, "4", 0, 65536, 0, 0, NULL, "pixels", "padding on each side",
     "0.1.0"},
    {"mode", TCTL_ENUM, TCTL_OPT_SEMANTIC, "zero", 0, 0, 0, 0, modes, NULL,
     "what the padding holds: zeros, or the image mirrored at its border", "0.1.0"},
};

static const tctl_transform transform = {sizeof transform, 0, crop_describe, crop_apply};

static const tctl_extension extensions[] = {{TCTL_TRANSFORM_ID, &transform}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "random-crop",
    "0.1.0",
    "Apache-2.0",
    "pads images and cuts a window of the original size at a random place",
    options,
    extensions,
    crop_create,
    crop_destroy,
};
