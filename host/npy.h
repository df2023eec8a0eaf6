/* SPDX-License-Identifier: Apache-2.0 */
/* One tensor as an .npy file (format 1.0), for people and tools that look at it. [any] */
#ifndef TCTL_HOST_NPY_H
#define TCTL_HOST_NPY_H

#include "base/error.h"
#include "trainctl/tensor.h"

/* Makes the folders above it; replaces a file that is there. TCTL_EUNSUPPORTED for an element type that NumPy lacks. */
tctl_status tctl_npy_write(const char *path, const tctl_tensor *, tctl_error *err);

#endif
