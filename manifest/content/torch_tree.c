/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values that torch.save wrote, as lines: containers with their sizes, then what is in them, in the order of the
 * pickle, which is that of the program's dicts and lists. docs/outputs.md has the words.
 *
 * A value that is shared is listed wherever it stands; one that contains itself ends at the limit of depth.
 */
#include "manifest/content/torch_tree.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DEPTH = 128, TEXT_IN_LINE = 4096 };

static tctl_status list_node(tctl_torch *t, const tctl_pickled *v, tctl_error *err);

static tctl_status line(tctl_torch *t, const char *words, tctl_error *err)
{
    const char *path = tctl_buf_text(&t->path);
    return path == NULL ? tctl_fail_memory(err, t->path.size) : tctl_list_value(t->listing, path, words, err);
}

static tctl_status line_count(tctl_torch *t, const char *word, size_t n, tctl_error *err)
{
    char words[64];
    snprintf(words, sizeof words, "%s %zu", word, n);
    return line(t, words, err);
}

/* ---- names --------------------------------------------------------------------------------------------------- */

/* As in a JSON pointer: '/' and '~' are ~1 and ~0. What could be taken for a key that is no text is in quotes. */
static void add_text_key(tctl_buf *path, const char *text)
{
    size_t n = strlen(text), digits = strspn(text[0] == '-' ? text + 1 : text, "0123456789");
    bool quoted = n == 0 || strchr("(.\"", text[0]) != NULL || digits + (text[0] == '-') == n;
    if (quoted)
        tctl_buf_add_char(path, '"');
    for (; *text != '\0'; text++) {
        if (*text == '/' || *text == '~')
            tctl_buf_add_text(path, *text == '/' ? "~1" : "~0");
        else
            tctl_buf_add_char(path, *text);
    }
    if (quoted)
        tctl_buf_add_char(path, '"');
}

/* False for a key that has no name here. */
static bool add_key(tctl_buf *path, const tctl_pickled *key, unsigned depth)
{
    uint64_t bits;
    switch (key->kind) {
    case TCTL_PICKLE_TEXT:
        if (strlen(key->u.text.bytes) != key->u.text.size || key->u.text.size > TEXT_IN_LINE)
            return false;
        add_text_key(path, key->u.text.bytes);
        return true;
    case TCTL_PICKLE_INT:
        tctl_buf_add_format(path, "%" PRId64, key->u.integer);
        return true;
    case TCTL_PICKLE_BOOL:
        tctl_buf_add_text(path, key->u.integer != 0 ? "(true)" : "(false)");
        return true;
    case TCTL_PICKLE_NONE:
        tctl_buf_add_text(path, "(none)");
        return true;
    case TCTL_PICKLE_FLOAT:
        memcpy(&bits, &key->u.real, sizeof bits);
        tctl_buf_add_format(path, "(float %016" PRIx64 ")", bits);
        return true;
    case TCTL_PICKLE_GLOBAL:
        tctl_buf_add_format(path, "(%s)", key->u.text.bytes);
        return true;
    case TCTL_PICKLE_TUPLE:
        if (depth == 4 || key->u.items.n > 16)
            return false;
        tctl_buf_add_char(path, '(');
        for (size_t i = 0; i < key->u.items.n; i++) {
            tctl_buf_add_char(path, ',');
            if (!add_key(path, key->u.items.of[i], depth + 1))
                return false;
        }
        tctl_buf_add_char(path, ')');
        return true;
    default:
        return false;
    }
}

/* Lists `v` under a name that was added to the path from `size` on. */
static tctl_status list_below(tctl_torch *t, size_t size, const tctl_pickled *v, tctl_error *err)
{
    tctl_status st = t->path.broken ? tctl_fail_memory(err, t->path.size) : list_node(t, v, err);
    if (!t->path.broken) {
        t->path.size = size;
        t->path.data[size] = '\0';
    }
    return st;
}

static tctl_status list_named(tctl_torch *t, const char *name, const tctl_pickled *v, tctl_error *err)
{
    size_t size = t->path.size;
    tctl_buf_add_format(&t->path, "%s%s", size > 0 ? "/" : "", name);
    return list_below(t, size, v, err);
}

static tctl_status list_items(tctl_torch *t, const char *form, tctl_pickled *const *of, size_t n,
                              tctl_error *err)
{
    char name[40];
    tctl_status st = TCTL_OK;
    for (size_t i = 0; i < n && st == TCTL_OK; i++) {
        snprintf(name, sizeof name, form[0] == '(' ? "(%zu)" : "%zu", i);
        st = list_named(t, name, of[i], err);
    }
    return st;
}

static tctl_status list_pairs(tctl_torch *t, tctl_pickled *const *of, size_t n, tctl_error *err)
{
    tctl_status st = TCTL_OK;
    for (size_t i = 0; i + 1 < n && st == TCTL_OK; i += 2) {
        size_t size = t->path.size;
        if (size > 0)
            tctl_buf_add_char(&t->path, '/');
        if (!add_key(&t->path, of[i], 0))
            return tctl_fail(err, TCTL_EUNSUPPORTED,
                             "'%s' has a dict with a key that has no name, in '%.200s'", t->name,
                             tctl_buf_text(&t->path) == NULL ? "" : tctl_buf_text(&t->path));
        st = list_below(t, size, of[i + 1], err);
    }
    return st;
}

/* ---- values -------------------------------------------------------------------------------------------------- */

/* Short text as it is, else by its digest. */
static tctl_status list_text(tctl_torch *t, const char *word, const tctl_pickled *v, tctl_error *err)
{
    char hex[TCTL_SHA256_HEX], words[TEXT_IN_LINE + 16];
    const char *text = v->u.text.bytes;
    size_t n = v->u.text.size;
    if (v->kind == TCTL_PICKLE_TEXT && n <= TEXT_IN_LINE && strlen(text) == n) {
        snprintf(words, sizeof words, "%s %s", word, text);
        return line(t, words, err);
    }
    tctl_sha256 digest = tctl_sha256_of(text, n);
    tctl_sha256_hex(&digest, hex);
    snprintf(words, sizeof words, "%s of %zu bytes %s", word, n, hex);
    return line(t, words, err);
}

static tctl_status list_scalar(tctl_torch *t, const tctl_pickled *v, tctl_error *err)
{
    char words[64];
    uint64_t bits;
    switch (v->kind) {
    case TCTL_PICKLE_NONE:
        return line(t, "none", err);
    case TCTL_PICKLE_BOOL:
        return line(t, v->u.integer != 0 ? "true" : "false", err);
    case TCTL_PICKLE_INT:
        snprintf(words, sizeof words, "int %" PRId64, v->u.integer);
        return line(t, words, err);
    case TCTL_PICKLE_FLOAT:
        memcpy(&bits, &v->u.real, sizeof bits);
        snprintf(words, sizeof words, "float %016" PRIx64, bits);
        return line(t, words, err);
    case TCTL_PICKLE_LONG:
        return list_text(t, "long", v, err);
    case TCTL_PICKLE_TEXT:
        return list_text(t, "text", v, err);
    case TCTL_PICKLE_BYTES:
        return list_text(t, "bytes", v, err);
    default:
        return list_text(t, "global", v, err);
    }
}

static bool is_ordered_dict(const tctl_pickled *v)
{
    return v->callable->kind == TCTL_PICKLE_GLOBAL &&
           strcmp(v->callable->u.text.bytes, "collections OrderedDict") == 0 && v->args->u.items.n == 0 &&
           v->u.items.n == 0;
}

/* Whatever would be called is named and not called. */
static tctl_status list_object(tctl_torch *t, const tctl_pickled *v, tctl_error *err)
{
    bool ordered = is_ordered_dict(v), named = v->callable->kind == TCTL_PICKLE_GLOBAL;
    char words[TEXT_IN_LINE];
    if (ordered)
        snprintf(words, sizeof words, "ordered-dict %zu", v->n_pairs / 2);
    else
        snprintf(words, sizeof words, "object %s %zu %zu %zu", named ? v->callable->u.text.bytes : "?",
                 v->args->u.items.n, v->u.items.n, v->n_pairs / 2);
    tctl_status st = line(t, words, err);
    if (st == TCTL_OK && !named)
        st = list_named(t, ".callable", v->callable, err);
    if (st == TCTL_OK)
        st = list_items(t, "(", v->args->u.items.of, v->args->u.items.n, err);
    if (st == TCTL_OK)
        st = list_items(t, "", v->u.items.of, v->u.items.n, err);
    if (st == TCTL_OK)
        st = list_pairs(t, v->pairs, v->n_pairs, err);
    if (st == TCTL_OK && v->state != NULL)
        st = list_named(t, ".state", v->state, err);
    return st;
}

static tctl_status list_value(tctl_torch *t, const tctl_pickled *v, tctl_error *err)
{
    static const char *const words[] = {
        [TCTL_PICKLE_LIST] = "list", [TCTL_PICKLE_TUPLE] = "tuple", [TCTL_PICKLE_SET] = "set"};
    bool done = false;
    tctl_status st = TCTL_OK;
    switch (v->kind) {
    case TCTL_PICKLE_LIST:
    case TCTL_PICKLE_TUPLE:
    case TCTL_PICKLE_SET:
        st = line_count(t, words[v->kind], v->u.items.n, err);
        return st == TCTL_OK ? list_items(t, "", v->u.items.of, v->u.items.n, err) : st;
    case TCTL_PICKLE_DICT:
        st = line_count(t, "dict", v->u.items.n / 2, err);
        if (st == TCTL_OK)
            st = list_pairs(t, v->u.items.of, v->u.items.n, err);
        return st == TCTL_OK && v->state != NULL ? list_named(t, ".state", v->state, err) : st;
    case TCTL_PICKLE_PERSISTENT:
        st = tctl_torch_list_storage(t, v, &done, err);
        if (st != TCTL_OK || done)
            return st;
        st = line(t, "persistent", err);
        return st == TCTL_OK ? list_named(t, "(id)", v->args, err) : st;
    case TCTL_PICKLE_OBJECT:
        st = tctl_torch_list_tensor(t, v, &done, err);
        return st != TCTL_OK || done ? st : list_object(t, v, err);
    default:
        return list_scalar(t, v, err);
    }
}

static tctl_status list_node(tctl_torch *t, const tctl_pickled *v, tctl_error *err)
{
    if (t->depth == MAX_DEPTH)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has values nested too deeply", t->name);
    t->depth++;
    tctl_status st = list_value(t, v, err);
    t->depth--;
    return st;
}

tctl_status tctl_torch_list_tree(tctl_torch *t, const tctl_pickled *root, tctl_error *err)
{
    tctl_buf_add_text(&t->path, ""); /* so that it is there */
    return list_node(t, root, err);
}
