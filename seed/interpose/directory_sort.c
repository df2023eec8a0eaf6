/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A radix sort on eight bytes at a time, behind what all names have in common: "image-000001.png" differs from its
 * neighbours within eight bytes, so most folders need one round, of which only the bits count that differ. Few names are sorted by insertion.
 */
#include "seed/interpose/directory_sort.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 24, KEY = 8, MOST_BITS = 11, MOST_BUCKETS = 1 << MOST_BITS };

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

/* Eight bytes as a number whose lowest byte is the first. */
static uint64_t load(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* How many bytes from `from` on are the same in all names. */
static size_t common(const names *s, const tctl_sort_item *items, size_t n, size_t from)
{
    const char *first = name_of(s, &items[0]) + from;
    size_t length = strlen(first);
    for (size_t i = 1; i < n && length > 0; i++) {
        const char *other = name_of(s, &items[i]) + from;
        for (size_t k = 0; k < length; k += KEY) {
            uint64_t differ = load(first + k) ^ load(other + k);
            size_t same = differ == 0 ? KEY : (size_t)__builtin_ctzll(differ) / 8;
            if (k + same < length && same < KEY)
                length = k + same;
        }
    }
    return length;
}

/* The next KEY bytes of a name, the first one on top; zeros behind its end. */
static uint64_t key_at(const char *text)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word = load(text), zeros = (word - ones) & ~word & (ones << 7);
    if (zeros != 0) /* the lowest bit of it belongs to the NUL: what lies above that is another entry's */
        word &= ((zeros & (0 - zeros)) >> 7) - 1;
    return __builtin_bswap64(word);
}

/* Leaves out of each byte of the keys the upper bits that are the same in all of them: names with numbers differ
 * in four bits of a digit. The order stays. Returns how many bits there are. */
static unsigned pack(tctl_sort_item *items, size_t n)
{
    uint64_t differ = 0;
    unsigned width[KEY], down[KEY], n_bytes = 0, all = 0;
    for (size_t i = 1; i < n; i++)
        differ |= items[i].key ^ items[0].key;
    for (unsigned b = 0; b < KEY; b++) {
        unsigned byte = (unsigned)(differ >> (56 - 8 * b)) & 255;
        if (byte == 0)
            continue;
        width[n_bytes] = 32 - (unsigned)__builtin_clz(byte);
        down[n_bytes] = 56 - 8 * b;
        all += width[n_bytes++];
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t packed = 0;
        for (unsigned b = 0; b < n_bytes; b++)
            packed = packed << width[b] | (items[i].key >> down[b] & ((1u << width[b]) - 1));
        items[i].key = packed;
    }
    return all;
}

/* By the keys' lowest `bits` bits, from below, without a branch that depends on the data: in a program's own order of
 * names none could be predicted. The sorted items are in the array that is returned; `begins` has MOST_BUCKETS places. */
static tctl_sort_item *radix(tctl_sort_item *from, tctl_sort_item *to, uint32_t *begins, size_t n,
                             unsigned bits)
{
    unsigned digit = n < MOST_BUCKETS / 4 ? 8 : MOST_BITS;
    size_t buckets = (size_t)1 << digit;
    for (unsigned shift = 0; shift < bits; shift += digit) {
        memset(begins, 0, buckets * sizeof *begins);
        for (size_t i = 0; i < n; i++)
            begins[from[i].key >> shift & (buckets - 1)]++;
        uint32_t sum = 0;
        for (size_t d = 0; d < buckets; d++) {
            uint32_t count = begins[d];
            begins[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[begins[from[i].key >> shift & (buckets - 1)]++] = from[i];
        tctl_sort_item *other = from;
        from = to;
        to = other;
    }
    return from;
}

/* Names are at most 255 bytes long, so this is at most 32 deep. */
static void sort_from(const names *s, tctl_sort_item *items, tctl_sort_item *spare, uint32_t *begins,
                      size_t n, size_t from)
{
    if (n <= FEW) {
        insert_sort(s, items, n);
        return;
    }
    from += common(s, items, n, from);
    for (size_t i = 0; i < n; i++)
        items[i].key = key_at(name_of(s, &items[i]) + from);
    if (radix(items, spare, begins, n, pack(items, n)) != items)
        memcpy(items, spare, n * sizeof *items);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && items[end].key == items[begin].key;)
            end++;
        /* Names that end within these bytes are one name. */
        if (end - begin > 1 && strnlen(name_of(s, &items[begin]) + from, KEY) == KEY)
            sort_from(s, items + begin, spare, begins, end - begin, from + KEY);
    }
}

bool tctl_sort_names(const char *bytes, size_t name, tctl_sort_item *items, size_t n)
{
    const names s = {bytes, name};
    if (n >= UINT32_MAX)
        return false;
    tctl_sort_item *spare = n > FEW ? malloc(n * sizeof *spare) : NULL;
    uint32_t *begins = n > FEW ? malloc(MOST_BUCKETS * sizeof *begins) : NULL;
    bool good = n <= FEW || (spare != NULL && begins != NULL);
    if (good)
        sort_from(&s, items, spare, begins, n, 0);
    free(spare);
    free(begins);
    return good;
}
