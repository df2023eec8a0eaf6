/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical JSON: RFC 8785 (JCS) text of a jansson value.
 *
 * Members sorted by UTF-16 code units, numbers as ECMAScript prints them, no blanks. Two documents with the
 * same content have the same bytes and so the same digest. Integers beyond 2^53 do not survive other readers:
 * callers put 64-bit seeds and sizes into strings.
 */
#ifndef TCTL_BASE_JSON_H
#define TCTL_BASE_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/* Appends the canonical text to *ret. TCTL_EINVAL for a number that is not finite, an integer beyond 2^53 (unless it is
 * what a double of that size prints, so that a text which was read back gives the same text), text that is not UTF-8,
 * or a missing value (NULL, which jansson's constructors give when memory is out). */
tctl_status tctl_json_canonical(const json_t *value, tctl_buf *ret, tctl_error *err);

/* The same content for people: two-space indent, members in canonical order, ends with a newline. */
tctl_status tctl_json_pretty(const json_t *value, tctl_buf *ret, tctl_error *err);

/* Parses a JSON text of `size` bytes, any value; rejects duplicate members, anything behind the value, \u0000, and
 * more than 2048 levels. A number without fraction and exponent is an integer, or a real if it is beyond 64 bits; reals
 * that happen to be whole were printed as integers, so read numbers with json_number_value. *ret is a new reference. Errors: TCTL_EFORMAT with name, line and column (in characters). */
tctl_status tctl_json_parse(const char *name, const char *text, size_t size, json_t **ret, tctl_error *err);

#endif
