/* SPDX-License-Identifier: Apache-2.0 */
/* `use: NAME` and its options: one plugin of the spec. See options.h. */
#include <string.h>

#include "config/options.h"
#include "config/reader.h"
#include "trainctl/draft/envelope.h"
#include "trainctl/draft/exporter.h"
#include "trainctl/ext/graph.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/ext/transform.h"

enum { MAX_EXTRA = 8 };

const char *tctl_extension_role(const char *id)
{
    static const char *const roles[][2] = {
        {TCTL_SOURCE_ID, "a data source"},     {TCTL_TRANSFORM_ID, "a transform"},
        {TCTL_TRAINER_ID, "a trainer"},        {TCTL_OPTIMIZER_ID, "an optimizer"},
        {TCTL_SCHEDULE_ID, "a schedule"},      {TCTL_GRAPH_ID, "a graph stage"},
        {TCTL_HOOKS_ID, "a stage with hooks"}, {TCTL_EXPORTER_ID, "an exporter"},
        {TCTL_ENVELOPE_ID, "an envelope"},
    };
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(roles[i][0], id) == 0)
            return roles[i][1];
    }
    return id;
}

static bool has(const char *const *words, const char *word)
{
    for (; words && *words; words++) {
        if (strcmp(*words, word) == 0)
            return true;
    }
    return false;
}

static bool provides_any(const tctl_plugin *plugin, const char *const *extensions)
{
    for (; extensions && *extensions; extensions++) {
        if (tctl_plugin_extension(plugin, *extensions))
            return true;
    }
    return false;
}

static void refuse_role(const tctl_reader_context *ctx, const tctl_use *use, const char *const *extensions)
{
    const char *ids[16];
    size_t n = 0;
    tctl_error *err = tctl_reader_error(ctx);
    bool one = extensions && extensions[0] && !extensions[1];
    tctl_fail_at(err, TCTL_ESPEC, use->loc, "plugin '%s' is not %s", use->plugin->name,
                 one ? tctl_extension_role(extensions[0]) : "a stage");
    for (; n < use->plugin->n_extensions && n < 16; n++)
        ids[n] = use->plugin->extensions[n].id;
    tctl_hint_words(err, "it provides", ids, n);
}

/* Finds the plugin that `name` means; use->plugin stays NULL if there is none that fits. */
static tctl_status find_plugin(const tctl_reader_context *ctx, const tctl_yaml_node *name,
                               const char *const *extensions, const char *where, tctl_use *use)
{
    tctl_error err = {0};
    use->use = name->text;
    use->loc = name->loc;
    tctl_status status = ctx->finder->find(ctx->finder->impl, name->text, ctx->folder, &use->plugin, &err);
    if (status) {
        err.code = status;
        err.loc = name->loc;
        tctl_note(&err, "in %s", where);
        *tctl_reader_error(ctx) = err;
        use->plugin = NULL;
        return status == TCTL_ENOMEM ? status : TCTL_OK;
    }
    if (!provides_any(use->plugin, extensions)) {
        refuse_role(ctx, use, extensions);
        use->plugin = NULL;
    }
    return TCTL_OK;
}

/* The node that holds the plugin's name: the scalar itself or the value of `use`. NULL after an error. */
static const tctl_yaml_node *name_node(const tctl_reader_context *ctx, const tctl_yaml_node *node,
                                       const char *where)
{
    if (node->broken)
        return NULL;
    const tctl_yaml_node *name = node;
    if (node->kind == TCTL_YAML_MAPPING)
        name = tctl_yaml_get(node, "use");
    if (!name) {
        tctl_error *err = tctl_reader_error(ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(node->loc), "%s needs the key 'use'", where);
        tctl_hint(err, "use: the plugin's name, or its path with a '/' in it");
        return NULL;
    }
    if (name->broken)
        return NULL;
    if (name->kind != TCTL_YAML_SCALAR || name->length == 0) {
        tctl_error *err = tctl_reader_error(ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(name->loc), "%s must be {use: NAME, ...}, got %s", where,
                     name->kind == TCTL_YAML_SCALAR ? "nothing" : tctl_yaml_kind(name));
        return NULL;
    }
    return name;
}

/* `name:` if the use has one, else the plugin's name. */
static void read_name(const tctl_reader_context *ctx, const tctl_yaml_node *node, const char *const *extra,
                      tctl_use *use)
{
    const tctl_yaml_node *name = has(extra, "name") ? tctl_yaml_get(node, "name") : NULL;
    use->name = use->plugin ? use->plugin->name : use->use;
    if (name && tctl_name_check(ctx, name, "'name'"))
        use->name = name->text;
}

tctl_status tctl_use_read_any(const tctl_reader_context *ctx, const tctl_yaml_node *node,
                              const char *const *extensions, const char *const *extra, const char *where,
                              tctl_use **ret)
{
    const char *known[MAX_EXTRA + 2] = {"use"};
    size_t n_known = 1;
    for (const char *const *more = extra; more && *more && n_known <= MAX_EXTRA; more++)
        known[n_known++] = *more;
    tctl_use *use = tctl_arena_take(ctx->arena, sizeof *use);
    if (!use)
        return tctl_reader_no_memory(ctx, sizeof *use);
    *ret = use;
    use->loc = node->loc;
    const tctl_yaml_node *name = name_node(ctx, node, where);
    if (!name)
        return TCTL_OK;
    tctl_status status = find_plugin(ctx, name, extensions, where, use);
    if (status)
        return status;
    read_name(ctx, node, extra, use);
    if (!use->plugin)
        return TCTL_OK;
    const tctl_plugin *plugin = use->plugin;
    const char *what = tctl_arena_format(ctx->arena, "plugin '%s'", plugin->name);
    if (!what)
        return tctl_reader_no_memory(ctx, strlen(plugin->name));
    const tctl_yaml_node nothing = {.kind = TCTL_YAML_MAPPING, .loc = node->loc};
    return tctl_config_read(ctx, node->kind == TCTL_YAML_MAPPING ? node : &nothing, plugin->options,
                            plugin->n_options, plugin->option_size, known, what, where, &use->config);
}

tctl_status tctl_use_read(const tctl_reader_context *ctx, const tctl_yaml_node *node, const char *extension,
                          const char *const *extra, const char *where, tctl_use **ret)
{
    const char *const extensions[] = {extension, NULL};
    return tctl_use_read_any(ctx, node, extensions, extra, where, ret);
}
