/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See yaml.h. One event of look-ahead, recursion bounded by TCTL_YAML_MAX_DEPTH.
 *
 * What YAML has and a spec has not (anchors, aliases, merge keys, tags, further documents) is reported and
 * replaced by a broken node, so that one of them does not hide the other mistakes.
 */
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/prescan.h"
#include "config/yaml_words.h"

typedef struct builder {
    yaml_parser_t parser;
    tctl_arena *arena;
    tctl_diags *diags;
    const char *name, *text;
    size_t size;
    size_t n_nodes;
    int depth;
    tctl_loc bracket; /* the innermost '[' or '{' that is open; line 0: none */
} builder;

static tctl_loc loc_of(const builder *b, yaml_mark_t start, yaml_mark_t end)
{
    return (tctl_loc){b->name, (uint32_t)start.line + 1, (uint32_t)start.column + 1, (uint32_t)end.line + 1,
                      (uint32_t)end.column + 1};
}

static tctl_loc loc_of_event(const builder *b, const yaml_event_t *event)
{
    return loc_of(b, event->start_mark, event->end_mark);
}

static tctl_error *complain(builder *b, tctl_loc loc)
{
    tctl_error *err = tctl_diags_add(b->diags);
    err->loc = loc;
    return err;
}

static tctl_status no_memory(builder *b)
{
    return tctl_fail_memory(tctl_diags_add(b->diags), sizeof(tctl_yaml_node));
}

/* The next event; the caller deletes it. */
static tctl_status next(builder *b, yaml_event_t *ret)
{
    if (yaml_parser_parse(&b->parser, ret))
        return TCTL_OK;
    tctl_error *err = tctl_diags_add(b->diags);
    tctl_status status = tctl_yaml_explain(&b->parser, b->name, b->text, b->size, err);
    if (b->bracket.line && err->n_notes == 0)
        tctl_note_at(err, b->bracket, "this bracket is open");
    return status;
}

/* A node for what is refused but not fatal. */
static tctl_status break_node(tctl_yaml_node *node)
{
    node->kind = TCTL_YAML_SCALAR;
    node->text = "";
    node->broken = true;
    return TCTL_OK;
}

static tctl_status refuse_alias(builder *b, const yaml_event_t *event, tctl_yaml_node *node)
{
    const char *alias = (const char *)event->data.alias.anchor;
    tctl_error *err = complain(b, node->loc);
    tctl_fail_at(err, TCTL_ESPEC, node->loc, "aliases are not supported: '*%.40s' refers to another place",
                 alias);
    tctl_hint(err, "write the value out; if the '*' belongs to a text, put it in quotes: '*%.40s'", alias);
    return break_node(node);
}

/* Anchors and tags do no harm to the value, so it is kept. */
static void check_properties(builder *b, tctl_loc loc, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor) {
        tctl_error *err = complain(b, loc);
        tctl_fail_at(err, TCTL_ESPEC, loc, "anchors are not supported: '&%.40s'", (const char *)anchor);
        tctl_hint(err, "write the value out where it is used; a text that begins with '&' needs quotes");
    }
    if (tag) {
        tctl_error *err = complain(b, loc);
        tctl_fail_at(err, TCTL_ESPEC, loc, "tags are not supported: '%.60s'", (const char *)tag);
        tctl_hint(err, "leave it out: the option decides how its value is read; a text that begins with '!' "
                       "needs quotes");
    }
}

static tctl_status fill_scalar(builder *b, const yaml_event_t *event, tctl_yaml_node *node)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    node->kind = TCTL_YAML_SCALAR;
    check_properties(b, node->loc, event->data.scalar.anchor, event->data.scalar.tag);
    if (length > TCTL_YAML_MAX_SCALAR)
        return tctl_fail_at(complain(b, node->loc), TCTL_ESPEC, node->loc, "a text of more than %zu bytes",
                            TCTL_YAML_MAX_SCALAR);
    if (memchr(text, '\0', length)) {
        tctl_fail_at(complain(b, node->loc), TCTL_ESPEC, node->loc, "a text cannot hold a NUL character");
        return break_node(node);
    }
    node->text = tctl_arena_copy(b->arena, text, length);
    node->length = length;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return node->text ? TCTL_OK : no_memory(b);
}

/* Room for one more element of an array in the arena. */
static tctl_status grow(builder *b, void **array, size_t n, size_t *room, size_t element_bytes)
{
    if (n < *room)
        return TCTL_OK;
    size_t more = *room ? *room * 2 : 4;
    void *bigger = tctl_arena_take_array(b->arena, more, element_bytes);
    if (!bigger)
        return no_memory(b);
    if (n)
        memcpy(bigger, *array, n * element_bytes);
    *array = bigger;
    *room = more;
    return TCTL_OK;
}

static tctl_status build(builder *b, const yaml_event_t *event, tctl_yaml_node **ret);

static tctl_status fill_sequence(builder *b, tctl_yaml_node *node)
{
    size_t room = 0;
    for (;;) {
        yaml_event_t event;
        tctl_status status = next(b, &event);
        if (status)
            return status;
        if (event.type == YAML_SEQUENCE_END_EVENT) {
            node->loc.end_line = (uint32_t)event.end_mark.line + 1;
            node->loc.end_col = (uint32_t)event.end_mark.column + 1;
            yaml_event_delete(&event);
            return TCTL_OK;
        }
        void *items = node->items;
        status = grow(b, &items, node->n, &room, sizeof *node->items);
        node->items = items;
        if (!status)
            status = build(b, &event, &node->items[node->n]);
        yaml_event_delete(&event);
        if (status)
            return status;
        node->n++;
    }
}

/* {a:1} is a key 'a:1' without a value: libyaml says nothing. */
static bool has_tight_colon(builder *b, const tctl_yaml_node *key, const tctl_yaml_node *value)
{
    const char *colon = key->quoted ? NULL : strchr(key->text, ':');
    if (!colon || colon == key->text || value->kind != TCTL_YAML_SCALAR || value->quoted || value->length > 0)
        return false;
    tctl_loc loc = key->loc;
    for (const char *at = key->text; at < colon; at++)
        loc.col += ((unsigned char)*at & 0xC0) != 0x80;
    loc.end_line = loc.line;
    loc.end_col = loc.col + 1;
    tctl_error *err = complain(b, loc);
    tctl_fail_at(err, TCTL_ESPEC, loc, "a blank is missing behind ':'");
    tctl_hint(err, "write 'key: value'");
    return true;
}

/* True if the key can be used; says what is wrong otherwise. */
static bool is_good_key(builder *b, const tctl_yaml_node *key, const tctl_yaml_node *value)
{
    if (key->broken)
        return false;
    if (key->kind != TCTL_YAML_SCALAR) {
        tctl_error *err = complain(b, key->loc);
        tctl_fail_at(err, TCTL_ESPEC, key->loc, "a key must be a word, got %s", tctl_yaml_kind(key));
        return false;
    }
    if (key->length == 0) {
        tctl_fail_at(complain(b, key->loc), TCTL_ESPEC, key->loc, "a key is missing before ':'");
        return false;
    }
    if (!key->quoted && strcmp(key->text, "<<") == 0) {
        tctl_error *err = complain(b, key->loc);
        tctl_fail_at(err, TCTL_ESPEC, key->loc, "merge keys ('<<') are not supported");
        tctl_hint(err, "write the keys out");
        return false;
    }
    return !has_tight_colon(b, key, value);
}

static tctl_status build_next(builder *b, tctl_yaml_node **ret)
{
    yaml_event_t event;
    tctl_status status = next(b, &event);
    if (status)
        return status;
    status = build(b, &event, ret);
    yaml_event_delete(&event);
    return status;
}

typedef struct sorted_pair {
    const tctl_yaml_pair *pair;
    size_t position;
} sorted_pair;

static int by_key(const void *a, const void *b)
{
    const sorted_pair *x = a, *y = b;
    int order = strcmp(x->pair->key->text, y->pair->key->text);
    return order ? order : (x->position > y->position) - (x->position < y->position);
}

/* Reports keys that stand twice and marks all but the first. Sorted, since a mapping may have 50,000 keys. */
static void mark_duplicates(builder *b, const tctl_yaml_node *node, sorted_pair *sorted, bool *drop)
{
    for (size_t i = 0; i < node->n; i++)
        sorted[i] = (sorted_pair){&node->pairs[i], i};
    qsort(sorted, node->n, sizeof *sorted, by_key);
    for (size_t first = 0, i = 1; i < node->n; i++) {
        const tctl_yaml_node *key = sorted[i].pair->key, *earlier = sorted[first].pair->key;
        if (strcmp(key->text, earlier->text) != 0) {
            first = i;
            continue;
        }
        const char *shown = tctl_yaml_show(b->arena, key->text, key->length);
        tctl_error *err = complain(b, key->loc);
        tctl_fail_at(err, TCTL_ESPEC, key->loc, "the key '%s' stands twice in this mapping",
                     shown ? shown : "");
        tctl_note_at(err, earlier->loc, "first written here");
        drop[sorted[i].position] = true;
    }
}

/* Keys are unique afterwards: the first one counts. */
static tctl_status drop_duplicates(builder *b, tctl_yaml_node *node)
{
    if (node->n < 2)
        return TCTL_OK;
    sorted_pair *sorted = calloc(node->n, sizeof *sorted);
    bool *drop = calloc(node->n, sizeof *drop);
    if (!sorted || !drop) {
        free(sorted);
        free(drop);
        return no_memory(b);
    }
    size_t kept = 0;
    mark_duplicates(b, node, sorted, drop);
    for (size_t i = 0; i < node->n; i++) {
        if (!drop[i])
            node->pairs[kept++] = node->pairs[i];
    }
    node->n = kept;
    free(sorted);
    free(drop);
    return TCTL_OK;
}

static tctl_status fill_mapping(builder *b, tctl_yaml_node *node)
{
    size_t room = 0;
    for (;;) {
        yaml_event_t event;
        tctl_status status = next(b, &event);
        if (status)
            return status;
        if (event.type == YAML_MAPPING_END_EVENT) {
            node->loc.end_line = (uint32_t)event.end_mark.line + 1;
            node->loc.end_col = (uint32_t)event.end_mark.column + 1;
            yaml_event_delete(&event);
            return drop_duplicates(b, node);
        }
        tctl_yaml_node *key = NULL, *value = NULL;
        status = build(b, &event, &key);
        yaml_event_delete(&event);
        if (!status)
            status = build_next(b, &value);
        if (status)
            return status;
        if (!key || !value || !is_good_key(b, key, value))
            continue;
        void *pairs = node->pairs;
        status = grow(b, &pairs, node->n, &room, sizeof *node->pairs);
        node->pairs = pairs;
        if (status)
            return status;
        node->pairs[node->n++] = (tctl_yaml_pair){key, value};
    }
}

static tctl_status enter(builder *b, tctl_loc loc)
{
    if (++b->depth <= TCTL_YAML_MAX_DEPTH)
        return TCTL_OK;
    return tctl_fail_at(complain(b, loc), TCTL_ESPEC, loc, "nested deeper than %d levels",
                        TCTL_YAML_MAX_DEPTH);
}

/* The node that begins with this event. */
static tctl_status build(builder *b, const yaml_event_t *event, tctl_yaml_node **ret)
{
    tctl_loc loc = loc_of_event(b, event);
    if (++b->n_nodes > TCTL_YAML_MAX_NODES)
        return tctl_fail_at(complain(b, loc), TCTL_ESPEC, loc, "more than %d values", TCTL_YAML_MAX_NODES);
    tctl_yaml_node *node = tctl_arena_take(b->arena, sizeof *node);
    if (!node)
        return no_memory(b);
    *ret = node;
    node->loc = loc;
    tctl_status status = TCTL_OK;
    tctl_loc bracket = b->bracket;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return refuse_alias(b, event, node);
    case YAML_SCALAR_EVENT:
        return fill_scalar(b, event, node);
    case YAML_SEQUENCE_START_EVENT:
        check_properties(b, loc, event->data.sequence_start.anchor, event->data.sequence_start.tag);
        node->kind = TCTL_YAML_SEQUENCE;
        if (event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE)
            b->bracket = loc;
        status = enter(b, loc);
        if (!status)
            status = fill_sequence(b, node);
        break;
    default:
        TCTL_BUG_IF(event->type != YAML_MAPPING_START_EVENT);
        check_properties(b, loc, event->data.mapping_start.anchor, event->data.mapping_start.tag);
        node->kind = TCTL_YAML_MAPPING;
        if (event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE)
            b->bracket = loc;
        status = enter(b, loc);
        if (!status)
            status = fill_mapping(b, node);
        break;
    }
    b->depth--;
    b->bracket = bracket;
    return status;
}

static tctl_status build_document(builder *b, const yaml_event_t *start, tctl_yaml_node **ret)
{
    if (start->data.document_start.tag_directives.start != start->data.document_start.tag_directives.end) {
        tctl_loc loc = loc_of_event(b, start);
        tctl_fail_at(complain(b, loc), TCTL_ESPEC, loc, "%%TAG is not supported: a spec has no tags");
    }
    return build_next(b, ret);
}

/* All events of the stream: at most one document. */
static tctl_status build_stream(builder *b, tctl_yaml_node **ret)
{
    bool seen = false, over = false;
    while (!over) {
        yaml_event_t event;
        tctl_status status = next(b, &event);
        if (status)
            return status;
        if (event.type == YAML_DOCUMENT_START_EVENT && !seen) {
            seen = true;
            status = build_document(b, &event, ret);
        } else if (event.type == YAML_DOCUMENT_START_EVENT) {
            tctl_loc loc = loc_of_event(b, &event);
            status = tctl_fail_at(complain(b, loc), TCTL_ESPEC, loc,
                                  "a second document begins here, a spec is exactly one");
        }
        over = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (status)
            return status;
    }
    return TCTL_OK;
}

tctl_status tctl_yaml_parse(tctl_arena *arena, const char *name, const char *text, size_t size,
                            tctl_yaml_node **ret, tctl_diags *diags)
{
    size_t before = tctl_diags_count(diags);
    *ret = NULL;
    tctl_status status = tctl_prescan(name, text, size, diags);
    if (status)
        return status;
    /* With the encoding given, libyaml would count the mark as a column. */
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        size -= 3;
    }
    builder b = {.arena = arena, .diags = diags, .name = name, .text = text, .size = size};
    if (!yaml_parser_initialize(&b.parser))
        return no_memory(&b);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, size);
    tctl_yaml_node *root = NULL;
    status = build_stream(&b, &root);
    yaml_parser_delete(&b.parser);
    if (status)
        return status;
    *ret = root;
    return tctl_diags_count(diags) > before ? TCTL_ESPEC : TCTL_OK;
}
