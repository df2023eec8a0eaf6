/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of channelwise.h in plain C. */
#include <math.h>

#include "engine/channelwise/channelwise.h"

#define CHANNELWISE_TABLE tctl_channelwise_portable
#define LANES             1

#define VEC                  float
#define VZERO()              0.0f
#define VLOAD(p)             (*(p))
#define VSTORE(p, v)         (*(p) = (v))
#define VSPLAT(x)            (x)
#define VFMA(a, b, c)        fmaf(a, b, c)
#define VLOAD_TAIL(p, n)     ((void)(n), *(p))
#define VSTORE_TAIL(p, n, v) ((void)(n), *(p) = (v))

#include "engine/channelwise/channelwise_body.h"
