/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `verify` checks before it does the work again: that what was recorded still lies there, and that what would go in
 * now is what went in then.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "launcher/classify.h"
#include "launcher/inputs.h"
#include "launcher/record.h"
#include "launcher/verify.h"
#include "manifest/code.h"
#include "manifest/compare.h"
#include "manifest/environment.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static void note(tctl_verification *v, const char *check, bool ok, const char *what)
{
    json_array_append_new(v->checks, json_pack("{s:s, s:b, s:o}", "check", check, "ok", (int)ok, "what",
                                               tctl_text_to_json(what)));
}

void tctl_verify_passed(tctl_verification *v, const char *check, const char *what)
{
    note(v, check, true, what);
}

bool tctl_verify_failed(tctl_verification *v, const char *check, int verdict, const char *fmt, ...)
{
    char block[TCTL_ERROR_MESSAGE + TCTL_ERROR_NOTE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(block, sizeof block, fmt, ap);
    va_end(ap);
    note(v, check, false, block);
    if (v->verdict == TCTL_VERDICT_NONE) {
        v->verdict = verdict;
        v->reason = tctl_arena_copy(v->arena, block, strlen(block));
    }
    return false;
}

/* The message and the first note of an error. */
static bool failed_with(tctl_verification *v, const char *check, int verdict, const tctl_error *err)
{
    const char *note_text = NULL;
    for (uint32_t i = 0; i < err->n_notes; i++)
        note_text = err->notes[i];
    if (note_text != NULL)
        return tctl_verify_failed(v, check, verdict, "%s (%s)", err->message, note_text);
    return tctl_verify_failed(v, check, verdict, "%s", err->message);
}

/* ---- what was recorded ---------------------------------------------------------------------------------- */

/* A manifest that contradicts itself was edited. */
static bool check_digests(tctl_verification *v)
{
    tctl_error err = {0};
    const json_t *m = v->manifest, *trace = json_object_get(m, "trace");
    tctl_sha256 recipe, result, experiment, of_trace;
    bool has_trace = json_is_object(trace);
    char hex[TCTL_SHA256_HEX];
    tctl_status st = tctl_json_digest(json_object_get(m, "recipe"), &recipe, &err);
    if (st == TCTL_OK && has_trace && !tctl_sha256_parse(text_of(trace, "sha256"), &of_trace))
        st = tctl_fail(&err, TCTL_EFORMAT, "the digest of the trace is none");
    if (st == TCTL_OK)
        st = tctl_result_digest(json_object_get(m, "outputs"), has_trace ? &of_trace : NULL,
                                (int)json_integer_value(json_object_get(m, "exit_code")), &result, &err);
    if (st == TCTL_OK)
        st = tctl_experiment_digest(m, &experiment, &err);
    if (st != TCTL_OK)
        return failed_with(v, "manifest", TCTL_VERDICT_UNVERIFIABLE, &err);
    const struct {
        const char *key;
        const tctl_sha256 *digest;
    } all[] = {{"recipe_digest", &recipe}, {"result_digest", &result}, {"experiment_digest", &experiment}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tctl_sha256_hex(all[i].digest, hex);
        if (strcmp(hex, text_of(m, all[i].key)) != 0)
            return tctl_verify_failed(v, "manifest", TCTL_VERDICT_UNVERIFIABLE,
                                      "the manifest was changed: its '%s' does not fit its content",
                                      all[i].key);
    }
    tctl_verify_passed(v, "manifest", "its digests fit its content");
    return true;
}

static bool check_outputs(tctl_verification *v)
{
    tctl_error err = {0};
    tctl_tree tree = {0};
    const tctl_tree_request request = {0};
    const char *out = tctl_path_join(v->arena, v->run->path, "out");
    const json_t *was = json_object_get(v->manifest, "outputs");
    if (out == NULL || tctl_tree_hash(out, &request, v->arena, &tree, &err) != TCTL_OK)
        return failed_with(v, "outputs", TCTL_VERDICT_DIFFERS, &err);
    json_t *is = tctl_outputs_json(&tree), *differences = tctl_compare_outputs(was, is);
    size_t i;
    json_t *one;
    const char *change = NULL, *path = NULL;
    json_array_foreach(differences, i, one)
    {
        bool is_new = strcmp(text_of(one, "change"), "new") == 0;
        if (change != NULL || is_new) /* what a command left and did not declare was never recorded */
            continue;
        change =
            strcmp(text_of(one, "change"), "missing") == 0 ? "is missing" : "changed since it was recorded";
        path = tctl_arena_copy(v->arena, text_of(one, "path"), strlen(text_of(one, "path")));
    }
    json_decref(is);
    json_decref(differences);
    if (change != NULL)
        return tctl_verify_failed(v, "outputs", TCTL_VERDICT_DIFFERS, "output '%s' %s", path, change);
    tctl_verify_passed(v, "outputs", tctl_arena_format(v->arena, "%zu as recorded", json_array_size(was)));
    return true;
}

/* A file of the run directory against its recorded digest. */
static bool check_file(tctl_verification *v, const char *name, const char *recorded, int verdict)
{
    tctl_error err = {0};
    tctl_sha256 is;
    uint64_t size = 0;
    char hex[TCTL_SHA256_HEX];
    const char *path = tctl_path_join(v->arena, v->run->path, name);
    if (path == NULL || tctl_sha256_file(path, &is, &size, &err) != TCTL_OK)
        return failed_with(v, name, verdict, &err);
    tctl_sha256_hex(&is, hex);
    if (strcmp(hex, recorded) != 0)
        return tctl_verify_failed(v, name, verdict, "'%s' of the run changed since it was recorded", name);
    tctl_verify_passed(v, name, "as recorded");
    return true;
}

bool tctl_verify_recorded(tctl_verification *v)
{
    const json_t *request = json_object_get(v->manifest, "request"),
                 *trace = json_object_get(v->manifest, "trace");
    if (!check_digests(v) || !check_outputs(v))
        return false;
    if (json_is_object(trace) && !check_file(v, "trace.bin", text_of(trace, "sha256"), TCTL_VERDICT_DIFFERS))
        return false;
    return check_file(v, "spec.yaml", text_of(request, "spec_sha256"), TCTL_VERDICT_UNVERIFIABLE);
}

/* ---- what went in --------------------------------------------------------------------------------------- */

/* Goes on in spite of a failed check if the user said so. */
static bool unless_anyway(tctl_verification *v, const char *check, const char *message)
{
    if (v->anyway) {
        note(v, check, false, message);
        return true;
    }
    return tctl_verify_failed(v, check, TCTL_VERDICT_UNVERIFIABLE, "%s", message);
}

/* The verdict where nothing is run again: by what went in alone. Always returns false. */
static bool by_inputs(tctl_verification *v, const json_t *is)
{
    const tctl_evidence evidence = {.was = v->manifest, .is = is, .data = v->data};
    json_decref(v->first_divergence);
    v->first_divergence = tctl_classify(&evidence);
    return false;
}

/* The same for one plugin that has another digest now. */
static bool by_plugin(tctl_verification *v, const char *name, const char *hex)
{
    json_t *plugins = json_deep_copy(json_object_get(v->manifest, "plugins"));
    size_t i;
    json_t *plugin;
    json_array_foreach(plugins, i, plugin)
    {
        if (strcmp(text_of(plugin, "name"), name) == 0)
            json_object_set_new(plugin, "sha256", json_string(hex));
    }
    json_t *side = json_pack("{s:o}", "plugins", plugins);
    by_inputs(v, side);
    json_decref(side);
    return false;
}

static bool check_data(tctl_verification *v)
{
    tctl_error err = {0};
    tctl_inputs inputs = {0};
    tctl_input_change change = {0};
    const char *listings = tctl_path_join(v->arena, v->run->path, "inputs");
    const char *cache_path = tctl_stat_cache_default_path(v->arena);
    tctl_status st = tctl_inputs_recorded(v->arena, json_object_get(v->manifest, "data"), &inputs, &err);
    if (st == TCTL_OK) {
        tctl_stat_cache *cache = cache_path == NULL ? NULL : tctl_stat_cache_open(cache_path, NULL);
        st = tctl_inputs_check(v->arena, &inputs, cache, listings, "since it was recorded", &change, &err);
        tctl_stat_cache_close(cache);
    }
    if (st != TCTL_OK) {
        const char *more = err.n_notes > 1 ? err.notes[1] : "";
        const char *said = tctl_arena_format(v->arena, "%s%s%s%s", err.message, more[0] != '\0' ? " (" : "",
                                             more, more[0] != '\0' ? ")" : "");
        if (change.name != NULL)
            v->data = json_pack("[{s:s, s:s, s:o}]", "name", change.name, "change",
                                change.in_list ? "list" : "bytes", "what", tctl_text_to_json(said));
        return unless_anyway(v, "data", said) || by_inputs(v, NULL);
    }
    tctl_verify_passed(v, "data", tctl_arena_format(v->arena, "%u inputs as recorded", (unsigned)inputs.n));
    return true;
}

/* Before one is loaded: a file at the recorded place must have the recorded digest. */
static bool check_plugin_files(tctl_verification *v)
{
    size_t i;
    json_t *plugin;
    json_array_foreach(json_object_get(v->manifest, "plugins"), i, plugin)
    {
        tctl_sha256 is;
        uint64_t size = 0;
        char hex[TCTL_SHA256_HEX];
        char *path = NULL;
        if (tctl_path_from_json(json_object_get(plugin, "path"), &path, NULL) != TCTL_OK)
            continue;
        bool there = tctl_sha256_file(path, &is, &size, NULL) == TCTL_OK;
        free(path);
        if (!there)
            continue;
        tctl_sha256_hex(&is, hex);
        if (strcmp(hex, text_of(plugin, "sha256")) == 0)
            continue;
        const char *said = tctl_arena_format(v->arena, "plugin '%s' changed since it was recorded ('%s')",
                                             text_of(plugin, "name"), text_of(plugin, "path"));
        if (!unless_anyway(v, "plugins", said))
            return by_plugin(v, text_of(plugin, "name"), hex);
    }
    return true;
}

/* Never ends verifying: on another machine class the bits may still be the same, and if not, this says why. */
static void check_machine(tctl_verification *v)
{
    tctl_error err = {0};
    json_t *now = NULL;
    if (tctl_environment_capture((const char *const *)environ, NULL, &now, &err) != TCTL_OK) {
        note(v, "machine", false, err.message);
        return;
    }
    v->differences = tctl_environment_differences(json_object_get(v->manifest, "environment"), now);
    v->environment = now;
    size_t i;
    json_t *one;
    json_array_foreach(v->differences, i, one)
        note(v, "machine", false, tctl_arena_format(v->arena, "'%s' differs", text_of(one, "field")));
    if (json_array_size(v->differences) == 0)
        tctl_verify_passed(v, "machine", "the same class as recorded");
}

bool tctl_verify_inputs(tctl_verification *v)
{
    if (!check_data(v) || !check_plugin_files(v))
        return false;
    check_machine(v);
    return true;
}

static const json_t *recorded_plugin(const json_t *manifest, const char *name)
{
    size_t i;
    json_t *plugin;
    json_array_foreach(json_object_get(manifest, "plugins"), i, plugin)
    {
        if (strcmp(text_of(plugin, "name"), name) == 0)
            return plugin;
    }
    return NULL;
}

bool tctl_verify_resolved(tctl_verification *v, const tctl_experiment *experiment)
{
    char hex[TCTL_SHA256_HEX];
    uint32_t n = 0;
    tctl_plugins_loaded(experiment->plugins, 0, &n);
    for (uint32_t i = 0; i < n; i++) {
        const tctl_loaded *loaded = tctl_plugins_loaded(experiment->plugins, i, NULL);
        const json_t *was = recorded_plugin(v->manifest, loaded->plugin->name);
        tctl_sha256_hex(&loaded->digest, hex);
        if (was == NULL || strcmp(hex, text_of(was, "sha256")) == 0)
            continue;
        const char *said = tctl_arena_format(v->arena, "plugin '%s' is not the one that ran: '%s'",
                                             loaded->plugin->name, loaded->path);
        if (!unless_anyway(v, "plugins", said))
            return by_plugin(v, loaded->plugin->name, hex);
    }
    tctl_sha256_hex(&experiment->recipe_digest, hex);
    if (strcmp(hex, text_of(v->manifest, "recipe_digest")) != 0) {
        json_t *list = tctl_compare_json(json_object_get(v->manifest, "recipe"), experiment->spec->recipe, 1);
        const char *where = text_of(json_array_get(list, 0), "path");
        tctl_verify_failed(v, "recipe", TCTL_VERDICT_UNVERIFIABLE,
                           "the spec resolves to another recipe now: '%s' differs", where);
        json_decref(list);
        return false;
    }
    tctl_verify_passed(v, "plugins", tctl_arena_format(v->arena, "%u loaded", (unsigned)n));
    tctl_verify_passed(v, "recipe", "resolves to the recorded one");
    return true;
}

/* ---- where a command runs ------------------------------------------------------------------------------- */

/* Data inside the spec's folder was left out of the kept code: it is linked to where it lies. */
static tctl_status link_data(const tctl_verification *v, const tctl_spec *spec, const char *was,
                             const char *place, tctl_error *err)
{
    size_t length = strlen(was);
    for (uint32_t i = 0; i < spec->n_data; i++) {
        const char *path = spec->data[i].path;
        if (path == NULL || strncmp(path, was, length) != 0 || path[length] != '/')
            continue;
        size_t end = strlen(path);
        while (end > length + 1 && path[end - 1] == '/')
            end--;
        const char *from =
            tctl_arena_format(v->arena, "%s/%.*s", place, (int)(end - length - 1), path + length + 1);
        const char *folder = from == NULL ? NULL : tctl_path_folder(v->arena, from);
        tctl_status st =
            folder == NULL ? tctl_fail_memory(err, PATH_MAX) : tctl_make_folders(folder, 0777, err);
        if (st == TCTL_OK && symlink(path, from) != 0 && errno != EEXIST)
            st = tctl_fail_errno(err, errno, "cannot link '%s'", from);
        if (st != TCTL_OK)
            return st;
    }
    return TCTL_OK;
}

bool tctl_verify_place(tctl_verification *v, const tctl_spec *spec, const char *store, const char *folder,
                       const char **ret)
{
    tctl_error err = {0};
    const json_t *code = json_object_get(v->manifest, "code");
    char *was = NULL;
    *ret = spec->folder;
    if (spec->command == NULL)
        return true;
    if (!json_is_string(json_object_get(code, "digest"))) {
        note(v, "code", false, "no code was recorded: the spec's folder is used as it is now");
        return true;
    }
    const char *place = tctl_path_join(v->arena, folder, "code");
    tctl_status st = place == NULL ? tctl_fail_memory(&err, PATH_MAX) : tctl_make_folders(place, 0777, &err);
    if (st == TCTL_OK)
        st = tctl_code_restore(code, store, place, &err);
    if (st == TCTL_OK)
        st = tctl_path_from_json(json_object_get(json_object_get(v->manifest, "request"), "folder"), &was,
                                 &err);
    const char *below = text_of(code, "folder");
    if (st == TCTL_OK && below[0] != '\0' && strcmp(below, ".") != 0)
        place = tctl_path_join(v->arena, place, below);
    if (st == TCTL_OK)
        st = place == NULL ? tctl_fail_memory(&err, PATH_MAX) : tctl_make_folders(place, 0777, &err);
    if (st == TCTL_OK)
        st = link_data(v, spec, was, place, &err);
    free(was);
    if (st != TCTL_OK)
        return failed_with(v, "code", TCTL_VERDICT_UNVERIFIABLE, &err);
    tctl_verify_passed(v, "code", "restored");
    *ret = place;
    return true;
}
