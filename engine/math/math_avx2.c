/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of math.h for AVX2 with FMA. */
#include "engine/math/math.h"

#if defined(__x86_64__)
#define MATH_TABLE tctl_math_avx2
#include "engine/math/math_body.h"
#endif
