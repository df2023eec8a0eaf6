/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers from text and back, without the locale.
 *
 * The only place that reads numbers: everything else calls these. All of them read exactly `length` bytes and
 * fail if anything is left over.
 */
#ifndef TCTL_BASE_NUM_H
#define TCTL_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [+-]digits or [+-]0xhex. No leading zeros ("017"), no underscores, no blanks. */
bool tctl_parse_int(const char *text, size_t length, int64_t *ret);
bool tctl_parse_uint(const char *text, size_t length, uint64_t *ret);
/* [+-]digits[.digits][(e|E)[+-]digits], also ".5" and "5."; finite; correctly rounded to nearest even. */
bool tctl_parse_real(const char *text, size_t length, double *ret);

/* The shortest decimal that reads back as `value`, in the form of ECMAScript's Number.prototype.toString (which
 * RFC 8785 section 3.2.2.3 asks for): "0.1", "1e+30", "1e-7", "-0" as "0". `value` must be finite. Returns the
 * length; `out` has room for TCTL_REAL_TEXT bytes and is NUL-terminated. */
#define TCTL_REAL_TEXT 32
size_t tctl_format_real(double value, char *out);

#endif
