/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See json.h. One writer serves both layouts, so that they can't disagree about content or order.
 *
 * jansson's own JSON_SORT_KEYS compares bytes and its numbers depend on printf: neither is RFC 8785's.
 */
#include "base/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/utf8.h"

enum { MAX_DEPTH = 2048 }; /* jansson's parser has the same limit */

#define MAX_INTEGER ((json_int_t)1 << 53)

typedef struct writer {
    tctl_buf *out;
    tctl_error *err;
    bool pretty;
} writer;

static tctl_status write_value(writer *w, const json_t *value, unsigned depth);

/* RFC 8785, 3.2.2.2: the two-character escapes, \u00xx for other control characters, all else as it is. */
static void write_control(tctl_buf *out, unsigned char c)
{
    static const char letters[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    if (c < sizeof letters && letters[c])
        tctl_buf_add_format(out, "\\%c", letters[c]);
    else
        tctl_buf_add_format(out, "\\u%04x", (unsigned)c);
}

static tctl_status write_string(writer *w, const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    tctl_buf_add_char(w->out, '"');
    size_t plain = 0; /* begin of what has not been copied yet */
    for (size_t i = 0; i < size;) {
        uint32_t code;
        size_t n = tctl_utf8_decode(text + i, size - i, &code);
        if (n == 0)
            return tctl_fail(w->err, TCTL_EINVAL, "text for JSON is not UTF-8: byte 0x%02x at offset %zu",
                             p[i], i);
        if (p[i] < 0x20 || p[i] == '"' || p[i] == '\\') {
            tctl_buf_add(w->out, text + plain, i - plain);
            if (p[i] < 0x20)
                write_control(w->out, p[i]);
            else
                tctl_buf_add_format(w->out, "\\%c", p[i]);
            plain = i + 1;
        }
        i += n;
    }
    tctl_buf_add(w->out, text + plain, size - plain);
    tctl_buf_add_char(w->out, '"');
    return TCTL_OK;
}

static void new_line(writer *w, unsigned depth)
{
    if (!w->pretty)
        return;
    tctl_buf_add_char(w->out, '\n');
    for (unsigned i = 0; i < depth; i++)
        tctl_buf_add(w->out, "  ", 2);
}

/*
 * Order of UTF-16 code units, on UTF-8 text. It is the order of the bytes but for one case: a character above
 * U+FFFF (lead byte 0xf0 and up) is a pair of surrogates, 0xd800 and up, and so comes before U+E000 to U+FFFF
 * (lead bytes 0xee and 0xef).
 */
static int compare_utf16(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
    if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
        return x >= 0xf0 ? -1 : 1;
    return (x > y) - (x < y);
}

static int compare_keys(const void *a, const void *b)
{
    return compare_utf16(*(const char *const *)a, *(const char *const *)b);
}

static tctl_status write_members(writer *w, const json_t *object, const char **keys, size_t n, unsigned depth)
{
    tctl_status status = TCTL_OK;
    for (size_t i = 0; i < n && status == TCTL_OK; i++) {
        if (i > 0)
            tctl_buf_add_char(w->out, ',');
        new_line(w, depth + 1);
        status = write_string(w, keys[i], strlen(keys[i]));
        tctl_buf_add_text(w->out, w->pretty ? ": " : ":");
        if (status == TCTL_OK)
            status = write_value(w, json_object_get(object, keys[i]), depth + 1);
    }
    return status;
}

static tctl_status write_object(writer *w, const json_t *object, unsigned depth)
{
    size_t n = json_object_size(object), i = 0;
    if (n == 0) {
        tctl_buf_add_text(w->out, "{}");
        return TCTL_OK;
    }
    const char **keys = calloc(n, sizeof *keys);
    if (!keys)
        return tctl_fail_memory(w->err, n * sizeof *keys);
    /* jansson's iterators take a non-const object but do not change it. */
    json_t *walked;
    memcpy(&walked, &object, sizeof walked);
    for (void *it = json_object_iter(walked); it && i < n; it = json_object_iter_next(walked, it))
        keys[i++] = json_object_iter_key(it);
    qsort(keys, n, sizeof *keys, compare_keys);
    tctl_buf_add_char(w->out, '{');
    tctl_status status = write_members(w, object, keys, n, depth);
    new_line(w, depth);
    tctl_buf_add_char(w->out, '}');
    free(keys);
    return status;
}

static tctl_status write_array(writer *w, const json_t *array, unsigned depth)
{
    size_t n = json_array_size(array);
    tctl_status status = TCTL_OK;
    tctl_buf_add_char(w->out, '[');
    for (size_t i = 0; i < n && status == TCTL_OK; i++) {
        if (i > 0)
            tctl_buf_add_char(w->out, ',');
        new_line(w, depth + 1);
        status = write_value(w, json_array_get(array, i), depth + 1);
    }
    if (n > 0)
        new_line(w, depth);
    tctl_buf_add_char(w->out, ']');
    return status;
}

/*
 * Beyond 2^53 only those integers are written that are what a double prints: they are reals that were read back (from
 * 2^53 to 1e21 ECMAScript prints no exponent). All others would come out of another reader changed.
 */
static tctl_status write_integer(writer *w, json_int_t value)
{
    char exact[24], real[TCTL_REAL_TEXT];
    snprintf(exact, sizeof exact, "%" JSON_INTEGER_FORMAT, value);
    if (value > MAX_INTEGER || value < -MAX_INTEGER) {
        tctl_format_real((double)value, real);
        if (strcmp(exact, real) != 0)
            return tctl_fail(
                w->err, TCTL_EINVAL,
                "integer %s is beyond 2^53 and would not survive other readers of JSON; put it into a "
                "string",
                exact);
    }
    tctl_buf_add_text(w->out, exact);
    return TCTL_OK;
}

static tctl_status write_real(writer *w, double value)
{
    char text[TCTL_REAL_TEXT];
    if (!isfinite(value))
        return tctl_fail(w->err, TCTL_EINVAL, "a number that is not finite can't be written as JSON");
    tctl_buf_add(w->out, text, tctl_format_real(value, text));
    return TCTL_OK;
}

static tctl_status write_value(writer *w, const json_t *value, unsigned depth)
{
    if (!value)
        return tctl_fail(w->err, TCTL_EINVAL, "a JSON value is missing (out of memory when it was made?)");
    if (depth > MAX_DEPTH)
        return tctl_fail(w->err, TCTL_EINVAL, "JSON is nested more than %d levels deep", MAX_DEPTH);
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return write_object(w, value, depth);
    case JSON_ARRAY:
        return write_array(w, value, depth);
    case JSON_STRING:
        return write_string(w, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
        return write_integer(w, json_integer_value(value));
    case JSON_REAL:
        return write_real(w, json_real_value(value));
    case JSON_TRUE:
        tctl_buf_add_text(w->out, "true");
        return TCTL_OK;
    case JSON_FALSE:
        tctl_buf_add_text(w->out, "false");
        return TCTL_OK;
    default:
        tctl_buf_add_text(w->out, "null");
        return TCTL_OK;
    }
}

static tctl_status finish(const writer *w, tctl_status status)
{
    if (status == TCTL_OK && w->out->broken)
        return tctl_fail_memory(w->err, w->out->size);
    return status;
}

tctl_status tctl_json_canonical(const json_t *value, tctl_buf *ret, tctl_error *err)
{
    writer w = {ret, err, false};
    return finish(&w, write_value(&w, value, 0));
}

tctl_status tctl_json_pretty(const json_t *value, tctl_buf *ret, tctl_error *err)
{
    writer w = {ret, err, true};
    tctl_status status = write_value(&w, value, 0);
    tctl_buf_add_char(ret, '\n');
    return finish(&w, status);
}

/* ---- reading ---------------------------------------------------------------------------------------- */

/* An integer for a real that holds a small one; NULL if it does not, or memory is out. */
static json_t *small_integer(const json_t *value)
{
    double real = json_real_value(value); /* 0 for what is no real */
    bool small = json_is_real(value) && real == floor(real) && fabs(real) <= (double)MAX_INTEGER;
    return small ? json_integer((json_int_t)real) : NULL;
}

/* Makes integers of the reals that hold small ones, everywhere below `value`. */
static void restore_integers(json_t *value)
{
    size_t n = json_array_size(value);
    for (size_t i = 0; i < n; i++) {
        json_t *item = json_array_get(value, i), *integer = small_integer(item);
        if (integer)
            json_array_set_new(value, i, integer);
        else
            restore_integers(item);
    }
    for (void *it = json_object_iter(value); it; it = json_object_iter_next(value, it)) {
        json_t *item = json_object_iter_value(it), *integer = small_integer(item);
        if (integer)
            json_object_iter_set_new(value, it, integer);
        else
            restore_integers(item);
    }
}

tctl_status tctl_json_parse(const char *name, const char *text, size_t size, json_t **ret, tctl_error *err)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    json_error_t e;
    json_t *value = json_loadb(text, size, flags, &e);
    if (!value && json_error_code(&e) == json_error_numeric_overflow) {
        /* A real from 2^63 to 1e21 looks like an integer that jansson can't hold. */
        value = json_loadb(text, size, flags | JSON_DECODE_INT_AS_REAL, &e);
        restore_integers(value);
    }
    if (!value && json_error_code(&e) == json_error_out_of_memory)
        return tctl_fail_memory(err, size);
    if (!value)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is not JSON, line %d, column %d: %s", name,
                         e.line > 0 ? e.line : 1, e.column > 0 ? e.column : 1, e.text);
    *ret = value;
    return TCTL_OK;
}
