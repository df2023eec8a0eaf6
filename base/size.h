/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic on sizes: true and *ret on success, false on overflow. */
#ifndef TCTL_BASE_SIZE_H
#define TCTL_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool tctl_add_size(size_t a, size_t b, size_t *ret)
{
    if (a > SIZE_MAX - b)
        return false;
    *ret = a + b;
    return true;
}

static inline bool tctl_mul_size(size_t a, size_t b, size_t *ret)
{
    if (b != 0 && a > SIZE_MAX / b)
        return false;
    *ret = a * b;
    return true;
}

#endif
