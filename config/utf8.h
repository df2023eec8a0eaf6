/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 for positions and excerpts: decoding one code point, its width on a terminal, repairing bytes. */
#ifndef TCTL_CONFIG_UTF8_H
#define TCTL_CONFIG_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Decodes the code point at text[0..size). Returns its length, 1 to 4 bytes, or 0 if the bytes are no UTF-8: cut
 * short, overlong, a surrogate, above U+10FFFF. *ret is written on success. */
size_t tctl_utf8_decode(const char *text, size_t size, uint32_t *ret);

/* Cells on a terminal: 0 for combining and format characters, 2 for wide ones, else 1. By our own table of
 * Unicode 14.0, since wcwidth depends on the locale. */
int tctl_utf8_width(uint32_t code);

/* Appends the text with every malformed byte replaced by U+FFFD. */
void tctl_utf8_repair(const char *text, size_t size, tctl_buf *ret);

/* The bytes of line `number` (from 1) without its end and without a byte order mark; false if the text has fewer
 * lines. Lines end at '\n' alone, as in editors. */
bool tctl_text_line(const char *text, size_t size, uint32_t number, const char **ret, size_t *ret_size);

#endif
