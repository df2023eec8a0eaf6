/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest word by the restricted Damerau-Levenshtein distance. */
#include <string.h>

#include "config/options.h"

enum { MAX_WORD = 64 };

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Case counts for nothing, '-' and '_' are the same. */
static char fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

/* Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. */
static size_t distance(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][MAX_WORD + 1] = {{0}};
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t differ = fold(a[i - 1]) != fold(b[j - 1]);
            now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + differ);
            bool swapped =
                i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1]);
            if (swapped && before[j - 2] + 1 < now[j])
                now[j] = before[j - 2] + 1;
        }
        size_t *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[m];
}

const char *tctl_suggest(const char *word, const char *const *words, size_t n)
{
    size_t length = strnlen(word, MAX_WORD + 1), best_distance = SIZE_MAX;
    const char *best = NULL;
    if (length == 0 || length > MAX_WORD)
        return NULL;
    for (size_t i = 0; i < n; i++) {
        size_t other = words[i] ? strnlen(words[i], MAX_WORD + 1) : 0;
        if (other == 0 || other > MAX_WORD)
            continue;
        size_t longer = length > other ? length : other;
        size_t allowed = longer < 3 ? longer / 2 : longer / 3;
        size_t d = distance(word, length, words[i], other);
        if (d <= allowed && d < best_distance) {
            best_distance = d;
            best = words[i];
        }
    }
    return best;
}
