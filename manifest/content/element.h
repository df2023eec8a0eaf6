/* SPDX-License-Identifier: Apache-2.0 */
/* One element of a tensor, by its type's name: its bits, its value as text, its distance from another. */
#ifndef TCTL_MANIFEST_CONTENT_ELEMENT_H
#define TCTL_MANIFEST_CONTENT_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Appends the bits in hex, most significant digit first; of more than 16 bytes the first 16. */
void tctl_element_bits(const void *little_endian, size_t size, tctl_buf *ret);
/* Appends "0.25", "-3", "true"; false, and nothing appended, for a type without such a text. */
bool tctl_element_value(const char *dtype, const void *little_endian, size_t size, tctl_buf *ret);
/* Steps between two finite floats of one type (f16, bf16, f32, f64); 0 and -0 are one. False if there is no such
 * distance. */
bool tctl_element_ulps(const char *dtype, const void *a, const void *b, size_t size, uint64_t *ret);

#endif
