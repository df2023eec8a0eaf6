/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collecting, hashing and checking the inputs of a run.
 */
#include "launcher/inputs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "base/pool.h"
#include "manifest/listing.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

#define MAX_HASH_THREADS 64
#define LISTING_LIMIT    ((size_t)1 << 30)

/* ---- collecting ---------------------------------------------------------------------------------------- */

typedef struct collector {
    tctl_arena *arena;
    uint32_t n, room;
    tctl_input *items;
    bool failed;
} collector;

static void collect_path(collector *c, const char *name, const char *path, const char *written)
{
    for (uint32_t i = 0; i < c->n; i++) {
        if (strcmp(c->items[i].path, path) == 0)
            return;
    }
    if (c->n == c->room) {
        uint32_t grown = c->room == 0 ? 16 : c->room * 2;
        tctl_input *more = tctl_arena_take_array(c->arena, grown, sizeof *more);
        if (more == NULL) {
            c->failed = true;
            return;
        }
        if (c->n > 0)
            memcpy(more, c->items, c->n * sizeof *more);
        c->items = more;
        c->room = grown;
    }
    c->items[c->n++] = (tctl_input){.name = name, .path = path, .written = written != NULL ? written : path};
    if (name == NULL)
        c->failed = true;
}

static void collect_use(collector *c, const tctl_use *use);

static void collect_config(collector *c, const tctl_config *config)
{
    for (uint32_t e = 0; config != NULL && e < config->n; e++) {
        const tctl_config_entry *entry = &config->entries[e];
        for (uint32_t i = 0; i < entry->n; i++) {
            const tctl_value *v = &entry->values[i];
            if (entry->option->type == TCTL_PLUGIN)
                collect_use(c, v->use);
            bool hashed = entry->option->type == TCTL_PATH && (entry->option->flags & TCTL_OPT_HASHED) != 0;
            if (!hashed || v->text == NULL)
                continue;
            const char *name = tctl_arena_format(c->arena, entry->n > 1 ? "%s.%s[%" PRIu32 "]" : "%s.%s",
                                                 config->where, entry->option->name, i);
            collect_path(c, name, v->text, v->written);
        }
    }
}

static void collect_use(collector *c, const tctl_use *use)
{
    if (use != NULL)
        collect_config(c, use->config);
}

tctl_status tctl_inputs_collect(tctl_arena *arena, const tctl_spec *spec, tctl_inputs *ret, tctl_error *err)
{
    collector c = {.arena = arena};
    for (uint32_t i = 0; i < spec->n_data; i++) {
        const tctl_data_spec *data = &spec->data[i];
        if (data->path != NULL)
            collect_path(&c, tctl_arena_format(arena, "data.%s", data->name), data->path, data->written);
        collect_use(&c, data->source);
        for (uint32_t t = 0; t < data->n_transforms; t++)
            collect_use(&c, data->transforms[t]);
    }
    for (uint32_t i = 0; i < spec->n_ops; i++)
        collect_config(&c, spec->ops[i].config);
    collect_use(&c, spec->trainer);
    for (uint32_t i = 0; i < spec->n_stages; i++)
        collect_use(&c, spec->stages[i]);
    const char **paths = tctl_arena_take_array(arena, (size_t)c.n + 1, sizeof *paths);
    if (c.failed || paths == NULL)
        return tctl_fail_memory(err, c.n * sizeof *c.items);
    for (uint32_t i = 0; i < c.n; i++)
        paths[i] = c.items[i].path;
    *ret = (tctl_inputs){.n = c.n, .items = c.items, .paths = paths};
    return TCTL_OK;
}

static const char *text_of(tctl_arena *arena, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? NULL : tctl_arena_copy(arena, text, strlen(text));
}

static tctl_status path_of(tctl_arena *arena, const json_t *object, const char **ret, tctl_error *err)
{
    char *bytes = NULL;
    tctl_status st = tctl_path_from_json(json_object_get(object, "path"), &bytes, err);
    if (st != TCTL_OK)
        return st;
    *ret = tctl_arena_copy(arena, bytes, strlen(bytes));
    free(bytes);
    return *ret == NULL ? tctl_fail_memory(err, 0) : TCTL_OK;
}

tctl_status tctl_inputs_recorded(tctl_arena *arena, const json_t *data, tctl_inputs *ret, tctl_error *err)
{
    uint32_t n = (uint32_t)json_array_size(data);
    tctl_input *items = tctl_arena_take_array(arena, (size_t)n + 1, sizeof *items);
    const char **paths = tctl_arena_take_array(arena, (size_t)n + 1, sizeof *paths);
    if (items == NULL || paths == NULL)
        return tctl_fail_memory(err, n * sizeof *items);
    for (uint32_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(data, i);
        tctl_input *input = &items[i];
        tctl_status st = path_of(arena, one, &input->path, err);
        if (st != TCTL_OK)
            return st;
        input->name = text_of(arena, one, "name");
        input->written = text_of(arena, one, "written");
        const char *kind = json_string_value(json_object_get(one, "kind"));
        const char *digest = json_string_value(json_object_get(one, "sha256"));
        input->tree.is_folder = kind != NULL && strcmp(kind, "folder") == 0;
        if (input->name == NULL || digest == NULL || !tctl_sha256_parse(digest, &input->tree.digest))
            return tctl_fail(err, TCTL_EFORMAT, "data[%" PRIu32 "] of the manifest is incomplete", i);
        paths[i] = input->path;
    }
    *ret = (tctl_inputs){.n = n, .items = items, .paths = paths};
    return TCTL_OK;
}

/* ---- hashing ------------------------------------------------------------------------------------------- */

static void show_progress(void *impl, uint64_t seen, uint64_t cached, uint64_t hashed, uint64_t bytes,
                          uint64_t total)
{
    tctl_view *view = impl;
    if (bytes > 0)
        tctl_view_progress(view, "hashing data", bytes >> 20, total >> 20, "MiB");
    else
        tctl_view_progress(view, "looking at data", cached + hashed, seen, "files");
}

static tctl_status hash_one(tctl_arena *arena, tctl_pool *pool, const tctl_input *input,
                            tctl_stat_cache *cache, tctl_view *view, tctl_tree *ret, tctl_error *err)
{
    tctl_tree_progress progress = {.impl = view, .update = show_progress};
    tctl_tree_request request = {.pool = pool, .cache = cache, .progress = view == NULL ? NULL : &progress};
    tctl_status st = tctl_tree_hash(input->path, &request, arena, ret, err);
    if (st != TCTL_OK)
        tctl_note(err, "it is '%s' of the spec", input->name);
    return st;
}

static tctl_status make_pool(tctl_pool **ret, tctl_error *err)
{
    uint32_t n = tctl_cpus_available();
    return tctl_pool_create(n > MAX_HASH_THREADS ? MAX_HASH_THREADS : n, ret, err);
}

tctl_status tctl_inputs_hash(tctl_arena *arena, tctl_inputs *inputs, tctl_stat_cache *cache, tctl_view *view,
                             tctl_error *err)
{
    tctl_pool *pool = NULL;
    tctl_status st = inputs->n == 0 ? TCTL_OK : make_pool(&pool, err);
    for (uint32_t i = 0; st == TCTL_OK && i < inputs->n; i++)
        st = hash_one(arena, pool, &inputs->items[i], cache, view, &inputs->items[i].tree, err);
    tctl_pool_destroy(pool);
    return st;
}

static bool same_names(const tctl_tree *was, const tctl_tree *is)
{
    bool same = was->n_entries == is->n_entries;
    for (uint64_t i = 0; same && i < was->n_entries; i++)
        same = strcmp(was->entries[i].path, is->entries[i].path) == 0;
    return same;
}

/* Names the files of a folder that differ, from the listing that was kept when it was recorded. Without one, all that
 * is known is how many there were. Returns whether there are other files. */
static bool explain_folder(tctl_arena *arena, const tctl_input *input, const tctl_tree *is,
                           const char *listings, tctl_error *err)
{
    char hex[TCTL_SHA256_HEX];
    tctl_buf text = TCTL_BUF_INIT, names = TCTL_BUF_INIT;
    tctl_tree was = input->tree;
    tctl_sha256_hex(&input->tree.digest, hex);
    const char *path = listings == NULL ? NULL : tctl_path_join(arena, listings, hex);
    bool known = was.n_entries > 0;
    if (!known && path != NULL && tctl_file_read(path, LISTING_LIMIT, &text, NULL) == TCTL_OK) {
        size_t n = 0;
        known = tctl_listing_parse(arena, path, tctl_buf_text(&text), text.size, &was.entries, &n, NULL) ==
                TCTL_OK;
        was.n_entries = n;
    }
    if (known) {
        tctl_tree_explain(&was, is, 3, &names);
        if (tctl_buf_text(&names) != NULL)
            tctl_note(err, "%s", tctl_buf_text(&names));
    }
    tctl_buf_release(&names);
    tctl_buf_release(&text);
    return known ? !same_names(&was, is) : was.n_files != is->n_files;
}

tctl_status tctl_inputs_check(tctl_arena *arena, const tctl_inputs *inputs, tctl_stat_cache *cache,
                              const char *listings, const char *when, tctl_input_change *change,
                              tctl_error *err)
{
    tctl_input_change found = {0};
    tctl_pool *pool = NULL;
    tctl_status st = inputs->n == 0 ? TCTL_OK : make_pool(&pool, err);
    for (uint32_t i = 0; st == TCTL_OK && i < inputs->n; i++) {
        const tctl_input *input = &inputs->items[i];
        tctl_tree is = {0};
        st = hash_one(arena, pool, input, cache, NULL, &is, err);
        if (st != TCTL_OK) {
            found = (tctl_input_change){input->name, st == TCTL_ENOENT};
            break;
        }
        if (tctl_sha256_equal(&is.digest, &input->tree.digest) && is.is_folder == input->tree.is_folder)
            continue;
        st = tctl_fail(err, TCTL_ECHANGED, "data '%s' changed %s", input->path, when);
        tctl_note(err, "it is '%s' of the spec", input->name);
        found = (tctl_input_change){input->name, is.is_folder != input->tree.is_folder};
        if (is.is_folder && input->tree.is_folder)
            found.in_list = explain_folder(arena, input, &is, listings, err);
    }
    tctl_pool_destroy(pool);
    if (change != NULL)
        *change = found;
    return st;
}

tctl_status tctl_inputs_keep(const tctl_inputs *inputs, tctl_arena *arena, const char *folder,
                             tctl_error *err)
{
    tctl_status st = TCTL_OK;
    for (uint32_t i = 0; st == TCTL_OK && i < inputs->n; i++) {
        const tctl_tree *tree = &inputs->items[i].tree;
        char hex[TCTL_SHA256_HEX];
        if (!tree->is_folder)
            continue;
        tctl_sha256_hex(&tree->digest, hex);
        const char *path = tctl_path_join(arena, folder, hex);
        tctl_buf text = TCTL_BUF_INIT;
        tctl_listing_begin(&text);
        for (uint64_t e = 0; e < tree->n_entries; e++)
            tctl_listing_add(&text, &tree->entries[e]);
        if (path == NULL || text.broken)
            st = tctl_fail_memory(err, text.size);
        if (st == TCTL_OK)
            st = tctl_make_folders(folder, 0777, err);
        if (st == TCTL_OK)
            st = tctl_file_put(path, text.data, text.size, 0444, err);
        tctl_buf_release(&text);
    }
    return st;
}

json_t *tctl_inputs_json(const tctl_inputs *inputs)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list != NULL && i < inputs->n; i++) {
        const tctl_input *in = &inputs->items[i];
        json_t *one = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o}", "name", in->name, "path",
                                tctl_path_to_json(in->path), "written", tctl_path_to_json(in->written),
                                "kind", in->tree.is_folder ? "folder" : "file", "files",
                                tctl_json_count(in->tree.n_files), "bytes", tctl_json_count(in->tree.n_bytes),
                                "sha256", tctl_json_sha256(&in->tree.digest));
        if (one == NULL || json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}
