/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of math.h for AVX-512. */
#include "engine/math/math.h"

#if defined(__x86_64__)
#define MATH_TABLE tctl_math_avx512
#include "engine/math/math_body.h"
#endif
