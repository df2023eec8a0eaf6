/* SPDX-License-Identifier: Apache-2.0 */
/* See math.h. */
#include "host/math.h"

#include "base/fmath.h"

const tctl_math *tctl_math_service_of(void)
{
    static const tctl_math service = {
        .struct_size = sizeof service,
        .expf = tctl_expf,
        .logf = tctl_logf,
        .log1pf = tctl_log1pf,
        .tanhf = tctl_tanhf,
        .cospi = tctl_cospi,
    };
    return &service;
}
