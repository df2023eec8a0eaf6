/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digesting, sealing and loading manifests. The members are in manifest_table.c.
 */
#include "manifest/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "manifest/path_json.h"

tctl_status tctl_json_digest(const json_t *value, tctl_sha256 *ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_status st = tctl_json_canonical(value, &text, err);
    if (st == TCTL_OK && text.broken)
        st = tctl_fail_memory(err, text.size);
    if (st == TCTL_OK)
        *ret = tctl_sha256_of(text.data, text.size);
    tctl_buf_release(&text);
    return st;
}

json_t *tctl_json_count(uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}

json_t *tctl_json_sha256(const tctl_sha256 *digest)
{
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(digest, hex);
    return json_string(hex);
}

static const char *type_word(char type)
{
    switch (type) {
    case 'x':
        return "executable";
    case 'l':
        return "link";
    case 'd':
        return "folder";
    default:
        return "file";
    }
}

json_t *tctl_outputs_json(const tctl_tree *tree)
{
    json_t *list = json_array();
    for (uint64_t i = 0; list != NULL && i < tree->n_entries; i++) {
        const tctl_tree_entry *e = &tree->entries[i];
        json_t *one = json_pack("{s:o, s:s, s:o, s:o}", "path", tctl_path_to_json(e->path), "type",
                                type_word(e->type), "bytes", tctl_json_count(e->size), "sha256",
                                e->type == 'd' ? json_null() : tctl_json_sha256(&e->digest));
        if (one == NULL || json_array_append_new(list, one) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static json_t *result_value(const json_t *output)
{
    const char *type = json_string_value(json_object_get(output, "type"));
    const char *digest = json_string_value(json_object_get(output, "sha256"));
    if (type != NULL && strcmp(type, "folder") == 0)
        return json_string("folder");
    if (type == NULL || digest == NULL)
        return NULL;
    const json_t *content = json_object_get(output, "content");
    const char *format = json_string_value(json_object_get(content, "format"));
    const char *of_content = json_string_value(json_object_get(content, "sha256"));
    if (format != NULL && of_content != NULL)
        return json_sprintf("content:%s:%s", format, of_content);
    return json_sprintf("%s%s", strcmp(type, "link") == 0 ? "link:" : "", digest);
}

tctl_status tctl_result_digest(const json_t *outputs, const tctl_sha256 *trace, int exit_code,
                               tctl_sha256 *ret, tctl_error *err)
{
    json_t *map = json_object();
    size_t i;
    json_t *output;
    json_array_foreach((json_t *)(uintptr_t)outputs, i, output)
    {
        const char *as = json_string_value(json_object_get(output, "as"));
        const char *path = as != NULL ? as : json_string_value(json_object_get(output, "path"));
        if (path == NULL || json_object_set_new(map, path, result_value(output)) != 0) {
            json_decref(map);
            return tctl_fail(err, TCTL_EFORMAT, "output %zu has no path, type or digest", i);
        }
    }
    json_t *result = json_pack("{s:i, s:o, s:o}", "exit_code", exit_code, "outputs", map, "trace",
                               trace == NULL ? json_null() : tctl_json_sha256(trace));
    tctl_status st = result == NULL ? tctl_fail_memory(err, 0) : tctl_json_digest(result, ret, err);
    json_decref(result);
    return st;
}

/* <run>/manifest.json, from malloc. */
static char *manifest_path(const char *run_path)
{
    tctl_buf path = TCTL_BUF_INIT;
    tctl_buf_add_format(&path, "%s/manifest.json", run_path);
    return tctl_buf_detach(&path);
}

/* What a run can't be verified without, and the run's name, are there before the manifest is; what is derived from them
 * or from the manifest need not be. */
static tctl_status sync_spec(const char *run_path, tctl_error *err)
{
    tctl_buf path = TCTL_BUF_INIT;
    tctl_buf_add_format(&path, "%s/spec.yaml", run_path);
    const char *text = tctl_buf_text(&path);
    tctl_status st = text == NULL ? tctl_fail_memory(err, path.size) : TCTL_OK;
    if (st == TCTL_OK && tctl_path_exists(text))
        st = tctl_file_sync(text, err);
    if (st == TCTL_OK)
        st = tctl_fsync_parent(run_path, err);
    tctl_buf_release(&path);
    return st;
}

tctl_status tctl_manifest_seal(const char *run_path, const json_t *manifest, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    char *path = manifest_path(run_path);
    tctl_status st = path == NULL ? tctl_fail_memory(err, strlen(run_path)) : TCTL_OK;
    if (st == TCTL_OK && tctl_manifest_check(manifest, path, err) != TCTL_OK)
        st = TCTL_EINVAL;
    if (st == TCTL_OK)
        st = tctl_json_pretty(manifest, &text, err);
    if (st == TCTL_OK && text.broken)
        st = tctl_fail_memory(err, text.size);
    if (st == TCTL_OK)
        st = sync_spec(run_path, err);
    if (st == TCTL_OK)
        st = tctl_file_replace(path, text.data, text.size, 0444, err);
    tctl_buf_release(&text);
    free(path);
    return st;
}

tctl_status tctl_manifest_parse(const char *name, const char *text, size_t size, json_t **ret,
                                tctl_error *err)
{
    json_t *manifest = NULL;
    tctl_status st = tctl_json_parse(name, text, size, &manifest, err);
    if (st == TCTL_OK)
        st = tctl_manifest_check(manifest, name, err);
    if (st == TCTL_OK)
        *ret = manifest;
    else
        json_decref(manifest);
    return st;
}

tctl_status tctl_manifest_load(const char *run_path, json_t **ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    char *path = manifest_path(run_path);
    tctl_status st = path == NULL ? tctl_fail_memory(err, strlen(run_path))
                                  : tctl_file_read(path, TCTL_MANIFEST_LIMIT, &text, err);
    if (st == TCTL_OK)
        st = tctl_manifest_parse(path, tctl_buf_text(&text), text.size, ret, err);
    tctl_buf_release(&text);
    free(path);
    return st;
}
