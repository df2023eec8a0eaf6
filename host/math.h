/* SPDX-License-Identifier: Apache-2.0 */
/* The service "trainctl.math/1": base/fmath.h, as plugins see it. */
#ifndef TCTL_HOST_MATH_H
#define TCTL_HOST_MATH_H

#include "trainctl/host/math.h"

const tctl_math *tctl_math_service_of(void); /* [any] */

#endif
