/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recognising containers, and the lines of their listings. See walk.h.
 *
 * What a file may cost: 1 GiB and 16 times its size of bytes read or inflated for it, 2 Mi lines, four containers in
 * each other. An honest file stays far below, a bomb is not looked into.
 */
#include "manifest/content/walk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "manifest/content/tfrecord.h"

#define SPARE_BYTES ((uint64_t)1 << 30)
#define MAX_LINES   ((uint64_t)2 << 20)

tctl_status tctl_walk_begin(tctl_walk *w, uint64_t file_bytes, tctl_error *err)
{
    w->bytes_left = file_bytes > (UINT64_MAX - SPARE_BYTES) / 16 ? UINT64_MAX : 16 * file_bytes + SPARE_BYTES;
    w->lines_left = w->keep ? TCTL_KEPT_LEAVES : MAX_LINES;
    w->prefix = (tctl_buf)TCTL_BUF_INIT;
    w->line = (tctl_buf)TCTL_BUF_INIT;
    w->scratch = malloc(TCTL_SCRATCH_BYTES);
    w->arena = tctl_arena_create();
    if (w->scratch == NULL || w->arena == NULL)
        return tctl_fail_memory(err, TCTL_SCRATCH_BYTES);
    return tctl_hasher_create(&w->payload, err);
}

void tctl_walk_end(tctl_walk *w)
{
    for (tctl_closer *c = w->closers; c != NULL; c = c->next)
        c->close(c->what);
    tctl_hasher_destroy(w->payload);
    tctl_buf_release(&w->prefix);
    tctl_buf_release(&w->line);
    free(w->scratch);
    free(w->leaves);
    tctl_arena_destroy(w->arena);
    *w = (tctl_walk){0};
}

tctl_status tctl_walk_spend(tctl_walk *w, uint64_t bytes, tctl_error *err)
{
    if (bytes > w->bytes_left)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "reading what it says it holds would cost too much");
    w->bytes_left -= bytes;
    return TCTL_OK;
}

tctl_status tctl_walk_close_later(tctl_walk *w, void (*close)(void *), void *what, tctl_error *err)
{
    tctl_closer *c = tctl_arena_take(w->arena, sizeof *c);
    if (c == NULL)
        return tctl_fail_memory(err, sizeof *c);
    *c = (tctl_closer){close, what, w->closers};
    w->closers = c;
    return TCTL_OK;
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

static void add_escaped(tctl_buf *line, const char *text)
{
    const char *from = text;
    for (;; text++) {
        unsigned char c = (unsigned char)*text;
        if (c >= ' ' && c != '\\' && c != 0x7f)
            continue;
        tctl_buf_add(line, from, (size_t)(text - from));
        if (c == '\0')
            return;
        tctl_buf_add_format(line, "\\x%02x", (unsigned)c);
        from = text + 1;
    }
}

static tctl_status add_line(tctl_listing *l, const char *words, const char *name, tctl_error *err)
{
    tctl_buf *line = &l->walk->line;
    if (l->walk->lines_left == 0)
        return tctl_fail(err, TCTL_EUNSUPPORTED, "it has too many values");
    l->walk->lines_left--;
    tctl_buf_clear(line);
    add_escaped(line, words);
    tctl_buf_add_char(line, '\t');
    add_escaped(line, name);
    tctl_buf_add_char(line, '\n');
    if (line->broken)
        return tctl_fail_memory(err, line->size);
    tctl_hasher_add(l->hasher, line->data, line->size);
    return TCTL_OK;
}

static tctl_status copy_tensor(tctl_arena *arena, tctl_array *t)
{
    if (t->dtype != NULL && (t->dtype = tctl_arena_copy(arena, t->dtype, strlen(t->dtype))) == NULL)
        return TCTL_ENOMEM;
    const uint64_t **members[] = {&t->shape, &t->strides};
    for (size_t i = 0; i < 2; i++) {
        if (*members[i] == NULL || t->rank == 0)
            continue;
        uint64_t *copy = tctl_arena_take_array(arena, t->rank, sizeof *copy);
        if (copy == NULL)
            return TCTL_ENOMEM;
        memcpy(copy, *members[i], t->rank * sizeof *copy);
        *members[i] = copy;
    }
    return TCTL_OK;
}

static tctl_status keep_leaf(tctl_walk *w, const char *name, tctl_leaf leaf, tctl_error *err)
{
    const char *prefix = tctl_buf_text(&w->prefix);
    if (!w->keep)
        return TCTL_OK;
    if (w->n_leaves == w->room) {
        size_t room = w->room == 0 ? 64 : 2 * w->room;
        tctl_leaf *more = realloc(w->leaves, room * sizeof *more);
        if (more == NULL)
            return tctl_fail_memory(err, room * sizeof *more);
        w->leaves = more;
        w->room = room;
    }
    if (name[0] == '\0' && prefix != NULL &&
        w->prefix.size > 0) /* a container of one thing has its container's name */
        leaf.name = tctl_arena_copy(w->arena, prefix, w->prefix.size - 1);
    else if (prefix != NULL)
        leaf.name = tctl_arena_format(w->arena, "%s%s", prefix, name);
    if (leaf.text != NULL)
        leaf.text = tctl_arena_copy(w->arena, leaf.text, strlen(leaf.text));
    if (leaf.name == NULL || copy_tensor(w->arena, &leaf.tensor) != TCTL_OK)
        return tctl_fail_memory(err, strlen(name));
    w->leaves[w->n_leaves++] = leaf;
    return TCTL_OK;
}

tctl_status tctl_list_value(tctl_listing *l, const char *name, const char *words, tctl_error *err)
{
    tctl_status st = add_line(l, words, name, err);
    return st == TCTL_OK ? keep_leaf(l->walk, name, (tctl_leaf){.kind = TCTL_LEAF_VALUE, .text = words}, err)
                         : st;
}

static tctl_status digest_payload(tctl_walk *w, const tctl_array *t, tctl_sha256 *ret, tctl_error *err)
{
    tctl_array_reader r = {0};
    size_t n = 0;
    tctl_status st =
        t->element_bytes > TCTL_SCRATCH_BYTES
            ? tctl_fail(err, TCTL_EUNSUPPORTED, "an element has %" PRIu32 " bytes", t->element_bytes)
            : tctl_walk_spend(w, t->n_elements * t->element_bytes, err);
    if (st == TCTL_OK)
        st = tctl_array_begin(t, &r, err);
    tctl_hasher_finish(w->payload); /* whatever an earlier failure left in it */
    while (st == TCTL_OK && (st = tctl_array_next(&r, w->scratch, TCTL_SCRATCH_BYTES, &n, err)) == TCTL_OK &&
           n > 0)
        tctl_hasher_add(w->payload, w->scratch, n * t->element_bytes);
    if (st == TCTL_OK)
        *ret = tctl_hasher_finish(w->payload);
    tctl_array_end(&r);
    return st;
}

static void tensor_words(tctl_buf *ret, const tctl_array *t, const tctl_sha256 *digest, const char *more)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(digest, hex);
    tctl_buf_add_format(ret, "tensor %s [", t->dtype);
    for (uint32_t i = 0; i < t->rank; i++)
        tctl_buf_add_format(ret, "%s%" PRIu64, i > 0 ? "," : "", t->shape[i]);
    tctl_buf_add_format(ret, "] %s%s", hex, more);
}

tctl_status tctl_list_tensor(tctl_listing *l, const char *name, const tctl_array *t, const tctl_sha256 *known,
                             const char *more, tctl_error *err)
{
    tctl_leaf leaf = {.kind = TCTL_LEAF_TENSOR, .tensor = *t};
    tctl_buf words = TCTL_BUF_INIT;
    tctl_status st = TCTL_OK;
    if (known != NULL)
        leaf.sha256 = *known;
    else
        st = digest_payload(l->walk, t, &leaf.sha256, err);
    if (st != TCTL_OK)
        return st;
    tensor_words(&words, t, &leaf.sha256, more);
    st = tctl_buf_text(&words) == NULL ? tctl_fail_memory(err, 0)
                                       : add_line(l, tctl_buf_text(&words), name, err);
    leaf.text = more; /* what is said beside dtype, shape and payload can differ alone */
    if (st == TCTL_OK)
        st = keep_leaf(l->walk, name, leaf, err);
    tctl_buf_release(&words);
    l->n_tensors++;
    return st;
}

/* ---- containers in containers ---------------------------------------------------------------------------- */

static tctl_status list_bytes(tctl_listing *l, const char *name, tctl_source *s, const tctl_sha256 *known,
                              tctl_error *err)
{
    char hex[TCTL_SHA256_HEX], words[128];
    const uint64_t shape[] = {s->size};
    tctl_leaf leaf = {.kind = TCTL_LEAF_BYTES,
                      .tensor = {.dtype = "u8",
                                 .element_bytes = 1,
                                 .rank = 1,
                                 .shape = shape,
                                 .n_elements = s->size,
                                 .source = s}};
    tctl_status st = TCTL_OK;
    if (known != NULL)
        leaf.sha256 = *known;
    else
        st = digest_payload(l->walk, &leaf.tensor, &leaf.sha256, err);
    if (st != TCTL_OK)
        return st;
    tctl_sha256_hex(&leaf.sha256, hex);
    snprintf(words, sizeof words, "bytes %" PRIu64 " %s", s->size, hex);
    st = add_line(l, words, name, err);
    return st == TCTL_OK ? keep_leaf(l->walk, name, leaf, err) : st;
}

/* Damaged or not looked into: what a member says of itself is no business of the container around it, whose own
 * checks have passed. Running out of what the whole file may cost still counts. */
static bool counts_as_bytes(const tctl_walk *w, tctl_status st)
{
    return st == TCTL_EFORMAT || (st == TCTL_EUNSUPPORTED && w->bytes_left > 0 && w->lines_left > 0);
}

tctl_status tctl_list_member(tctl_listing *l, const char *name, tctl_source *s, const tctl_sha256 *known,
                             const char **ret_format, tctl_error *err)
{
    tctl_walk *w = l->walk;
    tctl_looked looked = {0};
    size_t n_leaves = w->n_leaves, prefix = w->prefix.size;
    char hex[TCTL_SHA256_HEX], words[128];
    if (w->keep)
        tctl_buf_add_format(&w->prefix, "%s/", name);
    tctl_status st = tctl_walk_look(w, s, &looked, err);
    w->prefix.size = prefix;
    if (w->prefix.data != NULL)
        w->prefix.data[prefix] = '\0';
    if (st != TCTL_OK && !counts_as_bytes(w, st))
        return st;
    *ret_format = st == TCTL_OK ? looked.format : NULL;
    if (*ret_format == NULL) {
        w->n_leaves = n_leaves;
        return list_bytes(l, name, s, known, err);
    }
    l->n_tensors += looked.n_tensors;
    tctl_sha256_hex(&looked.sha256, hex);
    snprintf(words, sizeof words, "%s %s", looked.format, hex);
    return add_line(l, words, name, err);
}

/* ---- recognising ----------------------------------------------------------------------------------------- */

typedef struct head {
    unsigned char bytes[TCTL_HEAD_BYTES];
    size_t n; /* that there are */
    uint64_t file_bytes;
} head;

static bool begins(const head *h, const char *magic, size_t n)
{
    return h->n >= n && memcmp(h->bytes, magic, n) == 0;
}

static bool is_zip(const head *h)
{
    return begins(h, "PK\3\4", 4) || begins(h, "PK\5\6", 4);
}

static bool is_npy(const head *h)
{
    return begins(h, "\x93NUMPY", 6);
}

static bool is_gzip(const head *h)
{
    return begins(h, "\x1f\x8b\x08", 3);
}

/* A pickle of protocol 2 with the number that torch.save wrote first before 1.6. */
static bool is_torch_legacy(const head *h)
{
    return begins(h, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19\x2e", 15);
}

/* No magic: the length of the header, which a text file would make far too large, and then a JSON object with a
 * quoted name in it. The cut tail of a file must not make it something else, so its size is not asked. */
static bool is_safetensors(const head *h)
{
    uint64_t n = h->n >= 10 ? tctl_get_u64(h->bytes) : 0;
    size_t at = 9;
    if (n < 2 || n > 100000000 || h->bytes[8] != '{')
        return false;
    while (at < h->n && (h->bytes[at] == ' ' || h->bytes[at] == '\n' || h->bytes[at] == '\t'))
        at++;
    return at == h->n || h->bytes[at] == '"' || (h->bytes[at] == '}' && n <= h->file_bytes);
}

static bool is_tensorboard(const head *h)
{
    return tctl_tfrecord_starts(h->bytes, h->n);
}

typedef struct known_format {
    bool (*fits)(const head *);
    tctl_lister *list;
} known_format;

static const known_format formats[] = {
    {is_zip, tctl_list_zip},
    {is_npy, tctl_list_npy},
    {is_gzip, tctl_list_gzip},
    {is_torch_legacy, tctl_list_torch_legacy},
    {is_tensorboard, tctl_list_tensorboard},
    {is_safetensors, tctl_list_safetensors},
};

static tctl_status recognise(const tctl_walk *w, tctl_source *s, tctl_lister **ret, tctl_error *err)
{
    head h = {.file_bytes = s->size};
    h.n = s->size < sizeof h.bytes ? (size_t)s->size : sizeof h.bytes;
    tctl_status st = tctl_source_read(s, 0, h.bytes, h.n, err);
    if (st != TCTL_OK)
        return st;
    *ret = NULL;
    if (w->depth == 0 && w->rules != NULL && w->rules->volatile_paths != NULL) {
        *ret = tctl_list_json;
        return TCTL_OK;
    }
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] && *ret == NULL; i++) {
        if (formats[i].fits(&h))
            *ret = formats[i].list;
    }
    return TCTL_OK;
}

tctl_status tctl_walk_look(tctl_walk *w, tctl_source *s, tctl_looked *ret, tctl_error *err)
{
    tctl_listing l = {.walk = w};
    tctl_lister *list = NULL;
    tctl_looked looked = {0};
    *ret = looked;
    if (w->depth == TCTL_LOOK_DEPTH)
        return TCTL_OK;
    tctl_status st = recognise(w, s, &list, err);
    if (st != TCTL_OK || list == NULL)
        return st;
    st = tctl_hasher_create(&l.hasher, err);
    if (st == TCTL_OK) {
        tctl_hasher_add(l.hasher, "trainctl-content 1\n", 19);
        w->depth++;
        st = list(&l, s, &looked.format, err);
        w->depth--;
    }
    if (st == TCTL_OK) {
        looked.sha256 = tctl_hasher_finish(l.hasher);
        looked.n_tensors = l.n_tensors;
        *ret = looked;
    }
    tctl_hasher_destroy(l.hasher);
    return st;
}
