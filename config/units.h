/* SPDX-License-Identifier: Apache-2.0 */
/* Units of durations and sizes. */
#ifndef TCTL_CONFIG_UNITS_H
#define TCTL_CONFIG_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Seconds in `amount` of `unit` ("ms", "s", "min", "h", "d" and their long forms); false for another unit. */
bool tctl_duration_in(double amount, const char *unit, double *ret);

/* Bytes in the number number[0..length) of `unit`: binary ("MiB") and decimal ("MB") units, "B"; zero needs
 * none. False for another unit, for a part of a byte, and beyond 2^63 - 1. */
bool tctl_size_in(const char *number, size_t length, const char *unit, int64_t *ret);

/* The unit that somebody meant who wrote "mb" or "G"; NULL if it is right or cannot be guessed. */
const char *tctl_size_unit_near(const char *unit);

#endif
