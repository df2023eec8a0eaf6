/* SPDX-License-Identifier: Apache-2.0 */
/* See words.h. */
#include "bench/bits_network/words.h"

#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/num.h"

static void copy(char to[BITS_WORD], const char *from, size_t length)
{
    TCTL_BUG_IF(length >= BITS_WORD);
    memcpy(to, from, length);
    to[length] = 0;
    for (char *c = to; *c; c++)
        *c = *c == '_' && c > to && c[-1] >= '0' && c[-1] <= '9' ? ' ' : *c;
}

bits_words bits_words_read(const char *text)
{
    bits_words words = {.n = 0};
    copy(words.first, text, strcspn(text, " "));
    for (text += strcspn(text, " "); *text; text += strcspn(text, " ")) {
        text++;
        const size_t name = strcspn(text, "= "), all = strcspn(text, " ");
        TCTL_BUG_IF(words.n == BITS_MAX_WORDS || name == all);
        copy(words.names[words.n], text, name);
        copy(words.values[words.n++], text + name + 1, all - name - 1);
    }
    return words;
}

const char *bits_words_value(const bits_words *words, const char *name, uint32_t i)
{
    for (uint32_t w = 0; w < words->n; w++) {
        if (strcmp(words->names[w], name) == 0 && i-- == 0)
            return words->values[w];
    }
    return NULL;
}

const tctl_option *bits_option_find(const tctl_option *options, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    }
    return NULL;
}

int64_t bits_int_of(const char *value)
{
    int64_t number;
    const bool read = tctl_parse_int(value, strcspn(value, " "), &number);
    TCTL_BUG_IF(!read);
    return number;
}

double bits_real_of(const char *value)
{
    double number;
    const bool read = tctl_parse_real(value, strlen(value), &number);
    TCTL_BUG_IF(!read);
    return number;
}
