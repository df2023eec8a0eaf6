/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See options.h.
 *
 * A key that is close to an option's name is taken for it when missing keys are reported: one mistake, one
 * message. A default is read by the same code as the user's text; if that fails, the plugin is to blame.
 */
#include "config/options.h"

#include <string.h>

#include "config/reader.h"
#include "config/scalar.h"
#include "config/spec.h"

/* Of the path to a nested plugin. Only defaults that use each other in a circle can be longer. */
enum { MAX_WHERE = 2048 };

/* One mapping being read. */
typedef struct reader {
    const tctl_reader_context *ctx;
    const tctl_yaml_node *mapping;
    tctl_config *config;
    const char *const *extra;
    bool *seen;         /* per option: the key was written */
    bool *suspected;    /* per option: an unknown key is probably meant for it */
    const char **names; /* all keys that are known, for suggestions */
    size_t n_names;
} reader;

tctl_error *tctl_reader_error(const tctl_reader_context *ctx)
{
    return tctl_diags_add(ctx->diags);
}

tctl_status tctl_reader_no_memory(const tctl_reader_context *ctx, size_t size_bytes)
{
    return tctl_fail_memory(tctl_diags_add(ctx->diags), size_bytes);
}

tctl_loc tctl_loc_start(tctl_loc loc)
{
    loc.end_line = loc.line;
    loc.end_col = loc.line ? loc.col + 1 : 0;
    return loc;
}

bool tctl_name_check(const tctl_reader_context *ctx, const tctl_yaml_node *node, const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    if (node->broken)
        return false;
    bool scalar = node->kind == TCTL_YAML_SCALAR;
    if (scalar && node->length > 0 && node->length <= 64 && node->text[0] != '-' &&
        strspn(node->text, allowed) == node->length)
        return true;
    const char *shown = scalar ? tctl_yaml_show(ctx->arena, node->text, node->length) : tctl_yaml_kind(node);
    tctl_fail_at(tctl_reader_error(ctx), TCTL_ESPEC, node->loc,
                 "%s must be 1 to 64 letters, digits, '_' or '-', got %s%s%s", key, scalar ? "'" : "",
                 shown ? shown : "", scalar ? "'" : "");
    return false;
}

void tctl_hint_words(tctl_error *err, const char *before, const char *const *words, size_t n)
{
    char list[TCTL_ERROR_NOTE - 64];
    size_t at = 0;
    list[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        if (at + length + 8 > sizeof list) {
            memcpy(list + at, ", ...", 6);
            break;
        }
        if (at) {
            memcpy(list + at, ", ", 2);
            at += 2;
        }
        memcpy(list + at, words[i], length + 1);
        at += length;
    }
    if (at)
        tctl_hint(err, "%s %s", before, list);
}

tctl_option *tctl_options_copy(tctl_arena *arena, const tctl_option *options, uint32_t n,
                               uint32_t option_size)
{
    tctl_option *copy = tctl_arena_take_array(arena, n ? n : 1, sizeof *copy);
    size_t size = option_size < sizeof *copy ? option_size : sizeof *copy;
    for (uint32_t i = 0; copy && i < n; i++)
        memcpy(&copy[i], (const char *)options + (size_t)i * option_size, size);
    return copy;
}

/* ---- values --------------------------------------------------------------------------------------- */

/* Says which mapping an error is about, unless it is the spec as a whole. */
static void note_owner(const reader *r, tctl_error *err)
{
    if (r->config->where && *r->config->where)
        tctl_note(err, "in %s, %s", r->config->what, r->config->where);
}

static tctl_status read_plugin(const reader *r, const tctl_option *option, const tctl_yaml_node *node,
                               tctl_value *value)
{
    if (strlen(r->config->where) > MAX_WHERE) {
        tctl_fail_at(tctl_reader_error(r->ctx), TCTL_EPLUGIN, tctl_loc_start(node->loc),
                     "%s is broken: its default of '%s' uses itself without end", r->config->what,
                     option->name);
        return TCTL_OK;
    }
    const char *where = *r->config->where
                            ? tctl_arena_format(r->ctx->arena, "%s.%s", r->config->where, option->name)
                            : option->name;
    if (!where)
        return tctl_reader_no_memory(r->ctx, strlen(r->config->where));
    return tctl_use_read_any(r->ctx, node, option->choices, NULL, where, &value->use);
}

/* One value; *good is false if it was wrong, which has been said then. */
static tctl_status read_value(const reader *r, const tctl_option *option, const tctl_yaml_node *node,
                              tctl_value *value, bool *good)
{
    *good = false;
    if (node->broken)
        return TCTL_OK;
    value->loc = node->loc;
    value->given = node->overridden ? 3 : 2;
    if (option->type == TCTL_PLUGIN) {
        tctl_status status = read_plugin(r, option, node, value);
        *good = !status && value->use && value->use->plugin;
        return status;
    }
    if (node->kind != TCTL_YAML_SCALAR) {
        tctl_error *err = tctl_reader_error(r->ctx);
        const char *wanted = tctl_scalar_wanted(r->ctx->arena, option);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(node->loc), "'%s' must be %s, got %s", option->name,
                     wanted ? wanted : "a value", tctl_yaml_kind(node));
        note_owner(r, err);
        if (option->doc)
            tctl_hint(err, "%s: %s", option->name, option->doc);
        return TCTL_OK;
    }
    tctl_error err = {0};
    tctl_status status = tctl_scalar_read(r->ctx->arena, r->ctx->folder, option, node, value, &err);
    *good = status == TCTL_OK;
    if (status) {
        note_owner(r, &err);
        *tctl_reader_error(r->ctx) = err;
    }
    return status == TCTL_ENOMEM ? status : TCTL_OK;
}

/* The value or values of one key. */
static tctl_status read_entry(const reader *r, tctl_config_entry *entry, const tctl_yaml_node *node)
{
    const tctl_option *option = entry->option;
    bool list = (option->flags & TCTL_OPT_REPEATED) && node->kind == TCTL_YAML_SEQUENCE;
    size_t n = list ? node->n : 1;
    if (list && n == 0 && (option->flags & TCTL_OPT_REQUIRED)) {
        tctl_fail_at(tctl_reader_error(r->ctx), TCTL_ESPEC, node->loc, "'%s' needs at least one value",
                     option->name);
        return TCTL_OK;
    }
    entry->values = tctl_arena_take_array(r->ctx->arena, n ? n : 1, sizeof *entry->values);
    if (!entry->values)
        return tctl_reader_no_memory(r->ctx, n * sizeof *entry->values);
    for (size_t i = 0; i < n; i++) {
        bool good;
        tctl_status status =
            read_value(r, option, list ? node->items[i] : node, &entry->values[entry->n], &good);
        if (status)
            return status;
        if (good)
            entry->n++;
        else
            entry->values[entry->n] = (tctl_value){0};
    }
    return TCTL_OK;
}

/* ---- defaults ------------------------------------------------------------------------------------- */

static tctl_status broken_default(const reader *r, const tctl_option *option, const tctl_error *cause)
{
    tctl_error *err = tctl_reader_error(r->ctx);
    if (cause && cause->code != TCTL_ESPEC) { /* a default plugin that is not installed is nobody's mistake */
        *err = *cause;
        tctl_note(err, "'%.60s' is the default of '%s' in %s", option->default_yaml, option->name,
                  r->config->what);
        return TCTL_OK;
    }
    tctl_fail_at(err, TCTL_EPLUGIN, tctl_loc_start(r->config->loc),
                 "%s is broken: it cannot read its own default '%.60s' of '%s'", r->config->what,
                 option->default_yaml, option->name);
    if (cause)
        tctl_note(err, "%s", cause->message);
    return TCTL_OK;
}

static tctl_status read_default(const reader *r, tctl_config_entry *entry)
{
    const tctl_option *option = entry->option;
    tctl_diags diags = {0};
    tctl_reader_context ctx = *r->ctx;
    reader own = *r;
    tctl_yaml_node *node = NULL;
    ctx.diags = &diags;
    own.ctx = &ctx;
    tctl_status status = tctl_yaml_parse(ctx.arena, "default", option->default_yaml,
                                         strlen(option->default_yaml), &node, &diags);
    if (!status && node) {
        tctl_yaml_relocate(node, tctl_loc_start(r->config->loc), false);
        status = read_entry(&own, entry, node);
    }
    if (status == TCTL_ENOMEM)
        tctl_reader_no_memory(r->ctx, strlen(option->default_yaml));
    else if (tctl_diags_count(&diags) > 0 || !node)
        status = broken_default(r, option, diags.n ? &diags.errors[0] : NULL);
    for (uint32_t i = 0; i < entry->n; i++)
        entry->values[i].given = 1;
    tctl_diags_release(&diags);
    return status;
}

/* ---- keys ----------------------------------------------------------------------------------------- */

static bool is_extra(const reader *r, const char *key)
{
    for (const char *const *extra = r->extra; extra && *extra; extra++) {
        if (strcmp(*extra, key) == 0)
            return true;
    }
    return false;
}

static tctl_status collect_names(reader *r)
{
    size_t room = r->config->n;
    for (const char *const *extra = r->extra; extra && *extra; extra++)
        room++;
    r->names = tctl_arena_take_array(r->ctx->arena, room ? room : 1, sizeof *r->names);
    if (!r->names)
        return tctl_reader_no_memory(r->ctx, room * sizeof *r->names);
    for (const char *const *extra = r->extra; extra && *extra; extra++)
        r->names[r->n_names++] = *extra;
    for (uint32_t i = 0; i < r->config->n; i++)
        r->names[r->n_names++] = r->config->entries[i].option->name;
    return TCTL_OK;
}

static void refuse_key(reader *r, const tctl_yaml_node *key)
{
    tctl_error *err = tctl_reader_error(r->ctx);
    const char *shown = tctl_yaml_show(r->ctx->arena, key->text, key->length);
    tctl_fail_at(err, TCTL_ESPEC, key->loc, "unknown key '%s' in %s", shown ? shown : "", r->config->what);
    if (*r->config->where)
        tctl_note(err, "in %s", r->config->where);
    const char *near = tctl_suggest(key->text, r->names, r->n_names);
    if (near)
        tctl_hint(err, "did you mean '%s'?", near);
    else
        tctl_hint_words(err, "the keys are", r->names, r->n_names);
    for (uint32_t i = 0; near && i < r->config->n; i++)
        r->suspected[i] = r->suspected[i] || r->config->entries[i].option->name == near;
}

static tctl_status read_keys(reader *r)
{
    for (size_t i = 0; r->mapping && i < r->mapping->n; i++) {
        const tctl_yaml_pair *pair = &r->mapping->pairs[i];
        uint32_t k = 0;
        while (k < r->config->n && strcmp(r->config->entries[k].option->name, pair->key->text) != 0)
            k++;
        if (is_extra(r, pair->key->text))
            continue;
        if (k == r->config->n) {
            refuse_key(r, pair->key);
            continue;
        }
        r->seen[k] = true;
        tctl_config_entry *entry = &r->config->entries[k];
        tctl_status status = entry->option->type < TCTL_SECTION ? read_entry(r, entry, pair->value) : TCTL_OK;
        if (status)
            return status;
    }
    return TCTL_OK;
}

static tctl_status fill_missing(reader *r)
{
    for (uint32_t i = 0; i < r->config->n; i++) {
        tctl_config_entry *entry = &r->config->entries[i];
        const tctl_option *option = entry->option;
        if (r->seen[i])
            continue;
        if (option->flags & TCTL_OPT_REQUIRED) {
            if (r->suspected[i])
                continue;
            tctl_error *err = tctl_reader_error(r->ctx);
            tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(r->config->loc), "%s needs the key '%s'",
                         r->config->what, option->name);
            if (*r->config->where)
                tctl_note(err, "in %s", r->config->where);
            if (option->doc)
                tctl_hint(err, "%s: %s", option->name, option->doc);
        } else if (option->default_yaml && option->type < TCTL_SECTION) {
            tctl_status status = read_default(r, entry);
            if (status)
                return status;
        }
    }
    return TCTL_OK;
}

static tctl_status make_entries(reader *r, const tctl_option *options, uint32_t n, uint32_t option_size)
{
    tctl_arena *arena = r->ctx->arena;
    const tctl_option *copy = tctl_options_copy(arena, options, n, option_size);
    r->config->entries = tctl_arena_take_array(arena, n ? n : 1, sizeof *r->config->entries);
    r->seen = tctl_arena_take_array(arena, n ? n : 1, sizeof *r->seen);
    r->suspected = tctl_arena_take_array(arena, n ? n : 1, sizeof *r->suspected);
    if (!copy || !r->config->entries || !r->seen || !r->suspected)
        return tctl_reader_no_memory(r->ctx, n * sizeof *copy);
    r->config->n = n;
    for (uint32_t i = 0; i < n; i++)
        r->config->entries[i].option = &copy[i];
    return collect_names(r);
}

tctl_status tctl_config_read(const tctl_reader_context *ctx, const tctl_yaml_node *mapping,
                             const tctl_option *options, uint32_t n_options, uint32_t option_size,
                             const char *const *extra, const char *what, const char *where, tctl_config **ret)
{
    reader r = {.ctx = ctx, .mapping = mapping, .extra = extra};
    r.config = tctl_arena_take(ctx->arena, sizeof *r.config);
    if (!r.config)
        return tctl_reader_no_memory(ctx, sizeof *r.config);
    r.config->what = what;
    r.config->where = where;
    r.config->loc = mapping ? mapping->loc : (tctl_loc){0};
    tctl_status status = make_entries(&r, options, n_options, option_size);
    if (status)
        return status;
    *ret = r.config;
    if (mapping && mapping->kind != TCTL_YAML_MAPPING) {
        if (!mapping->broken)
            tctl_fail_at(tctl_reader_error(ctx), TCTL_ESPEC, mapping->loc,
                         "%s must be a mapping ('key: value'), got %s", *where ? where : what,
                         tctl_yaml_kind(mapping));
        return TCTL_OK;
    }
    status = read_keys(&r);
    return status ? status : fill_missing(&r);
}

const tctl_config_entry *tctl_config_find(const tctl_config *config, const char *option)
{
    for (uint32_t i = 0; config && i < config->n; i++) {
        if (strcmp(config->entries[i].option->name, option) == 0)
            return &config->entries[i];
    }
    return NULL;
}
