/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 (RFC 3629), one code point at a time: the only place that knows what is well-formed. */
#ifndef TCTL_BASE_UTF8_H
#define TCTL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Decodes the code point at text[0..size). Returns its length, 1 to 4 bytes, or 0 if the bytes are no UTF-8: cut
 * short, overlong, a surrogate, above U+10FFFF. *ret is written on success. */
size_t tctl_utf8_decode(const char *text, size_t size, uint32_t *ret);

#endif
