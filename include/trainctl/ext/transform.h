/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extension "trainctl.transform/1": one sample in, one sample out, pure in (address, input).
 */
#ifndef TRAINCTL_EXT_TRANSFORM_H
#define TRAINCTL_EXT_TRANSFORM_H

#include "trainctl/host/random.h"
#include "trainctl/plugin.h"
#include "trainctl/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCTL_TRANSFORM_ID "trainctl.transform/1"

typedef struct tctl_transform {
    uint32_t struct_size, reserved;
    /* Given the n fields that come in, writes the n fields that go out: same number, same names, same order.
     * A field that passes through gets TCTL_FIELD_UNCHANGED and costs nothing. TCTL_EUNSUPPORTED if the
     * input cannot be served (wrong dtype, image too small); the message names the field. [main] */
    tctl_status (*describe)(tctl_stage *, const tctl_field *in, uint32_t n, tctl_field *out, tctl_error *);
    /* Transforms one sample. `address` is this stage's own stream at (epoch, global sample index): every
     * random decision is a draw from it. in and out never overlap, except that an unchanged field has equal
     * `data`. Must not allocate. [worker] */
    tctl_status (*apply)(tctl_stage *, const tctl_random_address *address, const tctl_tensor *in,
                         const tctl_tensor *out, tctl_error *);
} tctl_transform;

/* How most `describe` begin: every field passes through unchanged. Returns the index of the field `name`, which
 * the caller then describes anew; n if there is none. */
static inline uint32_t tctl_pass_fields(const tctl_field *in, uint32_t n, tctl_field *out, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        out[i] = in[i];
        out[i].flags |= TCTL_FIELD_UNCHANGED;
    }
    return tctl_field_find(in, n, name);
}

#ifdef __cplusplus
}
#endif

#endif
