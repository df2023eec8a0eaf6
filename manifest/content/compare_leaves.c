/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two listings that were kept, leaf by leaf. Leaves belong together by name; of several with one name the first to the
 * first. Digests are compared first, elements only where those differ.
 */
#include "manifest/content/compare_leaves.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "manifest/content/element.h"
#include "manifest/manifest.h"

/* A leaf of `a` and that of `b` with its name; one of them may be NULL. */
typedef struct pair {
    const tctl_leaf *a, *b;
} pair;

typedef struct element_difference {
    uint64_t first, n_differ;
    bool found;
    unsigned char a[64], b[64]; /* its first bytes, in memory order */
} element_difference;

/* ---- which belong together ------------------------------------------------------------------------------------ */

static int by_name(const void *x, const void *y)
{
    const tctl_leaf *a = *(const tctl_leaf *const *)x, *b = *(const tctl_leaf *const *)y;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a > b) - (a < b); /* both in one array: the order in it */
}

static const tctl_leaf **sorted(const tctl_walk *w)
{
    const tctl_leaf **list = calloc(w->n_leaves + 1, sizeof *list);
    for (size_t i = 0; list != NULL && i < w->n_leaves; i++)
        list[i] = &w->leaves[i];
    if (list != NULL)
        qsort(list, w->n_leaves, sizeof *list, by_name);
    return list;
}

static bool same_shape(const tctl_array *a, const tctl_array *b)
{
    return strcmp(a->dtype, b->dtype) == 0 && a->element_bytes == b->element_bytes && a->rank == b->rank &&
           (a->rank == 0 || memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0);
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a == NULL ? "" : a, b == NULL ? "" : b) == 0;
}

static bool same(const tctl_leaf *a, const tctl_leaf *b)
{
    if (a == NULL || b == NULL || a->kind != b->kind)
        return false;
    if (a->kind == TCTL_LEAF_VALUE)
        return same_text(a->text, b->text);
    return same_shape(&a->tensor, &b->tensor) && tctl_sha256_equal(&a->sha256, &b->sha256) &&
           same_text(a->text, b->text);
}

/* Earlier in file a; what only b has comes last, in its order. */
static bool is_before(const pair *x, const pair *y)
{
    if (x->a != NULL && y->a != NULL)
        return x->a < y->a;
    return x->a != NULL || (y->a == NULL && x->b < y->b);
}

static tctl_status find_first(const tctl_walk *a, const tctl_walk *b, pair *ret, size_t *ret_n,
                              tctl_error *err)
{
    const tctl_leaf **x = sorted(a), **y = sorted(b);
    size_t i = 0, k = 0;
    *ret_n = 0;
    while (x != NULL && y != NULL && (i < a->n_leaves || k < b->n_leaves)) {
        int order = i == a->n_leaves ? 1 : k == b->n_leaves ? -1 : strcmp(x[i]->name, y[k]->name);
        pair p = {order <= 0 ? x[i] : NULL, order >= 0 ? y[k] : NULL};
        i += order <= 0;
        k += order >= 0;
        if (same(p.a, p.b))
            continue;
        if ((*ret_n)++ == 0 || is_before(&p, ret))
            *ret = p;
    }
    bool memory = x == NULL || y == NULL;
    free(x);
    free(y);
    return memory ? tctl_fail_memory(err, a->n_leaves * sizeof *x) : TCTL_OK;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

static void compare_block(element_difference *d, uint64_t at, const unsigned char *a, const unsigned char *b,
                          size_t n, size_t size)
{
    if (memcmp(a, b, n * size) == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i * size, b + i * size, size) == 0)
            continue;
        if (!d->found) {
            d->found = true;
            d->first = at + i;
            memcpy(d->a, a + i * size, size < sizeof d->a ? size : sizeof d->a);
            memcpy(d->b, b + i * size, size < sizeof d->b ? size : sizeof d->b);
        }
        d->n_differ++;
    }
}

static tctl_status compare_elements(tctl_walk *a, tctl_walk *b, const pair *p, element_difference *d,
                                    tctl_error *err)
{
    tctl_array_reader x = {0}, y = {0};
    uint64_t at = 0;
    size_t n = 0, m = 0, size = p->a->tensor.element_bytes;
    tctl_status st = tctl_array_begin(&p->a->tensor, &x, err);
    if (st == TCTL_OK)
        st = tctl_array_begin(&p->b->tensor, &y, err);
    while (st == TCTL_OK) {
        st = tctl_array_next(&x, a->scratch, TCTL_SCRATCH_BYTES, &n, err);
        if (st == TCTL_OK)
            st = tctl_array_next(&y, b->scratch, TCTL_SCRATCH_BYTES, &m, err);
        if (st != TCTL_OK || n == 0 || n != m)
            break;
        compare_block(d, at, a->scratch, b->scratch, n, size);
        at += n;
    }
    tctl_array_end(&x);
    tctl_array_end(&y);
    return st;
}

static json_t *index_json(const tctl_array *t, uint64_t element)
{
    json_t *list = json_array();
    for (uint32_t i = t->rank; i-- > 0; element /= t->shape[i])
        json_array_insert_new(list, 0, json_integer((json_int_t)(element % t->shape[i])));
    return list;
}

static json_t *bits_json(const void *bytes, size_t size)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_element_bits(bytes, size, &text);
    json_t *value = tctl_buf_text(&text) == NULL ? NULL : json_string(tctl_buf_text(&text));
    tctl_buf_release(&text);
    return value;
}

static json_t *value_json(const char *dtype, const void *bytes, size_t size)
{
    tctl_buf text = TCTL_BUF_INIT;
    bool has = tctl_element_value(dtype, bytes, size, &text) && tctl_buf_text(&text) != NULL;
    json_t *value = has ? json_string(tctl_buf_text(&text)) : json_null();
    tctl_buf_release(&text);
    return value;
}

static json_t *ulps_json(const char *dtype, const void *a, const void *b, size_t size)
{
    uint64_t ulps = 0;
    return tctl_element_ulps(dtype, a, b, size, &ulps) ? tctl_json_count(ulps) : json_null();
}

static json_t *element_json(const pair *p, const element_difference *d)
{
    const tctl_array *t = &p->a->tensor;
    size_t size = t->element_bytes < sizeof d->a ? t->element_bytes : sizeof d->a;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
                     p->a->kind == TCTL_LEAF_BYTES ? "bytes" : "tensor", "dtype", t->dtype, "element",
                     index_json(t, d->first), "a", bits_json(d->a, size), "b", bits_json(d->b, size),
                     "value_a", value_json(t->dtype, d->a, size), "value_b", value_json(t->dtype, d->b, size),
                     "ulps", ulps_json(t->dtype, d->a, d->b, size), "n_differ", tctl_json_count(d->n_differ),
                     "n_elements", tctl_json_count(t->n_elements));
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* "float 3fd0000000000000" and "float32 3e800000": the bits, as they would lie in memory. */
static const char *float_word(const char *words, unsigned char out[8])
{
    char hex[24];
    uint64_t bits = 0;
    bool narrow = strncmp(words, "float32 ", 8) == 0;
    if (!narrow && strncmp(words, "float ", 6) != 0)
        return NULL;
    int n = snprintf(hex, sizeof hex, "0x%.16s", words + (narrow ? 8 : 6));
    if (n < 0 || !tctl_parse_uint(hex, (size_t)n, &bits))
        return NULL;
    for (unsigned i = 0; i < 8; i++)
        out[i] = (unsigned char)(bits >> (8 * i));
    return narrow ? "f32" : "f64";
}

/* What a leaf is, for people. */
static json_t *leaf_text(const tctl_leaf *leaf)
{
    tctl_buf text = TCTL_BUF_INIT;
    unsigned char bits[8];
    if (leaf == NULL)
        return json_null();
    const char *dtype = leaf->kind == TCTL_LEAF_VALUE ? float_word(leaf->text, bits) : NULL;
    if (dtype != NULL) {
        tctl_element_value(dtype, bits, dtype[1] == '3' ? 4 : 8, &text);
        tctl_buf_add_format(&text, " (%s)", strchr(leaf->text, ' ') + 1);
    } else if (leaf->kind == TCTL_LEAF_VALUE) {
        bool word = strncmp(leaf->text, "int ", 4) == 0 || strncmp(leaf->text, "text ", 5) == 0;
        const char *value = strchr(leaf->text, ' ');
        tctl_buf_add_format(&text, "%.200s", word && value != NULL ? value + 1 : leaf->text);
    } else if (leaf->kind == TCTL_LEAF_BYTES) {
        tctl_buf_add_format(&text, "%" PRIu64 " bytes", leaf->tensor.n_elements);
    } else {
        tctl_buf_add_format(&text, "tensor %s [", leaf->tensor.dtype);
        for (uint32_t i = 0; i < leaf->tensor.rank; i++)
            tctl_buf_add_format(&text, "%s%" PRIu64, i > 0 ? ", " : "", leaf->tensor.shape[i]);
        tctl_buf_add_format(&text, "]%s", leaf->text == NULL ? "" : leaf->text);
    }
    const char *words = tctl_buf_text(&text);
    json_t *value = words == NULL ? NULL : json_string(words);
    if (words != NULL && value == NULL) /* a name in it is no UTF-8 */
        value = json_string("(no text)");
    tctl_buf_release(&text);
    return value;
}

static json_t *leaf_ulps(const pair *p)
{
    unsigned char x[8], y[8];
    if (p->a == NULL || p->b == NULL || p->a->kind != TCTL_LEAF_VALUE || p->b->kind != TCTL_LEAF_VALUE)
        return json_null();
    const char *a = float_word(p->a->text, x), *b = float_word(p->b->text, y);
    return a != NULL && b != NULL && strcmp(a, b) == 0 ? ulps_json(a, x, y, a[1] == '3' ? 4 : 8)
                                                       : json_null();
}

static json_t *value_difference(const pair *p)
{
    bool values =
        p->a != NULL && p->b != NULL && p->a->kind == TCTL_LEAF_VALUE && p->b->kind == TCTL_LEAF_VALUE;
    return json_pack("{s:s, s:n, s:n, s:o, s:o, s:n, s:n, s:o, s:n, s:n}", "kind",
                     values ? "value" : "structure", "dtype", "element", "a", leaf_text(p->a), "b",
                     leaf_text(p->b), "value_a", "value_b", "ulps", leaf_ulps(p), "n_differ", "n_elements");
}

tctl_status tctl_compare_leaves(tctl_walk *a, tctl_walk *b, const char *format, json_t **ret, tctl_error *err)
{
    pair p = {NULL, NULL};
    size_t n = 0;
    element_difference d = {0};
    json_t *found;
    *ret = NULL;
    tctl_status st = find_first(a, b, &p, &n, err);
    const tctl_leaf *named = p.a != NULL ? p.a : p.b;
    if (st != TCTL_OK || named == NULL)
        return st;
    if (p.a != NULL && p.b != NULL && p.a->kind == p.b->kind && p.a->kind != TCTL_LEAF_VALUE &&
        same_shape(&p.a->tensor, &p.b->tensor))
        st = compare_elements(a, b, &p, &d, err);
    if (st != TCTL_OK)
        return st;
    found = d.found ? element_json(&p, &d) : value_difference(&p);
    if (found == NULL)
        return tctl_fail_memory(err, 0);
    json_t *name = json_string(named->name);
    if (name == NULL) /* no UTF-8 */
        name = json_string("?");
    int bad = json_object_set_new(found, "name", name) != 0;
    bad = bad || json_object_set_new(found, "format", json_string(format)) != 0;
    bad = bad || json_object_set_new(found, "others", json_integer((json_int_t)(n - 1))) != 0;
    if (bad) {
        json_decref(found);
        return tctl_fail_memory(err, 0);
    }
    *ret = found;
    return TCTL_OK;
}
