/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, and several JSON values behind each other (JSON lines): what the spec says has volatile values.
 *
 * Members are listed sorted by name, without those that are volatile. Whole numbers and reals are different things, as
 * the program wrote them; reals count by their value. NaN, Infinity and -Infinity, which are no JSON but what Python's
 * json writes, are read as reals.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_path.h"
#include "manifest/content/walk.h"

#define FILE_LIMIT ((uint64_t)256 << 20)

enum { INLINE_TEXT = 4096 };

/* What stands for a number that JSON does not have: a text that no program writes. */
#define MARK "\\u0001"

typedef struct json_file {
    tctl_listing *listing;
    tctl_error *err;
    const char *const *volatile_paths;
    tctl_buf path;
} json_file;

static tctl_status list_value(json_file *f, const json_t *value, const tctl_json_step *way);

/* ---- numbers that are no JSON ----------------------------------------------------------------------------------- */

static const char *const specials[] = {"NaN", "Infinity", "-Infinity"};
static const uint64_t special_bits[] = {UINT64_C(0x7ff8000000000000), UINT64_C(0x7ff0000000000000),
                                        UINT64_C(0xfff0000000000000)};

static size_t special_at(const char *text, size_t n)
{
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(specials[i]);
        if (n >= size && memcmp(text, specials[i], size) == 0)
            return i;
    }
    return 3;
}

/* A copy with those numbers as marked texts. */
static void mark_specials(const char *text, size_t n, tctl_buf *ret)
{
    bool quoted = false;
    size_t from = 0;
    for (size_t i = 0; i < n; i++) {
        if (quoted && text[i] == '\\') {
            i++;
            continue;
        }
        if (text[i] == '"')
            quoted = !quoted;
        size_t k =
            quoted || (text[i] != 'N' && text[i] != 'I' && text[i] != '-') ? 3 : special_at(text + i, n - i);
        if (k == 3)
            continue;
        tctl_buf_add(ret, text + from, i - from);
        tctl_buf_add_format(ret, "\"" MARK "%s\"", specials[k]);
        i += strlen(specials[k]) - 1;
        from = i + 1;
    }
    tctl_buf_add(ret, text + from, n - from);
}

/* ---- lines -------------------------------------------------------------------------------------------------------- */

static tctl_status line(json_file *f, const char *words)
{
    const char *path = tctl_buf_text(&f->path);
    return path == NULL ? tctl_fail_memory(f->err, f->path.size)
                        : tctl_list_value(f->listing, path, words, f->err);
}

static tctl_status list_text(json_file *f, const char *text)
{
    char words[INLINE_TEXT + 16], hex[TCTL_SHA256_HEX];
    for (size_t i = 0; text[0] == '\1' && i < 3; i++) {
        if (strcmp(text + 1, specials[i]) == 0) {
            snprintf(words, sizeof words, "float %016" PRIx64, special_bits[i]);
            return line(f, words);
        }
    }
    if (strlen(text) <= INLINE_TEXT) {
        snprintf(words, sizeof words, "text %s", text);
        return line(f, words);
    }
    tctl_sha256 digest = tctl_sha256_of(text, strlen(text));
    tctl_sha256_hex(&digest, hex);
    snprintf(words, sizeof words, "text of %zu bytes %s", strlen(text), hex);
    return line(f, words);
}

static tctl_status list_scalar(json_file *f, const json_t *value)
{
    char words[64];
    uint64_t bits;
    double real;
    switch (json_typeof(value)) {
    case JSON_STRING:
        return list_text(f, json_string_value(value));
    case JSON_INTEGER:
        snprintf(words, sizeof words, "int %" JSON_INTEGER_FORMAT, json_integer_value(value));
        return line(f, words);
    case JSON_REAL:
        real = json_real_value(value);
        memcpy(&bits, &real, sizeof bits);
        snprintf(words, sizeof words, "float %016" PRIx64, bits);
        return line(f, words);
    case JSON_TRUE:
        return line(f, "true");
    case JSON_FALSE:
        return line(f, "false");
    default:
        return line(f, "none");
    }
}

static tctl_status list_below(json_file *f, const json_t *value, const tctl_json_step *way)
{
    size_t size = f->path.size;
    tctl_buf_add_format(&f->path, "%s%s", size > 0 ? "/" : "", way->name);
    tctl_status st = f->path.broken ? tctl_fail_memory(f->err, size) : list_value(f, value, way);
    if (!f->path.broken) {
        f->path.size = size;
        f->path.data[size] = '\0';
    }
    return st;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static tctl_status list_object(json_file *f, json_t *object, const tctl_json_step *way)
{
    size_t n = 0;
    const char *key, **keys = calloc(json_object_size(object) + 1, sizeof *keys);
    json_t *value;
    char words[48];
    if (keys == NULL)
        return tctl_fail_memory(f->err, json_object_size(object) * sizeof *keys);
    json_object_foreach(object, key, value)
    {
        const tctl_json_step step = {key, way};
        if (!tctl_json_path_fits(f->volatile_paths, &step))
            keys[n++] = key;
    }
    qsort(keys, n, sizeof *keys, by_text);
    snprintf(words, sizeof words, "dict %zu", n);
    tctl_status st = line(f, words);
    for (size_t i = 0; i < n && st == TCTL_OK; i++) {
        const tctl_json_step step = {keys[i], way};
        st = list_below(f, json_object_get(object, keys[i]), &step);
    }
    free(keys);
    return st;
}

/* A volatile item leaves its place, so that the others keep their index. */
static tctl_status list_array(json_file *f, const json_t *array, const tctl_json_step *way)
{
    char words[48], index[24];
    snprintf(words, sizeof words, "list %zu", json_array_size(array));
    tctl_status st = line(f, words);
    for (size_t i = 0; i < json_array_size(array) && st == TCTL_OK; i++) {
        snprintf(index, sizeof index, "%zu", i);
        const tctl_json_step step = {index, way};
        if (!tctl_json_path_fits(f->volatile_paths, &step))
            st = list_below(f, json_array_get(array, i), &step);
    }
    return st;
}

static tctl_status list_value(json_file *f, const json_t *value, const tctl_json_step *way)
{
    if (json_is_object(value))
        return list_object(f, (json_t *)(uintptr_t)value, way);
    return json_is_array(value) ? list_array(f, value, way) : list_scalar(f, value);
}

/* ---- the file ----------------------------------------------------------------------------------------------------- */

static tctl_status parse_next(const tctl_source *s, const char *text, size_t n, size_t *at, json_t **ret,
                              tctl_error *err)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK;
    json_error_t e;
    *ret = json_loadb(text + *at, n - *at, flags, &e);
    if (*ret == NULL && json_error_code(&e) == json_error_numeric_overflow)
        *ret = json_loadb(text + *at, n - *at, flags | JSON_DECODE_INT_AS_REAL, &e);
    if (*ret == NULL && json_error_code(&e) == json_error_out_of_memory)
        return tctl_fail_memory(err, n - *at);
    if (*ret == NULL) {
        size_t lines = 0;
        for (size_t i = 0; i < *at; i++)
            lines += text[i] == '\n';
        return tctl_fail(err, TCTL_EFORMAT,
                         "'%s' has volatile values in the spec, but is not JSON, line %zu, column %d: %s",
                         s->name, lines + (size_t)(e.line > 0 ? e.line : 1), e.column > 0 ? e.column : 1,
                         e.text);
    }
    *at += (size_t)e.position;
    return TCTL_OK;
}

/* The first value has no name, the others are [1], [2], …. */
static tctl_status list_values(json_file *f, const tctl_source *s, const char *text, size_t n)
{
    tctl_status st = TCTL_OK;
    size_t at = 0;
    for (size_t i = 0; st == TCTL_OK; i++) {
        json_t *value = NULL;
        while (at < n && strchr(" \t\r\n", text[at]) != NULL && text[at] != '\0')
            at++;
        if (i > 0 && at == n)
            break;
        tctl_buf_clear(&f->path);
        tctl_buf_add_text(&f->path, "");
        if (i > 0)
            tctl_buf_add_format(&f->path, "[%zu]", i);
        st = parse_next(s, text, n, &at, &value, f->err);
        if (st == TCTL_OK)
            st = list_value(f, value, NULL);
        json_decref(value);
    }
    return st;
}

tctl_status tctl_list_json(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    json_file f = {
        .listing = l, .err = err, .volatile_paths = l->walk->rules->volatile_paths, .path = TCTL_BUF_INIT};
    tctl_buf marked = TCTL_BUF_INIT;
    if (s->size > FILE_LIMIT)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' is JSON of more than 256 MiB", s->name);
    char *text = malloc((size_t)s->size + 1);
    if (text == NULL)
        return tctl_fail_memory(err, (size_t)s->size);
    tctl_status st = tctl_source_read(s, 0, text, (size_t)s->size, err);
    if (st == TCTL_OK) {
        mark_specials(text, (size_t)s->size, &marked);
        st = marked.broken ? tctl_fail_memory(err, marked.size)
                           : list_values(&f, s, tctl_buf_text(&marked), marked.size);
    }
    free(text);
    tctl_buf_release(&marked);
    tctl_buf_release(&f.path);
    *ret_format = "json";
    return st;
}
