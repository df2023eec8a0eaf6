/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See spec.h: reads the file, applies overrides, checks every part, and makes the recipe if all is well.
 *
 * Problems are collected; only what makes going on pointless (bytes that cannot be parsed) ends the reading.
 */
#include "config/spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/pool.h"
#include "config/spec_read.h"

tctl_loc tctl_spec_key_loc(const tctl_yaml_node *mapping, const char *key)
{
    for (size_t i = 0; mapping->kind == TCTL_YAML_MAPPING && i < mapping->n; i++) {
        if (strcmp(mapping->pairs[i].key->text, key) == 0)
            return mapping->pairs[i].key->loc;
    }
    return (tctl_loc){0};
}

static bool has_key(const tctl_spec_reader *r, const char *key)
{
    return tctl_yaml_get(r->root, key) != NULL;
}

static const tctl_value *value_of(const tctl_config *config, const char *option)
{
    const tctl_config_entry *entry = tctl_config_find(config, option);
    return entry && entry->n ? &entry->values[0] : NULL;
}

/* ---- the file ------------------------------------------------------------------------------------- */

static tctl_status find_folder(tctl_spec *spec, const tctl_spec_request *request, tctl_error *err)
{
    if (request->folder) {
        spec->folder = tctl_arena_copy(spec->arena, request->folder, strlen(request->folder));
        return spec->folder ? TCTL_OK : tctl_fail_memory(err, strlen(request->folder));
    }
    const char *folder = tctl_path_folder(spec->arena, request->path);
    if (!folder)
        return tctl_fail_memory(err, strlen(request->path));
    char *real = realpath(folder, NULL);
    if (!real)
        return tctl_fail_errno(err, errno, "cannot find the folder of '%s'", request->path);
    spec->folder = tctl_arena_copy(spec->arena, real, strlen(real));
    size_t length = strlen(real);
    free(real);
    return spec->folder ? TCTL_OK : tctl_fail_memory(err, length);
}

static tctl_status read_text(tctl_spec *spec, const tctl_spec_request *request, tctl_error *err)
{
    tctl_buf file = TCTL_BUF_INIT;
    tctl_status status = TCTL_OK;
    const char *text = request->text;
    size_t size = request->text_size;
    if (!text) {
        const char *path = request->text_path ? request->text_path : request->path;
        status = tctl_file_read(path, TCTL_YAML_MAX_BYTES, &file, err);
        text = tctl_buf_text(&file);
        size = file.size;
    }
    if (!status) {
        spec->text = text ? tctl_arena_copy(spec->arena, text, size) : NULL;
        spec->text_size = size;
        if (!spec->text)
            status = tctl_fail_memory(err, size);
    }
    tctl_buf_release(&file);
    return status;
}

static tctl_status open_spec(tctl_spec *spec, const tctl_spec_request *request, tctl_error *err)
{
    spec->path = tctl_arena_copy(spec->arena, request->path, strlen(request->path));
    if (!spec->path)
        return tctl_fail_memory(err, strlen(request->path));
    tctl_status status = read_text(spec, request, err);
    return status ? status : find_folder(spec, request, err);
}

/* A mapping at the top, or TCTL_ESPEC. */
static tctl_status check_root(const tctl_spec_reader *r)
{
    if (r->root && r->root->kind == TCTL_YAML_MAPPING)
        return TCTL_OK;
    tctl_error *err = tctl_reader_error(&r->ctx);
    tctl_loc loc = {r->spec->path, 1, 1, 1, 2};
    if (!r->root || (r->root->kind == TCTL_YAML_SCALAR && r->root->length == 0)) {
        tctl_fail_at(err, TCTL_ESPEC, loc, "the spec is empty");
        tctl_hint(err, "it needs at least 'name' and 'train' or 'run'");
        return TCTL_ESPEC;
    }
    tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(r->root->loc),
                 "a spec must be a mapping ('key: value'), got %s",
                 r->root->kind == TCTL_YAML_SCALAR ? "a text" : tctl_yaml_kind(r->root));
    if (r->root->kind == TCTL_YAML_SCALAR && strchr(r->root->text, ':'))
        tctl_hint(err, "is a blank missing behind ':'?");
    return TCTL_ESPEC;
}

/* ---- the parts ------------------------------------------------------------------------------------ */

static tctl_status read_strings(const tctl_spec_reader *r, const tctl_config *top, const char *option,
                                const char *const **ret, uint32_t *ret_n)
{
    const tctl_config_entry *entry = tctl_config_find(top, option);
    const char **texts = tctl_arena_take_array(r->ctx.arena, entry->n + 1u, sizeof *texts);
    if (!texts)
        return tctl_reader_no_memory(&r->ctx, entry->n * sizeof *texts);
    for (uint32_t i = 0; i < entry->n; i++)
        texts[i] = entry->values[i].text;
    *ret = texts;
    *ret_n = entry->n;
    return TCTL_OK;
}

static void check_strings(const tctl_spec_reader *r, const tctl_config *top)
{
    const tctl_config_entry *secrets = tctl_config_find(top, "secrets");
    for (uint32_t i = 0; i < secrets->n; i++) {
        const tctl_value *value = &secrets->values[i];
        if (*value->text && !strpbrk(value->text, "= \t\n"))
            continue;
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, value->loc, "'secrets' must be names of environment variables");
        tctl_hint(err, "the name only: its value stays in the environment and is never recorded");
    }
}

static tctl_status read_top(tctl_spec_reader *r, tctl_config **ret)
{
    const tctl_spec_section *section = tctl_spec_section_find("");
    tctl_spec *spec = r->spec;
    tctl_config *top = NULL;
    tctl_status status = tctl_config_read(&r->ctx, r->root, section->options, section->n_options,
                                          sizeof *section->options, NULL, "the spec", "", &top);
    if (status)
        return status;
    const tctl_yaml_node *name = tctl_yaml_get(r->root, "name");
    const tctl_value *seed = value_of(top, "seed"), *train = value_of(top, "train"),
                     *run = value_of(top, "run");
    const tctl_value *named = value_of(top, "name");
    if (named && name && tctl_name_check(&r->ctx, name, "'name'"))
        spec->name = named->text;
    spec->seed = seed ? (uint64_t)seed->i : 0;
    spec->trainer = train ? train->use : NULL;
    spec->command = run && !has_key(r, "train") ? run->text : NULL; /* both: refused by check_kind */
    check_strings(r, top);
    *ret = top;
    status = tctl_spec_read_outputs(r);
    return status ? status : read_strings(r, top, "secrets", &spec->secrets, &spec->n_secrets);
}

/* Either a trainer or a command, and what belongs to each. */
static void check_kind(const tctl_spec_reader *r)
{
    bool train = has_key(r, "train"), run = has_key(r, "run");
    if (!train && !run) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(r->root->loc),
                     "the spec needs the key 'train' or 'run'");
        tctl_hint(
            err, "train: {use: native, ...} trains here; run: 'python3 train.py' runs a command of your own");
        return;
    }
    if (train && run) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_spec_key_loc(r->root, "run"),
                     "a spec has 'train' or 'run', not both");
        tctl_note_at(err, tctl_spec_key_loc(r->root, "train"), "'train' stands here");
        return;
    }
    const char *wrong = train ? "outputs" : "model";
    if (has_key(r, wrong)) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_spec_key_loc(r->root, wrong), "'%s' has no meaning with '%s'",
                     wrong, train ? "train" : "run");
        tctl_hint(err, "%s",
                  train ? "what a trainer and its stages leave is collected without being named"
                        : "a command brings its own model");
    }
}

/* What a trainer with operators cannot do without. */
static void check_needs(const tctl_spec_reader *r)
{
    const tctl_use *use = r->spec->trainer;
    const tctl_trainer *trainer =
        use && use->plugin ? tctl_plugin_extension(use->plugin, TCTL_TRAINER_ID) : NULL;
    if (!trainer || !TCTL_HAS(tctl_trainer, trainer->struct_size, ops) || trainer->n_ops == 0)
        return;
    static const char *const needed[][2] = {
        {"data", "data: {train: {use: ...}, test: {use: ...}} names what is trained on"},
        {"model", "model: a list of operators such as '- {op: conv, out: 32, kernel: 3}'"},
    };
    for (size_t i = 0; i < 2; i++) {
        if (has_key(r, needed[i][0]))
            continue;
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, tctl_loc_start(r->root->loc), "the spec needs the key '%s'",
                     needed[i][0]);
        tctl_note(err, "plugin '%s' trains a model of operators", use->plugin->name);
        tctl_hint(err, "%s", needed[i][1]);
    }
}

static void read_contract(const tctl_spec_reader *r, const tctl_config *top)
{
    tctl_spec *spec = r->spec;
    const tctl_value *value = value_of(top, "contract");
    spec->contract = spec->command ? TCTL_CONTRACT_MACHINE : TCTL_CONTRACT_EXACT;
    if (!value)
        return;
    if (strcmp(value->text, "off") == 0)
        spec->contract = TCTL_CONTRACT_OFF;
    else
        spec->contract = strcmp(value->text, "exact") == 0 ? TCTL_CONTRACT_EXACT : TCTL_CONTRACT_MACHINE;
    if (spec->contract != TCTL_CONTRACT_EXACT || !spec->command)
        return;
    tctl_error *err = tctl_reader_error(&r->ctx);
    tctl_fail_at(err, TCTL_ESPEC, value->loc, "a command cannot keep the contract 'exact'");
    tctl_hint(err, "write 'contract: machine': the same bits on machines of one kind");
}

static tctl_status read_resources(tctl_spec_reader *r)
{
    const tctl_spec_section *section = tctl_spec_section_find("resources");
    const tctl_yaml_node *node = tctl_yaml_get(r->root, "resources");
    const tctl_yaml_node nothing = {.kind = TCTL_YAML_MAPPING, .loc = tctl_loc_start(r->root->loc)};
    tctl_config *config = NULL;
    bool empty = node && node->kind == TCTL_YAML_SCALAR && node->length == 0 && !node->quoted;
    tctl_status status =
        tctl_config_read(&r->ctx, node && !empty ? node : &nothing, section->options, section->n_options,
                         sizeof *section->options, NULL, "'resources'", "", &config);
    if (status)
        return status;
    const tctl_value *threads = value_of(config, "threads"), *workers = value_of(config, "workers");
    const tctl_value *prefetch = value_of(config, "prefetch"), *cache = value_of(config, "cache");
    const tctl_value *device = value_of(config, "device");
    r->spec->resources = (tctl_resources){
        .struct_size = sizeof(tctl_resources),
        .threads = threads ? (uint32_t)threads->i : tctl_cpus_available(),
        .workers = workers ? (uint32_t)workers->i : 0,
        .prefetch = prefetch ? (uint32_t)prefetch->i : 0,
        .cache_bytes = cache ? (uint64_t)cache->i : 0,
        .device = device ? device->text : "cpu",
    };
    return TCTL_OK;
}

static tctl_status read_parts(tctl_spec_reader *r, const tctl_spec_request *request)
{
    tctl_config *top = NULL;
    tctl_status status = tctl_spec_override(r, request);
    if (!status)
        status = read_top(r, &top);
    if (status)
        return status;
    check_kind(r);
    check_needs(r);
    read_contract(r, top);
    status = tctl_spec_read_data(r);
    if (!status)
        status = tctl_spec_read_model(r);
    if (!status)
        status = tctl_spec_read_stages(r);
    if (!status)
        status = read_resources(r);
    return status ? status : tctl_spec_read_determinism(r); /* its defaults follow the contract */
}

/* TCTL_EPLUGIN if only plugins are to blame, else TCTL_ESPEC. */
static tctl_status verdict(const tctl_diags *diags)
{
    tctl_status status = diags->n > 0 && diags->n_dropped == 0 ? TCTL_EPLUGIN : TCTL_ESPEC;
    for (size_t i = 0; i < diags->n; i++) {
        if (diags->errors[i].code != TCTL_EPLUGIN)
            status = TCTL_ESPEC;
    }
    return status;
}

static tctl_status load(tctl_spec *spec, const tctl_spec_request *request, const tctl_plugin_finder *finder,
                        tctl_diags *diags)
{
    tctl_error err = {0};
    tctl_status status = open_spec(spec, request, &err);
    if (status) {
        err.loc.file = status == TCTL_ENOMEM ? NULL : spec->path;
        *tctl_diags_add(diags) = err;
        return status;
    }
    tctl_spec_reader r = {.ctx = {spec->arena, diags, spec->folder, finder}, .spec = spec};
    status = tctl_yaml_parse(spec->arena, spec->path, spec->text, spec->text_size, &r.root, diags);
    if (status && (status != TCTL_ESPEC || !r.root))
        return status;
    status = check_root(&r);
    if (status)
        return status;
    status = read_parts(&r, request);
    if (status)
        return status;
    if (tctl_diags_count(diags) > 0)
        return verdict(diags);
    spec->recipe = tctl_spec_recipe(spec);
    return spec->recipe ? TCTL_OK : tctl_reader_no_memory(&r.ctx, spec->text_size);
}

tctl_status tctl_spec_load(const tctl_spec_request *request, const tctl_plugin_finder *finder,
                           tctl_spec **ret, tctl_diags *diags)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_spec *spec = arena ? tctl_arena_take(arena, sizeof *spec) : NULL;
    *ret = spec;
    if (!spec) {
        tctl_arena_destroy(arena);
        return tctl_fail_memory(tctl_diags_add(diags), sizeof *spec);
    }
    spec->arena = arena;
    return load(spec, request, finder, diags);
}

void tctl_spec_destroy(tctl_spec *spec)
{
    if (!spec)
        return;
    json_decref(spec->recipe);
    tctl_arena_destroy(spec->arena);
}
