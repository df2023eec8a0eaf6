/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transform `normalize`: (value * scale - mean) / std per channel, from u8 or f32 to f32.
 *
 * Computed in double and rounded once, so the result is the float nearest to the formula. Bytes have only 256 values:
 * they go through a table per channel, which `describe` fills by the same formula.
 */
#include "trainctl/ext/transform.h"
#include "trainctl/host/services.h"
#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

enum { MAX_CHANNELS = 64 };

struct tctl_stage {
    const tctl_host *host;
    const tctl_config *config;
    const tctl_memory *memory;
    double scale, mean[MAX_CHANNELS], std[MAX_CHANNELS];
    uint32_t n_mean, n_std;
    uint32_t field; /* of the image */
    int32_t dtype;
    size_t pixels, channels;
    float table[MAX_CHANNELS][256]; /* of bytes */
};

static float normal_form(const tctl_stage *stage, size_t channel, double value)
{
    return (float)((value * stage->scale - stage->mean[channel]) / stage->std[channel]);
}

static void from_bytes(const tctl_stage *stage, const unsigned char *restrict in, float *restrict out)
{
    size_t channels = stage->channels;
    if (channels == 1) {
        for (size_t i = 0; i < stage->pixels; i++)
            out[i] = stage->table[0][in[i]];
        return;
    }
    for (size_t i = 0; i < stage->pixels; i++) {
        for (size_t c = 0; c < channels; c++)
            out[i * channels + c] = stage->table[c][in[i * channels + c]];
    }
}

static void from_floats(const tctl_stage *stage, const float *restrict in, float *restrict out)
{
    size_t channels = stage->channels;
    if (channels == 1) {
        double scale = stage->scale, mean = stage->mean[0], std = stage->std[0]; /* lets the loop vectorise */
        for (size_t i = 0; i < stage->pixels; i++)
            out[i] = (float)(((double)in[i] * scale - mean) / std);
        return;
    }
    for (size_t i = 0; i < stage->pixels; i++) {
        for (size_t c = 0; c < channels; c++)
            out[i * channels + c] = normal_form(stage, c, (double)in[i * channels + c]);
    }
}

static tctl_status normalize_apply(tctl_stage *stage, const tctl_random_address *address,
                                   const tctl_tensor *in, const tctl_tensor *out, tctl_error *err)
{
    (void)address;
    (void)err;
    if (stage->dtype == TCTL_U8)
        from_bytes(stage, in[stage->field].data, out[stage->field].data);
    else
        from_floats(stage, in[stage->field].data, out[stage->field].data);
    return TCTL_OK;
}

/* One value serves all channels: makes it as many. */
static tctl_status spread(tctl_stage *stage, const char *option, double *values, uint32_t n, tctl_error *err)
{
    if (n != 1 && n != stage->channels)
        return stage->host->fail_option(err, stage->config, option, "%u values for images with %zu channels",
                                        n, stage->channels);
    for (size_t c = n; c < stage->channels; c++)
        values[c] = values[0];
    return TCTL_OK;
}

static tctl_status normalize_describe(tctl_stage *stage, const tctl_field *in, uint32_t n, tctl_field *out,
                                      tctl_error *err)
{
    const tctl_host *host = stage->host;
    uint32_t field = tctl_pass_fields(in, n, out, "image");
    if (field == n)
        return host->fail(err, TCTL_EUNSUPPORTED,
                          "normalize needs a field 'image', which the source does not have");
    const tctl_field *image = &in[field];
    if (image->rank != 3 || (image->dtype != TCTL_U8 && image->dtype != TCTL_F32))
        return host->fail(
            err, TCTL_EUNSUPPORTED,
            "normalize needs field 'image' as u8 or f32 [height, width, channels]; it has dtype %d and "
            "rank %d",
            image->dtype, image->rank);
    if (image->dims[2] > MAX_CHANNELS)
        return host->fail(err, TCTL_EUNSUPPORTED,
                          "normalize takes images of up to %d channels; field 'image' has %lld", MAX_CHANNELS,
                          (long long)image->dims[2]);
    stage->field = field;
    stage->dtype = image->dtype;
    stage->channels = (size_t)image->dims[2];
    stage->pixels = (size_t)(image->dims[0] * image->dims[1]);
    tctl_status status = spread(stage, "mean", stage->mean, stage->n_mean, err);
    if (status == TCTL_OK)
        status = spread(stage, "std", stage->std, stage->n_std, err);
    for (size_t c = 0; status == TCTL_OK && c < stage->channels; c++) {
        for (int value = 0; value < 256; value++)
            stage->table[c][value] = normal_form(stage, c, value);
    }
    out[field].dtype = TCTL_F32;
    out[field].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED;
    return status;
}

static void normalize_destroy(tctl_stage *stage)
{
    if (stage)
        stage->memory->release(stage->host, stage);
}

static tctl_status read_list(const tctl_host *host, const tctl_config *config, const char *option,
                             double *values, uint32_t *ret_n, tctl_error *err)
{
    uint32_t n = host->cfg_length(config, option);
    if (n < 1 || n > MAX_CHANNELS)
        return host->fail_option(err, config, option,
                                 "has %u values; one per channel, from 1 to %d, are possible", n,
                                 MAX_CHANNELS);
    for (uint32_t i = 0; i < n; i++)
        values[i] = host->cfg_real_at(config, option, i);
    *ret_n = n;
    return TCTL_OK;
}

static tctl_status normalize_create(const tctl_host *host, const tctl_config *config, tctl_stage **ret,
                                    tctl_error *err)
{
    const tctl_memory *memory = host->service(host, TCTL_MEMORY_ID);
    if (!memory)
        return host->fail(err, TCTL_EUNSUPPORTED, "the host has no service '%s'", TCTL_MEMORY_ID);
    tctl_stage *stage = memory->allocate(host, sizeof *stage);
    if (!stage)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *stage);
    stage->host = host;
    stage->config = config;
    stage->memory = memory;
    stage->scale = host->cfg_real(config, "scale");
    tctl_status status = read_list(host, config, "mean", stage->mean, &stage->n_mean, err);
    if (status == TCTL_OK)
        status = read_list(host, config, "std", stage->std, &stage->n_std, err);
    if (status != TCTL_OK) {
        normalize_destroy(stage);
        return status;
    }
    *ret = stage;
    return TCTL_OK;
}

static const tctl_option options[] = {
    {"mean", TCTL_REAL, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED, NULL, 0, 0, -1e9, 1e9,
     NULL, NULL, "subtracted after scaling, one value or one per channel", "0.1.0"},
    {"std", TCTL_REAL, TCTL_OPT_REQUIRED | TCTL_OPT_SEMANTIC | TCTL_OPT_REPEATED, NULL, 0, 0, 1e-9, 1e9, NULL,
     NULL, "divides last, one value or one per channel", "0.1.0"},
    {"scale", TCTL_REAL, TCTL_OPT_SEMANTIC, "0.00392156862745098", 0, 0, 1e-9, 1e9, NULL, NULL,
     "multiplies first; the default, 1/255, takes bytes to 0 to 1", "0.1.0"},
};

static const tctl_transform transform = {sizeof transform, 0, normalize_describe, normalize_apply};

static const tctl_extension extensions[] = {{TCTL_TRANSFORM_ID, &transform}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    TCTL_COUNT_OF(options),
    TCTL_COUNT_OF(extensions),
    TCTL_BITS_RECIPE,
    TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES,
    0,
    0,
    "normalize",
    "0.1.0",
    "Apache-2.0",
    "scales, subtracts a mean and divides by a standard deviation, per channel",
    options,
    extensions,
    normalize_create,
    normalize_destroy,
};
