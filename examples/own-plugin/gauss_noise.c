/* SPDX-License-Identifier: Apache-2.0 */
/* Transform `gauss-noise`: adds normal noise to a float image. A whole plugin; docs/plugins.md walks through it. */
#include <stdlib.h>

#include "trainctl/ext/transform.h"

struct tctl_stage {
    const tctl_host *host;
    const tctl_random *random;
    float sigma;
    uint32_t field; /* of the image */
};

static tctl_status describe(tctl_stage *s, const tctl_field *in, uint32_t n, tctl_field *out, tctl_error *err)
{
    s->field = tctl_pass_fields(in, n, out, "image"); /* everything passes through ... */
    if (s->field == n || in[s->field].dtype != TCTL_F32)
        return s->host->fail(err, TCTL_EUNSUPPORTED, "gauss-noise needs an 'image' of f32: normalize first");
    out[s->field].flags &= ~(uint32_t)TCTL_FIELD_UNCHANGED; /* ... except the image */
    return TCTL_OK;
}

/* Draw i belongs to element i: the noise of a sample depends on the run's seed, the epoch and the sample's index. */
static tctl_status apply(tctl_stage *s, const tctl_random_address *address, const tctl_tensor *in,
                         const tctl_tensor *out, tctl_error *err)
{
    const float *x = in[s->field].data;
    float *y = out[s->field].data;
    uint64_t n = out[s->field].size_bytes / sizeof *y;
    (void)err;
    for (uint64_t i = 0; i < n; i++)
        y[i] = x[i] + s->sigma * s->random->normal(address, i);
    return TCTL_OK;
}

static tctl_status create(const tctl_host *host, const tctl_config *config, tctl_stage **ret, tctl_error *err)
{
    tctl_stage *s = malloc(sizeof *s);
    if (!s)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", sizeof *s);
    s->host = host;
    s->random = host->service(host, TCTL_RANDOM_ID);
    s->sigma = (float)host->cfg_real(config, "sigma"); /* in range: see the table */
    *ret = s;
    return TCTL_OK;
}

static void destroy(tctl_stage *s)
{
    free(s);
}

static const tctl_option options[] = {
    {.name = "sigma",
     .type = TCTL_REAL,
     .flags = TCTL_OPT_SEMANTIC,
     .default_yaml = "0.1",
     .real_max = 10,
     .doc = "standard deviation of the noise"},
};
static const tctl_transform transform = {
    .struct_size = sizeof transform, .describe = describe, .apply = apply};
static const tctl_extension extensions[] = {{TCTL_TRANSFORM_ID, &transform}};

const tctl_plugin trainctl_plugin_v1 = {
    TCTL_PLUGIN_HEADER,
    .n_options = TCTL_COUNT_OF(options),
    .n_extensions = TCTL_COUNT_OF(extensions),
    .bits = TCTL_BITS_RECIPE,
    .claims = TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME,
    .name = "gauss-noise",
    .version = "1.0.0",
    .license = "Apache-2.0",
    .summary = "adds normal noise to a float image",
    .options = options,
    .extensions = extensions,
    .create = create,
    .destroy = destroy,
};
