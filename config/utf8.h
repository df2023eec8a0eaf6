/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 for positions and excerpts: a code point's width on a terminal, repairing bytes, lines. */
#ifndef TCTL_CONFIG_UTF8_H
#define TCTL_CONFIG_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"

/* Cells on a terminal: 0 for combining and format characters, 2 for wide ones, else 1. By our own table of
 * Unicode 14.0, since wcwidth depends on the locale. */
int tctl_utf8_width(uint32_t code);

/* Appends the text with every malformed byte replaced by U+FFFD. */
void tctl_utf8_repair(const char *text, size_t size, tctl_buf *ret);

/* The bytes of line `number` (from 1) without its end and without a byte order mark; false if the text has fewer
 * lines. Lines end at '\n' alone, as in editors. */
bool tctl_text_line(const char *text, size_t size, uint32_t number, const char **ret, size_t *ret_size);

#endif
