/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where two files part. What is not looked into is compared byte by byte here; compare_leaves.c knows the rest.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/content/compare_leaves.h"
#include "manifest/manifest.h"

enum { READ_BYTES = 256 * 1024 };

typedef struct byte_difference {
    uint64_t first, n_differ;
    bool found;
    int a, b; /* -1: behind the end */
} byte_difference;

static void note(byte_difference *d, uint64_t offset, int a, int b)
{
    if (!d->found) {
        d->found = true;
        d->first = offset;
        d->a = a;
        d->b = b;
    }
    d->n_differ++;
}

static void compare_block(byte_difference *d, uint64_t offset, const unsigned char *a, const unsigned char *b,
                          size_t n)
{
    if (memcmp(a, b, n) == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (a[i] != b[i])
            note(d, offset + i, a[i], b[i]);
    }
}

/* The bytes that only the longer file has all differ. */
static tctl_status add_tail(byte_difference *d, tctl_source *a, tctl_source *b, uint64_t common,
                            tctl_error *err)
{
    tctl_source *longer = a->size > b->size ? a : b;
    unsigned char byte = 0;
    if (longer->size == common)
        return TCTL_OK;
    tctl_status st = tctl_source_read(longer, common, &byte, 1, err);
    if (st != TCTL_OK)
        return st;
    note(d, common, longer == a ? byte : -1, longer == b ? byte : -1);
    d->n_differ += longer->size - common - 1;
    return TCTL_OK;
}

static tctl_status compare_bytes(tctl_source *a, tctl_source *b, byte_difference *d, tctl_error *err)
{
    uint64_t common = a->size < b->size ? a->size : b->size;
    unsigned char *scratch = malloc(2 * (size_t)READ_BYTES);
    if (scratch == NULL)
        return tctl_fail_memory(err, 2 * (size_t)READ_BYTES);
    tctl_status st = TCTL_OK;
    for (uint64_t at = 0; at < common && st == TCTL_OK;) {
        size_t n = common - at < READ_BYTES ? (size_t)(common - at) : READ_BYTES;
        st = tctl_source_read(a, at, scratch, n, err);
        if (st == TCTL_OK)
            st = tctl_source_read(b, at, scratch + READ_BYTES, n, err);
        if (st == TCTL_OK)
            compare_block(d, at, scratch, scratch + READ_BYTES, n);
        at += n;
    }
    free(scratch);
    return st == TCTL_OK ? add_tail(d, a, b, common, err) : st;
}

static json_t *byte_json(int byte)
{
    return byte < 0 ? json_null() : json_sprintf("%02x", (unsigned)byte);
}

static json_t *bytes_json(const byte_difference *d, const tctl_source *a)
{
    return json_pack("{s:s, s:n, s:n, s:n, s:[I], s:o, s:o, s:n, s:n, s:n, s:o, s:o, s:i}", "kind", "bytes",
                     "format", "name", "dtype", "element", (json_int_t)d->first, "a", byte_json(d->a), "b",
                     byte_json(d->b), "value_a", "value_b", "ulps", "n_differ", tctl_json_count(d->n_differ),
                     "n_elements", tctl_json_count(a->size), "others", 0);
}

/* Like tctl_walk_look, but a file that is damaged or costs too much has no format. */
static tctl_status look(tctl_walk *w, tctl_source *s, tctl_looked *ret, tctl_error *err)
{
    tctl_status st = tctl_walk_begin(w, s->size, err);
    if (st == TCTL_OK)
        st = tctl_walk_look(w, s, ret, err);
    if (st == TCTL_EFORMAT || st == TCTL_EUNSUPPORTED) {
        ret->format = NULL;
        st = TCTL_OK;
    }
    return st;
}

static json_t *format_json(const char *a, const char *b)
{
    return json_pack("{s:s, s:s?, s:n, s:n, s:n, s:s?, s:s?, s:n, s:n, s:n, s:n, s:n, s:i}", "kind", "format",
                     "format", a, "name", "dtype", "element", "a", a, "b", b, "value_a", "value_b", "ulps",
                     "n_differ", "n_elements", "others", 0);
}

static tctl_status compare_as_bytes(tctl_source *a, tctl_source *b, json_t **ret, tctl_error *err)
{
    byte_difference d = {0};
    tctl_status st = compare_bytes(a, b, &d, err);
    if (st != TCTL_OK || !d.found)
        return st;
    *ret = bytes_json(&d, a);
    return *ret == NULL ? tctl_fail_memory(err, 0) : TCTL_OK;
}

static tctl_status compare(tctl_source *a, tctl_source *b, const tctl_content_rules *rules, json_t **ret,
                           tctl_error *err)
{
    tctl_walk x = {.rules = rules, .keep = true}, y = {.rules = rules, .keep = true};
    tctl_looked in_a = {0}, in_b = {0};
    bool known = false;
    tctl_status st = look(&x, a, &in_a, err);
    if (st == TCTL_OK)
        st = look(&y, b, &in_b, err);
    if (st == TCTL_OK) {
        const char *f = in_a.format, *g = in_b.format;
        known = f != NULL && g != NULL && strcmp(f, g) == 0;
        if (known && !tctl_sha256_equal(&in_a.sha256, &in_b.sha256))
            st = tctl_compare_leaves(&x, &y, f, ret, err);
        if (known && st == TCTL_OK &&
            *ret == NULL) /* what has no leaf of its own: an empty member's format */
            known = tctl_sha256_equal(&in_a.sha256, &in_b.sha256);
        else if (!known && f != NULL && g != NULL && (*ret = format_json(f, g)) == NULL)
            st = tctl_fail_memory(err, 0);
    }
    if (st == TCTL_OK && !known && *ret == NULL)
        st = compare_as_bytes(a, b, ret, err);
    tctl_walk_end(&x);
    tctl_walk_end(&y);
    return st;
}

tctl_status tctl_content_compare(tctl_arena *arena, const char *path_a, const char *path_b,
                                 const tctl_content_rules *rules, json_t **ret, tctl_error *err)
{
    tctl_source *a = NULL, *b = NULL;
    json_t *found = NULL;
    tctl_status st = tctl_source_open(arena, path_a, &a, err);
    if (st == TCTL_OK)
        st = tctl_source_open(arena, path_b, &b, err);
    if (st == TCTL_OK)
        st = compare(a, b, rules, &found, err);
    if (st == TCTL_OK)
        *ret = found;
    tctl_source_close(a);
    tctl_source_close(b);
    return st;
}
