/* SPDX-License-Identifier: Apache-2.0 */
/* See json_path.h. A way is matched from its end, which is what a step knows. */
#include "base/json_path.h"

#include <string.h>

/* The last part of a pattern of `n` bytes: its length; *ret_rest is what stands before it, without the '/'. */
static size_t last_part(const char *pattern, size_t n, size_t *ret_rest)
{
    size_t from = n;
    while (from > 0 && pattern[from - 1] != '/')
        from--;
    *ret_rest = from > 0 ? from - 1 : 0;
    return n - from;
}

/* `whole` is false once the pattern is used up. */
static bool fits(const char *pattern, size_t n, bool whole, const tctl_json_step *way)
{
    size_t rest = 0;
    if (!whole)
        return way == NULL;
    size_t size = last_part(pattern, n, &rest);
    const char *part = pattern + n - size;
    bool more = size < n;
    if (size == 2 && memcmp(part, "**", 2) == 0) {
        for (;; way = way->before) {
            if (fits(pattern, rest, more, way))
                return true;
            if (way == NULL)
                return false;
        }
    }
    if (way == NULL)
        return false;
    bool same =
        (size == 1 && part[0] == '*') || (strlen(way->name) == size && memcmp(way->name, part, size) == 0);
    return same && fits(pattern, rest, more, way->before);
}

bool tctl_json_path_fits(const char *const *patterns, const tctl_json_step *way)
{
    for (; patterns != NULL && *patterns != NULL; patterns++) {
        if (fits(*patterns, strlen(*patterns), true, way))
            return true;
    }
    return false;
}

const char *tctl_json_path_problem(const char *pattern)
{
    size_t any = 0;
    for (const char *at = pattern;; at++) {
        size_t n = strcspn(at, "/");
        if (n == 0)
            return pattern[0] == '\0' ? "it is empty" : "it has an empty name between two '/'";
        any += n == 2 && memcmp(at, "**", 2) == 0;
        if (any > 2) /* matching costs a power of their number */
            return "it has more than two '**'";
        at += n;
        if (*at == '\0')
            return NULL;
    }
}
