/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vectors of the kernels in plain C: one float. As the other headers of this folder, of which a kernel includes one:
 *
 *     LANES, VEC               floats per vector, and its type
 *     VZERO(), VLOAD(p), VSTORE(p, v), VSPLAT(x), VFMA(a, b, c)      a * b + c, rounded once
 *     VLOAD_TAIL(p, n), VSTORE_TAIL(p, n, v)                         the first n lanes, 0 < n < LANES
 */
#ifndef TCTL_ENGINE_VECTOR_H
#define TCTL_ENGINE_VECTOR_H

#include <math.h>

#define LANES 1

#define VEC                  float
#define VZERO()              0.0f
#define VLOAD(p)             (*(p))
#define VSTORE(p, v)         (*(p) = (v))
#define VSPLAT(x)            (x)
#define VFMA(a, b, c)        fmaf(a, b, c)
#define VLOAD_TAIL(p, n)     ((void)(n), *(p))
#define VSTORE_TAIL(p, n, v) ((void)(n), *(p) = (v))

#endif
