/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing what two runs recorded.
 */
#include "manifest/compare.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "manifest/manifest.h"
#include "manifest/trace.h"

/* ---- traces -------------------------------------------------------------------------------------------- */

static json_t *value_json(int32_t kind, tctl_trace_value v)
{
    if (kind == TCTL_TRACE_F32)
        return json_sprintf("%08" PRIx32, (uint32_t)v.lo);
    return json_sprintf("%016" PRIx64 "%016" PRIx64, v.hi, v.lo);
}

static json_t *divergence_json(const tctl_divergence *d)
{
    static const char *const kinds[] = {"none", "fields", "value", "length", "steps"};
    bool values = d->kind == TCTL_DIVERGE_VALUE;
    json_t *ulps = json_null();
    if (values && d->field_kind == TCTL_TRACE_F32 && d->ulps != UINT32_MAX)
        ulps = json_integer(d->ulps);
    return json_pack("{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:i}", "kind", kinds[d->kind], "step",
                     tctl_json_count(d->step), "after", d->is_first ? json_null() : tctl_json_count(d->after),
                     "field", d->field, "a", values ? value_json(d->field_kind, d->a) : json_null(), "b",
                     values ? value_json(d->field_kind, d->b) : json_null(), "ulps", ulps, "fields_differ",
                     (int)d->n_fields_differ);
}

tctl_status tctl_compare_traces(tctl_arena *arena, const char *path_a, const char *path_b, json_t **ret,
                                tctl_error *err)
{
    tctl_trace_data *a = NULL, *b = NULL;
    tctl_status st = tctl_trace_read(arena, path_a, &a, err);
    if (st == TCTL_OK)
        st = tctl_trace_read(arena, path_b, &b, err);
    if (st != TCTL_OK)
        return st;
    tctl_divergence d = tctl_trace_compare(a, b);
    *ret = d.kind == TCTL_DIVERGE_NONE ? NULL : divergence_json(&d);
    if (d.kind != TCTL_DIVERGE_NONE && *ret == NULL)
        return tctl_fail_memory(err, 0);
    return TCTL_OK;
}

/* "0.25 (3e800000)" for the bits of a float. */
static void add_float(tctl_buf *ret, const char *bits)
{
    uint64_t u = 0;
    char hex[16], text[TCTL_REAL_TEXT];
    int n = snprintf(hex, sizeof hex, "0x%.8s", bits);
    float f = 0;
    bool finite = n > 0 && tctl_parse_uint(hex, (size_t)n, &u) && (u & 0x7f800000u) != 0x7f800000u;
    if (finite) {
        uint32_t low = (uint32_t)u;
        memcpy(&f, &low, sizeof f);
        tctl_format_real((double)f, text);
    }
    tctl_buf_add_format(ret, "%s (%s)", finite ? text : "not finite", bits);
}

void tctl_divergence_explain(const json_t *divergence, tctl_buf *ret)
{
    const char *kind = json_string_value(json_object_get(divergence, "kind"));
    const char *step = json_string_value(json_object_get(divergence, "step"));
    const char *field = json_string_value(json_object_get(divergence, "field"));
    const char *a = json_string_value(json_object_get(divergence, "a"));
    const char *b = json_string_value(json_object_get(divergence, "b"));
    const json_t *ulps = json_object_get(divergence, "ulps");
    if (kind != NULL && strcmp(kind, "value") == 0 && a != NULL && b != NULL && step != NULL) {
        tctl_buf_add_format(ret, "step %s, field '%s': ", step, field == NULL ? "?" : field);
        if (strlen(a) == 8) {
            add_float(ret, a);
            tctl_buf_add_text(ret, " became ");
            add_float(ret, b);
            if (json_is_integer(ulps))
                tctl_buf_add_format(ret, ", %" JSON_INTEGER_FORMAT " ULPs apart", json_integer_value(ulps));
        } else {
            tctl_buf_add_format(ret, "digest %s became %s", a, b);
        }
    } else if (kind != NULL && strcmp(kind, "gone") == 0) {
        tctl_buf_add_text(ret, "there is no trace now");
    } else if (kind != NULL && strcmp(kind, "new") == 0) {
        tctl_buf_add_text(ret, "there is a trace now, where there was none");
    } else if (kind != NULL && strcmp(kind, "fields") == 0) {
        tctl_buf_add_text(ret, "the traces do not have the same fields");
    } else if (kind != NULL && strcmp(kind, "length") == 0) {
        tctl_buf_add_format(ret, "one trace ends after step %s, the other goes on",
                            step == NULL ? "?" : step);
    } else {
        tctl_buf_add_format(ret, "step %s is in one trace only", step == NULL ? "?" : step);
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

typedef struct walk {
    json_t *found;
    size_t limit;
} walk;

static void walk_values(walk *w, const char *path, const json_t *a, const json_t *b);

static void report(walk *w, const char *path, const json_t *a, const json_t *b)
{
    if (json_array_size(w->found) >= w->limit)
        return;
    json_t *none = json_null();
    json_array_append_new(w->found, json_pack("{s:s, s:O, s:O}", "path", path, "a", a == NULL ? none : a, "b",
                                              b == NULL ? none : b));
}

static void walk_member(walk *w, const char *path, const char *key, const json_t *a, const json_t *b)
{
    tctl_buf below = TCTL_BUF_INIT;
    tctl_buf_add_format(&below, "%s%s%s", path, path[0] != '\0' && key[0] != '[' ? "." : "", key);
    if (tctl_buf_text(&below) != NULL)
        walk_values(w, tctl_buf_text(&below), a, b);
    tctl_buf_release(&below);
}

static void walk_objects(walk *w, const char *path, const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)a, key, value)
        walk_member(w, path, key, value, json_object_get(b, key));
    json_object_foreach((json_t *)(uintptr_t)b, key, value)
    {
        if (json_object_get(a, key) == NULL)
            walk_member(w, path, key, NULL, value);
    }
}

/* What an item of a list is known by; NULL if only by its place. */
static const char *item_key(const json_t *item)
{
    const char *key = json_string_value(json_object_get(item, "path"));
    return key != NULL ? key : json_string_value(json_object_get(item, "name"));
}

/* {key: item}, or NULL if an item has no key or two have the same one. */
static json_t *by_key(const json_t *list)
{
    json_t *map = json_object();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *key = item_key(item);
        if (key == NULL || json_object_get(map, key) != NULL || json_object_set(map, key, item) != 0) {
            json_decref(map);
            return NULL;
        }
    }
    return map;
}

static void walk_lists(walk *w, const char *path, const json_t *a, const json_t *b)
{
    json_t *map_a = by_key(a), *map_b = by_key(b);
    if (map_a != NULL && map_b != NULL) {
        walk_objects(w, path, map_a, map_b);
    } else {
        size_t n_a = json_array_size(a), n_b = json_array_size(b);
        for (size_t i = 0; i < (n_a > n_b ? n_a : n_b); i++) {
            char key[32];
            snprintf(key, sizeof key, "[%zu]", i);
            walk_member(w, path, key, json_array_get(a, i), json_array_get(b, i));
        }
    }
    json_decref(map_a);
    json_decref(map_b);
}

static void walk_values(walk *w, const char *path, const json_t *a, const json_t *b)
{
    if (json_array_size(w->found) >= w->limit || json_equal(a, b))
        return;
    if (json_is_object(a) && json_is_object(b))
        walk_objects(w, path, a, b);
    else if (json_is_array(a) && json_is_array(b))
        walk_lists(w, path, a, b);
    else
        report(w, path, a, b);
}

json_t *tctl_compare_json(const json_t *a, const json_t *b, size_t limit)
{
    walk w = {.found = json_array(), .limit = limit};
    walk_values(&w, "", a, b);
    return w.found;
}

/* ---- outputs ------------------------------------------------------------------------------------------- */

static bool same_member(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    return x == y || json_equal(x, y) != 0;
}

static bool same_bytes(const json_t *a, const json_t *b)
{
    return same_member(a, b, "bytes") && same_member(a, b, "sha256");
}

static bool same_output(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "content"), *y = json_object_get(b, "content");
    if (!same_member(a, b, "type"))
        return false;
    if (x == NULL || y == NULL || !same_member(x, y, "format"))
        return same_bytes(a, b);
    return same_member(x, y, "sha256") && same_member(x, y, "volatile");
}

/* {what it is known by: output}, of those whose path is not in `others`. */
static json_t *by_alias(const json_t *list, const json_t *others)
{
    json_t *map = json_object();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *path = json_string_value(json_object_get(item, "path"));
        const char *as = json_string_value(json_object_get(item, "as"));
        if (path != NULL && as != NULL && json_object_get(others, path) == NULL)
            json_object_set(map, as, item);
    }
    return map;
}

/* The outputs of two lists, and which belong together. */
typedef struct output_pairs {
    json_t *a, *b;             /* by path */
    json_t *a_alias, *b_alias; /* of those without a partner by path */
} output_pairs;

static output_pairs pair_outputs(const json_t *was, const json_t *is)
{
    output_pairs p = {by_key(was), by_key(is), NULL, NULL};
    p.a_alias = by_alias(was, p.b);
    p.b_alias = by_alias(is, p.a);
    return p;
}

static void release_pairs(output_pairs *p)
{
    json_decref(p->a);
    json_decref(p->b);
    json_decref(p->a_alias);
    json_decref(p->b_alias);
}

static const json_t *partner(const json_t *output, const json_t *by_path, const json_t *by_as)
{
    const char *path = json_string_value(json_object_get(output, "path"));
    const char *as = json_string_value(json_object_get(output, "as"));
    const json_t *found = path == NULL ? NULL : json_object_get(by_path, path);
    return found == NULL && as != NULL ? json_object_get(by_as, as) : found;
}

json_t *tctl_compare_outputs(const json_t *was, const json_t *is)
{
    json_t *found = json_array();
    output_pairs p = pair_outputs(was, is);
    const char *path;
    json_t *value;
    json_object_foreach(p.a, path, value)
    {
        const json_t *other = partner(value, p.b, p.b_alias);
        if (other != NULL && same_output(value, other))
            continue;
        json_array_append_new(found,
                              json_pack("{s:s, s:s, s:O, s:O?}", "path", path, "change",
                                        other == NULL ? "missing" : "changed", "a", value, "b", other));
    }
    json_object_foreach(p.b, path, value)
    {
        if (partner(value, p.a, p.a_alias) == NULL)
            json_array_append_new(
                found, json_pack("{s:s, s:s, s:n, s:O}", "path", path, "change", "new", "a", "b", value));
    }
    release_pairs(&p);
    return found;
}

json_t *tctl_repacked_outputs(const json_t *was, const json_t *is)
{
    json_t *found = json_array();
    output_pairs p = pair_outputs(was, is);
    const char *path;
    json_t *value;
    json_object_foreach(p.a, path, value)
    {
        const json_t *other = partner(value, p.b, p.b_alias), *content = json_object_get(value, "content");
        if (other == NULL || same_bytes(value, other) || !same_output(value, other))
            continue;
        json_array_append_new(found, json_pack("{s:s, s:O, s:O}", "path", path, "format",
                                               json_object_get(content, "format"), "tensors",
                                               json_object_get(content, "tensors")));
    }
    release_pairs(&p);
    return found;
}
