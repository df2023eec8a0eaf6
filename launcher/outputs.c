/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting outputs. See outputs.h.
 *
 * TensorBoard puts the time, the host and the process into the name of a file, so such a file is known by its folder
 * and its number among those that began there: member "as".
 */
#include "launcher/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "manifest/content/content.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

#define EVENTS "events.out.tfevents."

/* The declared output that a path is, or lies in; NULL if there is none. */
static const tctl_output_spec *declared(const tctl_spec *spec, const char *path)
{
    for (uint32_t i = 0; i < spec->n_outputs; i++) {
        size_t n = strlen(spec->outputs[i].path);
        if (strncmp(path, spec->outputs[i].path, n) == 0 && (path[n] == '\0' || path[n] == '/'))
            return &spec->outputs[i];
    }
    return NULL;
}

/* What else lies there is the command's own business. */
static void keep_declared(const tctl_spec *spec, tctl_tree *tree)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < tree->n_entries && spec->n_outputs > 0; i++) {
        if (declared(spec, tree->entries[i].path) != NULL)
            tree->entries[n++] = tree->entries[i];
    }
    if (spec->n_outputs > 0)
        tree->n_entries = n;
}

/* ---- names that differ each time ------------------------------------------------------------------------ */

static int by_numbers(const void *a, const void *b)
{
    return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_events(const char *path)
{
    return strncmp(tctl_path_base(path), EVENTS, sizeof EVENTS - 1) == 0;
}

static size_t folder_size(const char *path)
{
    return (size_t)(tctl_path_base(path) - path);
}

static bool same_folder(const char *a, const char *b)
{
    return folder_size(a) == folder_size(b) && memcmp(a, b, folder_size(a)) == 0;
}

/* Numbers count as numbers in the order: the time is the first of them. */
static tctl_status name_events(tctl_arena *arena, const tctl_tree *tree, json_t *list, tctl_error *err)
{
    size_t n = 0;
    const char **paths = tctl_arena_take_array(arena, (size_t)tree->n_entries + 1, sizeof *paths);
    if (paths == NULL)
        return tctl_fail_memory(err, (size_t)tree->n_entries * sizeof *paths);
    for (uint64_t i = 0; i < tree->n_entries; i++) {
        if (is_events(tree->entries[i].path))
            paths[n++] = tree->entries[i].path;
    }
    qsort(paths, n, sizeof *paths, by_numbers);
    for (uint64_t i = 0; i < tree->n_entries; i++) {
        const char *path = tree->entries[i].path;
        json_t *one = json_array_get(list, (size_t)i);
        const json_t *content = json_object_get(one, "content");
        size_t number = 0;
        if (!is_events(path) || content == NULL)
            continue;
        for (size_t k = 0; k < n && strcmp(paths[k], path) != 0; k++)
            number += same_folder(paths[k], path);
        const char *as =
            tctl_arena_format(arena, "%.*sevents.out.tfevents#%zu", (int)folder_size(path), path, number);
        if (as == NULL || json_object_set_new(one, "as", tctl_path_to_json(as)) != 0)
            return tctl_fail_memory(err, strlen(path));
    }
    return TCTL_OK;
}

/* ---- contents ------------------------------------------------------------------------------------------- */

static json_t *content_json(const tctl_content *content, const tctl_output_spec *output)
{
    json_t *object =
        json_pack("{s:s, s:o, s:o}", "format", content->format, "sha256", tctl_json_sha256(&content->sha256),
                  "tensors", tctl_json_count(content->n_tensors));
    if (object == NULL || output == NULL || output->volatile_paths == NULL)
        return object;
    json_t *list = json_array();
    for (const char *const *path = output->volatile_paths; *path != NULL; path++)
        json_array_append_new(list, json_string(*path));
    json_object_set_new(object, "volatile", list);
    return object;
}

/* Sets "content" if the file is a container that is known. *ret_damage as in tctl_outputs_collect. */
static tctl_status add_content(tctl_arena *arena, const tctl_spec *spec, const char *out, tctl_view *view,
                               const char *path, json_t *one, const char **ret_damage, tctl_error *err)
{
    const tctl_output_spec *output = declared(spec, path);
    tctl_content content = {0};
    tctl_content_rules rules = {.volatile_paths = output == NULL ? NULL : output->volatile_paths};
    const char *full = tctl_path_join(arena, out, path);
    if (output != NULL && output->as_bytes)
        return TCTL_OK;
    if (full == NULL)
        return tctl_fail_memory(err, strlen(path));
    tctl_status st = tctl_content_of(arena, full, &rules, &content, err);
    if (st == TCTL_EFORMAT) {
        const char *note = err->n_notes > 0 ? err->notes[0] : NULL;
        *ret_damage = tctl_arena_format(arena, "%s%s%s%s", err->message, note == NULL ? "" : " (",
                                        note == NULL ? "" : note, note == NULL ? "" : ")");
        tctl_error_clear(err);
        return *ret_damage == NULL ? tctl_fail_memory(err, 0) : TCTL_OK;
    }
    if (st != TCTL_OK)
        return st;
    if (content.why_not != NULL)
        tctl_view_say(view, "trainctl: note: output '%s' is compared by its bytes: %s", path,
                      content.why_not);
    if (content.format == NULL)
        return TCTL_OK;
    return json_object_set_new(one, "content", content_json(&content, output)) == 0
               ? TCTL_OK
               : tctl_fail_memory(err, 0);
}

static tctl_status add_contents(tctl_arena *arena, const tctl_spec *spec, const char *out, tctl_view *view,
                                const tctl_tree *tree, json_t *list, const char **ret_damage,
                                const char **ret_path, tctl_error *err)
{
    for (uint64_t i = 0; i < tree->n_entries; i++) {
        const tctl_tree_entry *e = &tree->entries[i];
        if (e->type != 'f' && e->type != 'x')
            continue;
        tctl_status st =
            add_content(arena, spec, out, view, e->path, json_array_get(list, (size_t)i), ret_damage, err);
        if (st != TCTL_OK)
            return st;
        if (*ret_damage != NULL) {
            *ret_path = e->path;
            return TCTL_OK;
        }
    }
    return name_events(arena, tree, list, err);
}

tctl_status tctl_outputs_collect(tctl_arena *arena, const tctl_spec *spec, const char *out, tctl_view *view,
                                 json_t **ret, const char **ret_damage, const char **ret_path,
                                 tctl_error *err)
{
    tctl_tree tree = {0};
    tctl_tree_request request = {0};
    *ret_damage = NULL;
    tctl_status st = tctl_tree_hash(out, &request, arena, &tree, err);
    if (st != TCTL_OK)
        return st;
    keep_declared(spec, &tree);
    json_t *list = tctl_outputs_json(&tree);
    if (list == NULL)
        return tctl_fail_memory(err, 0);
    if (spec->command != NULL)
        st = add_contents(arena, spec, out, view, &tree, list, ret_damage, ret_path, err);
    if (st == TCTL_OK)
        *ret = list;
    else
        json_decref(list);
    return st;
}
