/* SPDX-License-Identifier: Apache-2.0 */
/* Options as words of a text, "flip probability=0.3", read by a plugin's or an operator's own option table. */
#ifndef TCTL_BENCH_BITS_WORDS_H
#define TCTL_BENCH_BITS_WORDS_H

#include "trainctl/plugin.h"

enum { BITS_MAX_WORDS = 12, BITS_WORD = 40 };

/* The first word, and those that follow: "name=value", of which a value has no blank; "1_epochs" reads as "1 epochs". */
typedef struct bits_words {
    char first[BITS_WORD];
    uint32_t n;
    char names[BITS_MAX_WORDS][BITS_WORD], values[BITS_MAX_WORDS][BITS_WORD];
} bits_words;

/* The texts are this program's own: a mistake in one ends it, with the place. */
bits_words bits_words_read(const char *text);
/* The i-th value of that name, or NULL. */
const char *bits_words_value(const bits_words *words, const char *name, uint32_t i);

const tctl_option *bits_option_find(const tctl_option *options, uint32_t n, const char *name);
int64_t bits_int_of(const char *value); /* also of "1 epochs" */
double bits_real_of(const char *value);

#endif
