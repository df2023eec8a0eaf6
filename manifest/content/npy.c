/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy's .npy, versions 1 to 3 (numpy/lib/format.py documents it): a magic, the length of a header, a header that is
 * the text of a Python dict with 'descr', 'fortran_order' and 'shape', and the elements.
 *
 * Byte order and memory order do not count: elements are taken little-endian and in C order. A structured type is one
 * element of bytes, byte orders included in its name; an array of objects is a pickle, which counts as bytes. Several
 * arrays behind each other, as np.save makes them in an open file, are listed one by one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"
#include "manifest/content/walk.h"

enum { HEADER_LIMIT = 1 << 20, TYPE_LIMIT = 4096 };

typedef struct header {
    char *text; /* from malloc, NUL-terminated, no NUL inside */
    size_t size, at;
    uint64_t data; /* offset of the elements */
    char descr[TYPE_LIMIT];
    bool is_list; /* descr is that of a structured type */
    bool fortran;
    uint32_t rank;
    uint64_t shape[TCTL_ARRAY_RANK], strides[TCTL_ARRAY_RANK];
} header;

static tctl_status damaged(const tctl_source *s, uint64_t offset, const char *why, tctl_error *err)
{
    return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged: the array at byte %" PRIu64 " has %s", s->name,
                     offset, why);
}

static tctl_status read_header(tctl_source *s, uint64_t offset, header *h, tctl_error *err)
{
    unsigned char start[12];
    tctl_status st = tctl_source_read(s, offset, start, 10, err);
    uint64_t before = 10;
    if (st == TCTL_OK && start[6] > 1) {
        before = 12;
        st = tctl_source_read(s, offset, start, 12, err);
    }
    if (st != TCTL_OK)
        return st;
    if (start[6] < 1 || start[6] > 3)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' is a .npy file of version %u", s->name,
                         (unsigned)start[6]);
    h->size = before == 10 ? (size_t)start[8] | (size_t)start[9] << 8 : tctl_get_u32(start + 8);
    if (h->size > HEADER_LIMIT)
        return damaged(s, offset, "too long a header", err);
    h->text = malloc(h->size + 1);
    if (h->text == NULL)
        return tctl_fail_memory(err, h->size + 1);
    h->text[h->size] = '\0';
    h->at = 0;
    h->data = offset + before + h->size;
    st = tctl_source_read(s, offset + before, h->text, h->size, err);
    if (st == TCTL_OK && strlen(h->text) != h->size)
        st = damaged(s, offset, "a zero byte in its header", err);
    return st;
}

/* ---- the dict ------------------------------------------------------------------------------------------------ */

static void skip_blanks(header *h)
{
    h->at += strspn(h->text + h->at, " \n\t\r");
}

static bool take(header *h, char c)
{
    skip_blanks(h);
    if (h->text[h->at] != c)
        return false;
    h->at++;
    return true;
}

/* A quoted text without escapes. */
static bool take_text(header *h, char *out, size_t room)
{
    skip_blanks(h);
    char quote = h->text[h->at];
    if (quote != '\'' && quote != '"')
        return false;
    const char *from = h->text + h->at + 1, *to = strchr(from, quote);
    if (to == NULL || (size_t)(to - from) >= room || memchr(from, '\\', (size_t)(to - from)) != NULL)
        return false;
    memcpy(out, from, (size_t)(to - from));
    out[to - from] = '\0';
    h->at = (size_t)(to - h->text) + 1;
    return true;
}

/* A bracketed list with all that is in it, blanks outside of quotes left out. */
static bool take_list(header *h, char *out, size_t room)
{
    size_t n = 0, depth = 0;
    char quote = '\0';
    skip_blanks(h);
    for (char c; (c = h->text[h->at]) != '\0'; h->at++) {
        if (quote == '\0' && (c == ' ' || c == '\n' || c == '\t'))
            continue;
        if (n + 1 >= room)
            return false;
        out[n++] = c;
        if (quote != '\0')
            quote = c == quote ? '\0' : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == '[' || c == '(')
            depth++;
        else if ((c == ']' || c == ')') && --depth == 0)
            break;
        else if (depth == 0)
            return false;
    }
    out[n] = '\0';
    return take(h, ']');
}

static bool take_descr(header *h)
{
    skip_blanks(h);
    h->is_list = h->text[h->at] == '[';
    return h->is_list ? take_list(h, h->descr, sizeof h->descr) : take_text(h, h->descr, sizeof h->descr);
}

static bool take_bool(header *h, bool *ret)
{
    skip_blanks(h);
    *ret = strncmp(h->text + h->at, "True", 4) == 0;
    if (!*ret && strncmp(h->text + h->at, "False", 5) != 0)
        return false;
    h->at += *ret ? 4 : 5;
    return true;
}

/* Python 2 wrote "3L". */
static bool take_shape(header *h)
{
    h->rank = 0;
    if (!take(h, '('))
        return false;
    while (!take(h, ')')) {
        size_t n = strspn(h->text + h->at, "0123456789");
        if (h->rank == TCTL_ARRAY_RANK || !tctl_parse_uint(h->text + h->at, n, &h->shape[h->rank]))
            return false;
        h->rank++;
        h->at += n;
        if (h->text[h->at] == 'L')
            h->at++;
        if (take(h, ','))
            continue;
        if (!take(h, ')'))
            return false;
        break;
    }
    return true;
}

static bool take_dict(header *h)
{
    char key[32];
    unsigned seen = 0;
    if (!take(h, '{'))
        return false;
    while (!take(h, '}')) {
        if (!take_text(h, key, sizeof key) || !take(h, ':'))
            return false;
        unsigned bit = strcmp(key, "descr") == 0           ? 1
                       : strcmp(key, "fortran_order") == 0 ? 2
                       : strcmp(key, "shape") == 0         ? 4
                                                           : 0;
        bool fine = bit == 1   ? take_descr(h)
                    : bit == 2 ? take_bool(h, &h->fortran)
                               : bit == 4 && take_shape(h);
        if (!fine || (seen & bit) != 0)
            return false;
        seen |= bit;
        if (take(h, ','))
            continue;
        if (!take(h, '}'))
            return false;
        break;
    }
    skip_blanks(h);
    return seen == 7 && h->at == h->size;
}

/* ---- types --------------------------------------------------------------------------------------------------- */

typedef struct type {
    char name[TYPE_LIMIT + 8];
    uint64_t bytes;
    uint32_t swap;
} type;

/* '<f4', '|b1', '>U10', '<M8[ns]'; false for an array of objects and for what is no type of fixed size. */
static bool read_type(const char *descr, type *ret)
{
    const char *at = descr;
    bool big = *at == '>';
    if (*at != '\0' && strchr("<>|=", *at) != NULL)
        at++;
    char kind = *at == '\0' ? '\0' : *at++;
    size_t n = strspn(at, "0123456789");
    uint64_t size = 0;
    if (kind == '\0' || strchr("biufcSaUVMm", kind) == NULL || !tctl_parse_uint(at, n, &size) ||
        size > INT32_MAX / 4)
        return false;
    bool number = strchr("iufc", kind) != NULL;
    if (number && size > 32)
        return false;
    if (number && at[n] == '\0')
        snprintf(ret->name, sizeof ret->name, "%c%" PRIu64, kind, 8 * size);
    else
        snprintf(ret->name, sizeof ret->name, "%s", kind == 'b' && size == 1 ? "bool" : at - 1);
    ret->bytes = kind == 'U' ? 4 * size : size;
    ret->swap = 0;
    if (big && (number || kind == 'M' || kind == 'm'))
        ret->swap = (uint32_t)(kind == 'c' ? size / 2 : size);
    else if (big && kind == 'U')
        ret->swap = 4;
    return true;
}

/* A structured type's size is not computed from its fields: numpy pads as it likes. What is there is shared out, which
 * is only possible for the last array of a file. */
static bool share_out(const header *h, uint64_t n_elements, uint64_t rest, type *ret)
{
    snprintf(ret->name, sizeof ret->name, "%s", h->descr);
    ret->swap = 0;
    ret->bytes = n_elements == 0 ? 0 : rest / n_elements;
    return n_elements == 0 ? rest == 0 : rest % n_elements == 0 && ret->bytes <= INT32_MAX;
}

static void set_fortran(header *h, tctl_array *t)
{
    uint64_t stride = 1;
    for (uint32_t i = 0; i < h->rank; i++) {
        h->strides[i] = stride;
        if (t->n_elements > 0) /* the product was checked */
            stride *= h->shape[i];
    }
    t->strides = h->strides;
}

/* An array of objects: its pickle as bytes. */
static tctl_status list_objects(tctl_listing *l, tctl_source *s, const char *name, header *h, tctl_error *err)
{
    uint64_t n = s->size - h->data;
    tctl_array t = {.dtype = "object",
                    .element_bytes = 1,
                    .rank = 1,
                    .shape = &n,
                    .n_elements = n,
                    .source = s,
                    .offset = h->data};
    return tctl_list_tensor(l, name, &t, NULL, " pickled", err);
}

static tctl_status list_array(tctl_listing *l, tctl_source *s, uint64_t offset, const char *name, header *h,
                              uint64_t *ret_end, tctl_error *err)
{
    type ty;
    tctl_array t = {.rank = h->rank, .shape = h->shape, .source = s, .offset = h->data};
    char what[64];
    if (!tctl_shape_elements(h->shape, h->rank, &t.n_elements))
        return damaged(s, offset, "a shape of more elements than can be", err);
    if (!h->is_list && strcmp(h->descr + strspn(h->descr, "<>|="), "O") == 0) {
        *ret_end = s->size;
        return h->data > s->size ? damaged(s, offset, "no data", err) : list_objects(l, s, name, h, err);
    }
    bool fine = h->is_list ? h->data <= s->size && share_out(h, t.n_elements, s->size - h->data, &ty)
                           : read_type(h->descr, &ty);
    if (!fine)
        return h->is_list
                   ? damaged(s, offset, "not the number of bytes that its shape asks for", err)
                   : tctl_fail(err, TCTL_EUNSUPPORTED, "'%s' has elements of type '%s'", s->name, h->descr);
    t.dtype = ty.name;
    t.element_bytes = (uint32_t)ty.bytes;
    t.swap_bytes = ty.swap;
    if (h->fortran)
        set_fortran(h, &t);
    snprintf(what, sizeof what, "the array at byte %" PRIu64, offset); /* the file is in the note */
    tctl_status st = tctl_array_check(&t, s->size, what, err);
    if (st == TCTL_EFORMAT)
        tctl_note(err, "'%s' is cut short or damaged", s->name);
    if (st == TCTL_OK)
        st = tctl_list_tensor(l, name, &t, NULL, "", err);
    *ret_end = h->data + t.n_elements * t.element_bytes;
    return st;
}

tctl_status tctl_list_npy(tctl_listing *l, tctl_source *s, const char **ret_format, tctl_error *err)
{
    tctl_status st = TCTL_OK;
    uint64_t offset = 0;
    header *h = malloc(sizeof *h);
    if (h == NULL)
        return tctl_fail_memory(err, sizeof *h);
    for (uint64_t i = 0; st == TCTL_OK && (i == 0 || offset < s->size); i++) {
        char name[32] = "";
        char magic[6];
        if (i > 0)
            snprintf(name, sizeof name, "[%" PRIu64 "]", i);
        h->text = NULL;
        st = tctl_source_read(s, offset, magic, sizeof magic, err);
        if (st == TCTL_EFORMAT || (st == TCTL_OK && memcmp(magic, "\x93NUMPY", 6) != 0))
            st = tctl_fail(err, TCTL_EUNSUPPORTED,
                           "'%s' has something else behind its arrays, at byte %" PRIu64, s->name, offset);
        if (st == TCTL_OK)
            st = read_header(s, offset, h, err);
        if (st == TCTL_OK && !take_dict(h))
            st = damaged(s, offset, "a header that can't be read", err);
        if (st == TCTL_OK)
            st = list_array(l, s, offset, name, h, &offset, err);
        free(h->text);
    }
    free(h);
    *ret_format = "npy";
    return st;
}
