/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --set, --without and --seed: changes to the tree before it is checked, so that an override is typed and
 * ranged by the same code as the file. Overridden nodes have the option as their file and no line.
 *
 * The path of --set: names joined by '.', list items by number (`model[2].out`) or by name (`stages.amp.dtype`,
 * `model.conv1.out`). Mappings that do not exist are made; the tables decide later whether they may.
 */
#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "config/spec_read.h"

/* One override being applied. */
typedef struct change {
    const tctl_reader_context *ctx;
    tctl_loc loc;     /* file: "--set a.b=c" */
    const char *path; /* what is left of it */
    bool in_model;    /* list items are operators */
    bool in_outputs;  /* list items are paths */
    tctl_yaml_node *value;
} change;

static tctl_error *complain(const change *c, const char *fmt, ...) TCTL_PRINTF(2, 3);

static tctl_error *complain(const change *c, const char *fmt, ...)
{
    tctl_error *err = tctl_reader_error(c->ctx);
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, TCTL_ESPEC, fmt, ap);
    va_end(ap);
    err->loc = c->loc;
    return err;
}

static tctl_yaml_node *make_node(const change *c, int kind, const char *text)
{
    tctl_yaml_node *node = tctl_arena_take(c->ctx->arena, sizeof *node);
    if (!node)
        return NULL;
    *node = (tctl_yaml_node){.kind = kind, .loc = c->loc, .text = text, .overridden = true};
    node->length = text ? strlen(text) : 0;
    return node;
}

/* Takes the next name or [number] off the path. False after an error. */
static bool next_segment(change *c, char **ret, bool *ret_is_index)
{
    const char *at = c->path;
    bool index = *at == '[';
    size_t length = index ? strcspn(at + 1, "]") : strcspn(at, ".[");
    const char *begin = index ? at + 1 : at, *end = begin + length;
    if (length == 0 || length > 128 || (index && *end != ']')) {
        tctl_hint(complain(c, "this is not KEY=VALUE"),
                  "as in train.lr=0.1, model[2].out=64, stages.amp.dtype=bf16");
        return false;
    }
    *ret = tctl_arena_copy(c->ctx->arena, begin, length);
    *ret_is_index = index;
    c->path = end + index;
    if (*c->path == '.')
        c->path += c->path[1] ? 1 : 0;
    return *ret != NULL;
}

/* The name of a list's item: `name:`, else its plugin, or for an operator its kind and number. */
static bool item_is_called(const change *c, const tctl_yaml_node *list, size_t i, const char *name)
{
    const tctl_yaml_node *item = list->items[i];
    const tctl_yaml_node *given = tctl_yaml_get(item, "name");
    const char *key = c->in_model ? "op" : "use";
    if (given)
        return given->kind == TCTL_YAML_SCALAR && strcmp(given->text, name) == 0;
    const tctl_yaml_node *kind = item->kind == TCTL_YAML_SCALAR ? item : tctl_yaml_get(item, key);
    if (!kind || kind->kind != TCTL_YAML_SCALAR)
        return false;
    if (!c->in_model)
        return strcmp(kind->text, name) == 0;
    size_t length = kind->length;
    uint64_t number, wanted = 1;
    if (strncmp(name, kind->text, length) != 0 ||
        !tctl_parse_uint(name + length, strlen(name + length), &number))
        return false;
    for (size_t k = 0; k < i; k++) {
        const tctl_yaml_node *other = list->items[k];
        const tctl_yaml_node *op = other->kind == TCTL_YAML_SCALAR ? other : tctl_yaml_get(other, key);
        wanted += op && op->kind == TCTL_YAML_SCALAR && strcmp(op->text, kind->text) == 0;
    }
    return number == wanted;
}

/* The item of a list that a segment means, or NULL after an error. */
static tctl_yaml_node **find_item(const change *c, tctl_yaml_node *list, const char *segment)
{
    uint64_t index;
    if (tctl_parse_uint(segment, strlen(segment), &index)) {
        if (index < list->n)
            return &list->items[index];
        complain(c, "there is no item %" PRIu64 ": the list has %zu, counted from 0", index, list->n);
        return NULL;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (item_is_called(c, list, i, segment))
            return &list->items[i];
    }
    tctl_hint(complain(c, "no item of the list is called '%s'", segment),
              "an item is meant by its name, by its plugin, or by its number as in [0]");
    return NULL;
}

/* The place of a key's value in a mapping; a new one, holding NULL, if the key is not there. */
static tctl_yaml_node **find_value(const change *c, tctl_yaml_node *mapping, const char *key)
{
    for (size_t i = 0; i < mapping->n; i++) {
        if (strcmp(mapping->pairs[i].key->text, key) == 0)
            return &mapping->pairs[i].value;
    }
    tctl_yaml_pair *pairs = tctl_arena_take_array(c->ctx->arena, mapping->n + 1, sizeof *pairs);
    tctl_yaml_node *name = make_node(c, TCTL_YAML_SCALAR, key);
    if (!pairs || !name) {
        tctl_reader_no_memory(c->ctx, (mapping->n + 1) * sizeof *pairs);
        return NULL;
    }
    if (mapping->n)
        memcpy(pairs, mapping->pairs, mapping->n * sizeof *pairs);
    pairs[mapping->n] = (tctl_yaml_pair){name, NULL};
    mapping->pairs = pairs;
    return &mapping->pairs[mapping->n++].value;
}

/* A bare `amp` becomes {use: amp}, a bare output {path: it}, nothing becomes an empty mapping: something to set a key in. */
static tctl_yaml_node *make_mapping(const change *c, const tctl_yaml_node *scalar)
{
    tctl_yaml_node *mapping = make_node(c, TCTL_YAML_MAPPING, NULL);
    if (!mapping || !scalar || scalar->length == 0)
        return mapping;
    tctl_yaml_node **value = find_value(c, mapping, c->in_model ? "op" : c->in_outputs ? "path" : "use");
    tctl_yaml_node *copy = make_node(c, TCTL_YAML_SCALAR, scalar->text);
    if (!value || !copy)
        return NULL;
    copy->loc = scalar->loc;
    *value = copy;
    mapping->loc = scalar->loc;
    return mapping;
}

static tctl_status walk(change *c, tctl_yaml_node *root)
{
    tctl_yaml_node *node = root;
    for (bool first = true;; first = false) {
        char *segment;
        bool index;
        size_t before = tctl_diags_count(c->ctx->diags);
        if (!next_segment(c, &segment, &index))
            return tctl_diags_count(c->ctx->diags) > before ? TCTL_OK : tctl_reader_no_memory(c->ctx, 128);
        if (first)
            c->in_model = strcmp(segment, "model") == 0;
        if (first)
            c->in_outputs = strcmp(segment, "outputs") == 0;
        if (index && node->kind != TCTL_YAML_SEQUENCE) {
            complain(c, "[%s] is for lists, but this is %s", segment, tctl_yaml_kind(node));
            return TCTL_OK;
        }
        tctl_yaml_node **place =
            node->kind == TCTL_YAML_SEQUENCE ? find_item(c, node, segment) : find_value(c, node, segment);
        if (!place)
            return TCTL_OK;
        if (*c->path == '\0') {
            *place = c->value;
            return TCTL_OK;
        }
        if (*place && (*place)->broken)
            return TCTL_OK;
        if (!*place || (*place)->kind == TCTL_YAML_SCALAR) {
            *place = make_mapping(c, *place);
            if (!*place)
                return tctl_reader_no_memory(c->ctx, sizeof **place);
        }
        node = *place;
    }
}

/* Reads the value; what is wrong with it has no line. */
static tctl_status parse_value(change *c, const char *text)
{
    tctl_diags *diags = c->ctx->diags;
    size_t before = diags->n;
    tctl_status status = tctl_yaml_parse(c->ctx->arena, c->loc.file, text, strlen(text), &c->value, diags);
    for (size_t i = before; i < diags->n; i++) {
        diags->errors[i].loc = c->loc;
        diags->errors[i].n_notes = 0;
    }
    if (status)
        return status;
    if (!c->value)
        c->value = make_node(c, TCTL_YAML_SCALAR, "");
    if (!c->value)
        return tctl_reader_no_memory(c->ctx, sizeof *c->value);
    tctl_yaml_relocate(c->value, c->loc, true);
    return TCTL_OK;
}

static tctl_status set(tctl_spec_reader *r, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    change c = {.ctx = &r->ctx};
    c.loc.file = tctl_arena_format(r->ctx.arena, "--set %s", assignment);
    const char *path = equals ? tctl_arena_copy(r->ctx.arena, assignment, (size_t)(equals - assignment)) : "";
    if (!c.loc.file || !path)
        return tctl_reader_no_memory(&r->ctx, strlen(assignment));
    c.path = path;
    if (!equals || *path == '\0') {
        tctl_hint(complain(&c, "this is not KEY=VALUE"),
                  "as in train.lr=0.1, model[2].out=64, stages.amp.dtype=bf16");
        return TCTL_OK;
    }
    tctl_status status = parse_value(&c, equals + 1);
    if (status)
        return status == TCTL_ENOMEM ? status : TCTL_OK;
    return walk(&c, r->root);
}

static tctl_status without(tctl_spec_reader *r, const char *name)
{
    change c = {.ctx = &r->ctx};
    c.loc.file = tctl_arena_format(r->ctx.arena, "--without %s", name);
    if (!c.loc.file)
        return tctl_reader_no_memory(&r->ctx, strlen(name));
    tctl_yaml_node *stages = tctl_yaml_get(r->root, "stages");
    const char *names[TCTL_MAX_LIST];
    size_t kept = 0, n_names = 0, n = stages && stages->kind == TCTL_YAML_SEQUENCE ? stages->n : 0;
    for (size_t i = 0; i < n; i++) {
        tctl_yaml_node *item = stages->items[i];
        const tctl_yaml_node *called = tctl_yaml_get(item, "name");
        called = called ? called : item->kind == TCTL_YAML_SCALAR ? item : tctl_yaml_get(item, "use");
        if (called && called->kind == TCTL_YAML_SCALAR && n_names < TCTL_MAX_LIST)
            names[n_names++] = called->text;
        if (!item_is_called(&c, stages, i, name))
            stages->items[kept++] = item;
    }
    if (n > 0)
        stages->n = kept;
    if (kept < n)
        return TCTL_OK;
    tctl_error *err = complain(&c, "the spec has no stage '%s'", name);
    const char *near = tctl_suggest(name, names, n_names);
    if (near)
        tctl_hint(err, "did you mean '%s'?", near);
    else
        tctl_hint_words(err, "its stages are", names, n_names);
    return TCTL_OK;
}

static tctl_status set_seed(tctl_spec_reader *r, const char *seed)
{
    change c = {.ctx = &r->ctx, .path = "seed"};
    c.loc.file = tctl_arena_format(r->ctx.arena, "--seed %s", seed);
    if (!c.loc.file)
        return tctl_reader_no_memory(&r->ctx, strlen(seed));
    c.value = make_node(&c, TCTL_YAML_SCALAR, seed);
    return c.value ? walk(&c, r->root) : tctl_reader_no_memory(&r->ctx, sizeof *c.value);
}

tctl_status tctl_spec_override(tctl_spec_reader *r, const tctl_spec_request *request)
{
    tctl_status status = TCTL_OK;
    for (const char *const *one = request->set; !status && one && *one; one++)
        status = set(r, *one);
    for (const char *const *one = request->without; !status && one && *one; one++)
        status = without(r, *one);
    if (!status && request->seed)
        status = set_seed(r, request->seed);
    return status;
}
