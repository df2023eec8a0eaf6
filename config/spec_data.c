/* SPDX-License-Identifier: Apache-2.0 */
/* `data:` and `stages:`: data sets with their transforms, and the stages of the training. */
#include <string.h>

#include "config/spec_read.h"
#include "trainctl/draft/envelope.h"
#include "trainctl/draft/exporter.h"
#include "trainctl/ext/graph.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/state.h"
#include "trainctl/ext/transform.h"

/* True if `node` is a list short enough; says what is wrong otherwise. An absent value is an empty list. */
static bool is_list(const tctl_spec_reader *r, const tctl_yaml_node *node, const char *where)
{
    if (node->broken)
        return false;
    if (node->kind != TCTL_YAML_SEQUENCE) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(node->loc), "'%s' must be a list, got %s", where,
                     node->kind == TCTL_YAML_SCALAR && node->length == 0 ? "nothing" : tctl_yaml_kind(node));
        tctl_hint(err, "each item is a line that begins with '- '");
        return false;
    }
    if (node->n > TCTL_MAX_LIST) {
        tctl_fail_at(tctl_reader_error(&r->ctx), TCTL_ESPEC, tctl_loc_start(node->loc),
                     "'%s' has %zu items, at most %d are allowed", where, node->n, TCTL_MAX_LIST);
        return false;
    }
    return true;
}

static void check_unique(const tctl_spec_reader *r, tctl_use *const *uses, uint32_t n, const tctl_use *use)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(uses[i]->name, use->name) != 0)
            continue;
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, use->loc, "the name '%s' is taken", use->name);
        tctl_note_at(err, uses[i]->loc, "by this one");
        tctl_hint(err, "give one of them a name of its own: {use: %s, name: ...}", use->use);
        return;
    }
}

tctl_status tctl_spec_read_uses(tctl_spec_reader *r, const tctl_yaml_node *list,
                                const char *const *extensions, const char *where, tctl_use ***ret,
                                uint32_t *ret_n)
{
    static const char *const extra[] = {"name", NULL};
    if (!list || !is_list(r, list, where))
        return TCTL_OK;
    *ret = tctl_arena_take_array(r->ctx.arena, list->n ? list->n : 1, sizeof **ret);
    if (!*ret)
        return tctl_reader_no_memory(&r->ctx, list->n * sizeof **ret);
    for (size_t i = 0; i < list->n; i++) {
        const char *here = tctl_arena_format(r->ctx.arena, "%s[%zu]", where, i);
        tctl_use *use = NULL;
        tctl_status status = here ? tctl_use_read_any(&r->ctx, list->items[i], extensions, extra, here, &use)
                                  : tctl_reader_no_memory(&r->ctx, strlen(where));
        if (status)
            return status;
        if (!use || !use->plugin)
            continue;
        check_unique(r, *ret, *ret_n, use);
        (*ret)[(*ret_n)++] = use;
    }
    return TCTL_OK;
}

/* ---- data ----------------------------------------------------------------------------------------- */

static tctl_status read_source(tctl_spec_reader *r, const tctl_yaml_node *node, const char *where,
                               tctl_data_spec *ret)
{
    static const char *const extra[] = {"transforms", NULL};
    static const char *const transform[] = {TCTL_TRANSFORM_ID, NULL};
    if (r->spec->command) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(node->loc),
                     "%s cannot have a source: a command reads its "
                     "own files",
                     where);
        tctl_hint(err, "write {path: FILE-OR-FOLDER}");
        return TCTL_OK;
    }
    tctl_status status = tctl_use_read(&r->ctx, node, TCTL_SOURCE_ID, extra, where, &ret->source);
    const tctl_yaml_node *list = tctl_yaml_get(node, "transforms");
    const char *below = tctl_arena_format(r->ctx.arena, "%s.transforms", where);
    if (!below)
        return tctl_reader_no_memory(&r->ctx, strlen(where));
    return status ? status
                  : tctl_spec_read_uses(r, list, transform, below, &ret->transforms, &ret->n_transforms);
}

static tctl_status read_path(tctl_spec_reader *r, const tctl_yaml_node *node, const char *where,
                             tctl_data_spec *ret)
{
    const tctl_spec_section *section = tctl_spec_section_find("data");
    tctl_option path = section->options[section->n_options - 1];
    tctl_config *config = NULL;
    path.flags |= TCTL_OPT_REQUIRED;
    const char *what = tctl_arena_format(r->ctx.arena, "data set '%s'", ret->name);
    if (!what)
        return tctl_reader_no_memory(&r->ctx, strlen(ret->name));
    if (r->spec->trainer) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(node->loc), "%s needs the key 'use'", where);
        tctl_hint(err, "use: the plugin that reads the samples, such as idx");
        return TCTL_OK;
    }
    tctl_status status = tctl_config_read(&r->ctx, node, &path, 1, sizeof path, NULL, what, where, &config);
    const tctl_config_entry *entry = tctl_config_find(config, "path");
    if (!status && entry && entry->n) {
        ret->path = entry->values[0].text;
        ret->written = entry->values[0].written;
    }
    return status;
}

tctl_status tctl_spec_read_data(tctl_spec_reader *r)
{
    const tctl_yaml_node *data = tctl_yaml_get(r->root, "data");
    if (!data || data->broken)
        return TCTL_OK;
    if (data->kind != TCTL_YAML_MAPPING || data->n > TCTL_MAX_LIST) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(data->loc),
                     "'data' must be a mapping of at most %d names", TCTL_MAX_LIST);
        tctl_hint(err, "data: {train: {use: ...}, test: {use: ...}}");
        return TCTL_OK;
    }
    r->spec->data = tctl_arena_take_array(r->ctx.arena, data->n ? data->n : 1, sizeof *r->spec->data);
    if (!r->spec->data)
        return tctl_reader_no_memory(&r->ctx, data->n * sizeof *r->spec->data);
    for (size_t i = 0; i < data->n; i++) {
        const tctl_yaml_pair *pair = &data->pairs[i];
        tctl_data_spec *one = &r->spec->data[r->spec->n_data];
        if (strcmp(pair->key->text, "seed_scope") == 0)
            continue; /* of the mapping itself: spec_determinism.c */
        if (!tctl_name_check(&r->ctx, pair->key, "a data set's name") || pair->value->broken)
            continue;
        *one = (tctl_data_spec){.name = pair->key->text, .loc = pair->value->loc};
        const char *where = tctl_arena_format(r->ctx.arena, "data.%s", one->name);
        if (!where)
            return tctl_reader_no_memory(&r->ctx, strlen(one->name));
        bool has_use = pair->value->kind == TCTL_YAML_SCALAR ? !r->spec->command
                                                             : tctl_yaml_get(pair->value, "use") != NULL;
        tctl_status status =
            has_use ? read_source(r, pair->value, where, one) : read_path(r, pair->value, where, one);
        if (status)
            return status;
        r->spec->n_data++;
    }
    return TCTL_OK;
}

/* ---- stages --------------------------------------------------------------------------------------- */

static bool serves(const tctl_spec *spec, const tctl_plugin *plugin)
{
    if (spec->command)
        return tctl_plugin_extension(plugin, TCTL_ENVELOPE_ID) != NULL;
    return tctl_plugin_extension(plugin, TCTL_GRAPH_ID) || tctl_plugin_extension(plugin, TCTL_HOOKS_ID) ||
           tctl_plugin_extension(plugin, TCTL_EXPORTER_ID);
}

/* A stage that cannot take part in what the spec runs is refused here, not when it is too late. */
static void check_serves(const tctl_spec_reader *r, const tctl_use *use)
{
    if ((!r->spec->command && !r->spec->trainer) || serves(r->spec, use->plugin))
        return;
    tctl_error *err = tctl_reader_error(&r->ctx);
    tctl_fail_at(err, TCTL_ESPEC, use->loc, "stage '%s' cannot serve %s", use->name,
                 r->spec->command ? "a command" : "a trainer");
    if (r->spec->command)
        tctl_note(err, "plugin '%s' does not provide %s", use->plugin->name, TCTL_ENVELOPE_ID);
    else
        tctl_note(err, "plugin '%s' provides neither %s nor %s nor %s", use->plugin->name, TCTL_GRAPH_ID,
                  TCTL_HOOKS_ID, TCTL_EXPORTER_ID);
}

static void check_state(const tctl_spec_reader *r, const tctl_use *use, const tctl_use *checkpoint)
{
    if (!(use->plugin->flags & TCTL_PLUGIN_REMEMBERS) || tctl_plugin_extension(use->plugin, TCTL_STATE_ID))
        return;
    tctl_error *err = tctl_reader_error(&r->ctx);
    tctl_fail_at(err, TCTL_ESPEC, use->loc, "stage '%s' cannot be combined with checkpoints", use->name);
    tctl_note(err, "plugin '%s' remembers something from step to step and does not provide %s",
              use->plugin->name, TCTL_STATE_ID);
    tctl_note_at(err, checkpoint->loc, "checkpoints are asked for here");
    tctl_hint(err, "leave one of the two out");
}

static const tctl_use *find_checkpoint(const tctl_spec *spec)
{
    for (uint32_t i = 0; i < spec->n_stages; i++) {
        const tctl_use *use = spec->stages[i];
        if (strcmp(use->name, "checkpoint") == 0 || strcmp(use->plugin->name, "checkpoint") == 0)
            return use;
    }
    return NULL;
}

tctl_status tctl_spec_read_stages(tctl_spec_reader *r)
{
    static const char *const any[] = {TCTL_GRAPH_ID, TCTL_HOOKS_ID, TCTL_EXPORTER_ID, TCTL_ENVELOPE_ID, NULL};
    tctl_spec *spec = r->spec;
    tctl_status status = tctl_spec_read_uses(r, tctl_yaml_get(r->root, "stages"), any, "stages",
                                             &spec->stages, &spec->n_stages);
    const tctl_use *checkpoint = status ? NULL : find_checkpoint(spec);
    for (uint32_t i = 0; !status && i < spec->n_stages; i++) {
        check_serves(r, spec->stages[i]);
        if (checkpoint && spec->stages[i] != checkpoint)
            check_state(r, spec->stages[i], checkpoint);
    }
    return status;
}
