/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `outputs:`: the files that a command leaves, and how each is compared. An item is a path, or a mapping with one.
 *
 * Whether a file is JSON, and whether the places that are called volatile are in it, only shows when it is there.
 */
#include <string.h>

#include "base/json_path.h"
#include "config/spec_read.h"

/* A file of the output folder: relative, and not out of it. */
static bool is_inside(const char *path)
{
    if (*path == '/' || *path == '\0')
        return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return false;
    }
    return true;
}

static void check_path(const tctl_spec_reader *r, const char *path, tctl_loc loc)
{
    if (is_inside(path))
        return;
    const char *shown = tctl_yaml_show(r->ctx.arena, path, strlen(path));
    tctl_error *err = tctl_reader_error(&r->ctx);
    tctl_fail_at(err, TCTL_ESPEC, loc, "'outputs' must name files in the output folder, got '%s'",
                 shown ? shown : "");
    tctl_hint(err, "relative to $TRAINCTL_OUT, without '..'");
}

static tctl_status read_volatile(const tctl_spec_reader *r, const tctl_config_entry *entry,
                                 tctl_output_spec *ret)
{
    if (!entry || entry->n == 0)
        return TCTL_OK;
    const char **paths = tctl_arena_take_array(r->ctx.arena, entry->n + 1u, sizeof *paths);
    if (!paths)
        return tctl_reader_no_memory(&r->ctx, entry->n * sizeof *paths);
    for (uint32_t i = 0; i < entry->n; i++) {
        const tctl_value *value = &entry->values[i];
        const char *problem = tctl_json_path_problem(value->text);
        paths[i] = value->text;
        if (!problem)
            continue;
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, value->loc, "'volatile' must name places in a JSON file: %s", problem);
        tctl_hint(err, "names with '/' between them, as in 'epochs/*/seconds'; '**/seconds' is any depth");
    }
    ret->volatile_paths = paths;
    return TCTL_OK;
}

static tctl_status read_mapping(const tctl_spec_reader *r, const tctl_yaml_node *item, const char *where,
                                tctl_output_spec *ret)
{
    const tctl_spec_section *section = tctl_spec_section_find("outputs");
    tctl_config *config = NULL;
    tctl_status status = tctl_config_read(&r->ctx, item, section->options, section->n_options,
                                          sizeof *section->options, NULL, "an output", where, &config);
    if (status)
        return status;
    const tctl_config_entry *path = tctl_config_find(config, "path");
    const tctl_config_entry *compare = tctl_config_find(config, "compare");
    const tctl_config_entry *paths = tctl_config_find(config, "volatile");
    if (path && path->n) {
        ret->path = path->values[0].text;
        check_path(r, ret->path, path->values[0].loc);
    }
    ret->as_bytes = compare && compare->n && strcmp(compare->values[0].text, "bytes") == 0;
    if (ret->as_bytes && paths && paths->n) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_spec_key_loc(item, "volatile"),
                     "'volatile' has no meaning with 'compare: bytes'");
        tctl_hint(err, "leave one of them out");
    }
    return read_volatile(r, paths, ret);
}

static tctl_status read_item(const tctl_spec_reader *r, const tctl_yaml_node *item, const char *where)
{
    tctl_spec *spec = r->spec;
    tctl_output_spec output = {.path = NULL};
    tctl_status status = TCTL_OK;
    if (item->broken)
        return TCTL_OK;
    if (item->kind == TCTL_YAML_SCALAR) {
        output.path = item->text;
        check_path(r, item->text, item->loc);
    } else if (item->kind == TCTL_YAML_MAPPING) {
        status = read_mapping(r, item, where, &output);
    } else {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(item->loc), "%s must be a path or {path: ...}, got %s",
                     where, tctl_yaml_kind(item));
    }
    if (!status && output.path)
        spec->outputs[spec->n_outputs++] = output;
    return status;
}

tctl_status tctl_spec_read_outputs(tctl_spec_reader *r)
{
    tctl_yaml_node *node = tctl_yaml_get(r->root, "outputs");
    if (!node || node->broken)
        return TCTL_OK;
    bool is_list = node->kind == TCTL_YAML_SEQUENCE;
    size_t n = is_list ? node->n : 1;
    if (n > TCTL_MAX_LIST) {
        tctl_fail_at(tctl_reader_error(&r->ctx), TCTL_ESPEC, tctl_loc_start(node->loc),
                     "'outputs' has %zu items, at most %d are allowed", n, TCTL_MAX_LIST);
        return TCTL_OK;
    }
    r->spec->outputs = tctl_arena_take_array(r->ctx.arena, n + 1, sizeof *r->spec->outputs);
    if (!r->spec->outputs)
        return tctl_reader_no_memory(&r->ctx, n * sizeof *r->spec->outputs);
    tctl_status status = TCTL_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const char *where = is_list ? tctl_arena_format(r->ctx.arena, "outputs[%zu]", i) : "outputs";
        status =
            where ? read_item(r, is_list ? node->items[i] : node, where) : tctl_reader_no_memory(&r->ctx, 0);
    }
    return status;
}
