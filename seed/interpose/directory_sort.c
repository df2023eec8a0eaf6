/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A radix sort on eight bytes at a time, behind what all names have in common: "image-000001.png" differs from its
 * neighbours within eight bytes, so most folders need one round, in which every byte that is the same in all keys
 * is skipped. Few names are sorted by insertion.
 */
#include "seed/interpose/directory_sort.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 24, KEY = 8 };

typedef struct names {
    const char *bytes;
    size_t name;
} names;

static const char *name_of(const names *s, const tctl_sort_item *item)
{
    return s->bytes + item->at + s->name;
}

static void insert_sort(const names *s, tctl_sort_item *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        tctl_sort_item one = items[i];
        size_t at = i;
        for (; at > 0 && strcmp(name_of(s, &items[at - 1]), name_of(s, &one)) > 0; at--)
            items[at] = items[at - 1];
        items[at] = one;
    }
}

/* How many bytes from `from` on are the same in all names. */
static size_t common(const names *s, const tctl_sort_item *items, size_t n, size_t from)
{
    const char *first = name_of(s, &items[0]) + from;
    size_t length = strlen(first);
    for (size_t i = 1; i < n && length > 0; i++) {
        const char *other = name_of(s, &items[i]) + from;
        size_t k = 0;
        while (k < length && other[k] == first[k])
            k++;
        length = k;
    }
    return length;
}

/* The next KEY bytes of a name, the first one on top; zeros behind its end. */
static uint64_t key_at(const char *text)
{
    uint64_t key = 0;
    for (unsigned i = 0; i < KEY; i++) {
        key = key << 8 | (unsigned char)*text;
        text += *text != '\0';
    }
    return key;
}

/* The sorted items are in the array that is returned. */
static tctl_sort_item *radix(tctl_sort_item *from, tctl_sort_item *to, size_t n)
{
    uint64_t all = from[0].key, differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= from[i].key ^ all;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t count[257] = {0};
        if ((differ >> shift & 255) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            count[(from[i].key >> shift & 255) + 1]++;
        for (size_t b = 1; b < 256; b++)
            count[b] += count[b - 1];
        for (size_t i = 0; i < n; i++)
            to[count[from[i].key >> shift & 255]++] = from[i];
        tctl_sort_item *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Names are at most 255 bytes long, so this is at most 32 deep. */
static void sort_from(const names *s, tctl_sort_item *items, tctl_sort_item *spare, size_t n, size_t from)
{
    if (n <= FEW) {
        insert_sort(s, items, n);
        return;
    }
    from += common(s, items, n, from);
    for (size_t i = 0; i < n; i++)
        items[i].key = key_at(name_of(s, &items[i]) + from);
    if (radix(items, spare, n) != items)
        memcpy(items, spare, n * sizeof *items);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && items[end].key == items[begin].key;)
            end++;
        if (end - begin > 1 && (items[begin].key & 255) != 0) /* else the names end here, and are one */
            sort_from(s, items + begin, spare, end - begin, from + KEY);
    }
}

bool tctl_sort_names(const char *bytes, size_t name, tctl_sort_item *items, size_t n)
{
    const names s = {bytes, name};
    tctl_sort_item *spare = NULL;
    if (n > FEW && (spare = malloc(n * sizeof *spare)) == NULL)
        return false;
    sort_from(&s, items, spare, n, 0);
    free(spare);
    return true;
}
