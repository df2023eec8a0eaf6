/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of math.h and norm.h for every processor of the family. On x86-64 without fused multiply-add it is right and slow. */
#define MATH_TABLE     tctl_math_portable
#define MATH_FUNCTIONS "engine/math/functions_plain.h"
#define NORM_TABLE     tctl_norm_portable
#define NORM_LANES     4
#include "engine/math/math_body.h"
#include "engine/math/norm_body.h"
