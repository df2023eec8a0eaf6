/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of math.h and norm.h for AVX2 with FMA. */
#include "engine/math/math.h"
#include "engine/math/norm.h"

#if defined(__x86_64__)
#define MATH_TABLE     tctl_math_avx2
#define MATH_FUNCTIONS "engine/math/functions_avx2.h"
#define NORM_TABLE     tctl_norm_avx2
#define NORM_LANES     8
#include "engine/math/math_body.h"
#include "engine/math/norm_body.h"
#endif
