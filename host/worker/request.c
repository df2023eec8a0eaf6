/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. */
#include "host/worker/request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "manifest/path_json.h"

#define LIMIT ((size_t)4 << 20)

typedef struct reader {
    tctl_arena *arena;
    const char *name; /* of the file */
    const json_t *root;
    tctl_error *err;
} reader;

static tctl_status text(const reader *r, const char *member, bool needed, const char **ret)
{
    const json_t *value = json_object_get(r->root, member);
    if (!value || json_is_null(value)) {
        if (needed)
            return tctl_fail(r->err, TCTL_EFORMAT, "'%s' has no member '%s'", r->name, member);
        *ret = NULL;
        return TCTL_OK;
    }
    if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
        return tctl_fail(r->err, TCTL_EFORMAT, "'%s': '%s' must be a text", r->name, member);
    *ret = tctl_arena_copy(r->arena, json_string_value(value), json_string_length(value));
    return *ret ? TCTL_OK : tctl_fail_memory(r->err, json_string_length(value));
}

/* A path, with the escapes of manifest/path_json.h. */
static tctl_status path_text(const reader *r, const char *member, const char **ret)
{
    const json_t *value = json_object_get(r->root, member);
    char *path = NULL;
    if (!value)
        return tctl_fail(r->err, TCTL_EFORMAT, "'%s' has no member '%s'", r->name, member);
    tctl_status status = tctl_path_from_json(value, &path, r->err);
    if (status)
        return tctl_fail(r->err, status, "'%s': '%s' must be a path", r->name, member);
    *ret = tctl_arena_copy(r->arena, path, strlen(path));
    free(path);
    return *ret ? TCTL_OK : tctl_fail_memory(r->err, 0);
}

/* A NULL-ended list; an absent one is empty. */
static tctl_status texts(const reader *r, const char *member, const char *const **ret)
{
    const json_t *list = json_object_get(r->root, member);
    size_t n = json_array_size(list);
    if (list && !json_is_array(list) && !json_is_null(list))
        return tctl_fail(r->err, TCTL_EFORMAT, "'%s': '%s' must be a list of texts", r->name, member);
    const char **items = tctl_arena_take_array(r->arena, n + 1, sizeof *items);
    if (!items)
        return tctl_fail_memory(r->err, n * sizeof *items);
    for (size_t i = 0; i < n; i++) {
        const char *item = json_string_value(json_array_get(list, i));
        if (!item)
            return tctl_fail(r->err, TCTL_EFORMAT, "'%s': '%s' must be a list of texts", r->name, member);
        items[i] = tctl_arena_copy(r->arena, item, strlen(item));
        if (!items[i])
            return tctl_fail_memory(r->err, strlen(item));
    }
    *ret = items;
    return TCTL_OK;
}

/* A step of "trace"; absent: not wanted. */
static tctl_status step(const reader *r, const json_t *trace, const char *member, bool *is_wanted,
                        uint64_t *ret)
{
    const json_t *value = json_object_get(trace, member);
    const char *digits = json_string_value(value);
    if (!value || json_is_null(value))
        return TCTL_OK;
    if (!digits || !tctl_parse_uint(digits, strlen(digits), ret))
        return tctl_fail(r->err, TCTL_EFORMAT, "'%s': '%s' of 'trace' must be a step", r->name, member);
    *is_wanted = true;
    return TCTL_OK;
}

static tctl_status read_wish(const reader *r, const char *run, tctl_trace_wish *ret)
{
    const json_t *trace = json_object_get(r->root, "trace");
    bool has_every = false;
    *ret = (tctl_trace_wish){.folder = tctl_arena_copy(r->arena, run, strlen(run))};
    tctl_status status = ret->folder ? TCTL_OK : tctl_fail_memory(r->err, strlen(run));
    if (!status)
        status = step(r, trace, "every", &has_every, &ret->every);
    if (!status)
        status = step(r, trace, "stop", &ret->stops, &ret->stop);
    return status ? status : step(r, trace, "dump", &ret->dumps, &ret->dump);
}

static tctl_status read_members(const reader *r, const char *run, tctl_worker_request *ret)
{
    const char *digest = NULL;
    tctl_status status = path_text(r, "path", &ret->spec.path);
    if (!status)
        status = path_text(r, "folder", &ret->spec.folder);
    if (!status)
        status = text(r, "seed", false, &ret->spec.seed);
    if (!status)
        status = path_text(r, "out", &ret->out);
    if (!status)
        status = text(r, "recipe_digest", true, &digest);
    if (!status)
        status = texts(r, "set", &ret->spec.set);
    if (!status)
        status = texts(r, "without", &ret->spec.without);
    if (!status)
        status = read_wish(r, run, &ret->wish);
    if (status)
        return status;
    if (!tctl_sha256_parse(digest, &ret->recipe_digest))
        return tctl_fail(r->err, TCTL_EFORMAT, "'%s': 'recipe_digest' is no SHA-256", r->name);
    ret->spec.text_path = tctl_path_join(r->arena, run, "spec.yaml");
    ret->partial = tctl_path_join(r->arena, run, "partial");
    ret->metrics = tctl_path_join(r->arena, run, "metrics.jsonl");
    ret->trace = tctl_path_join(r->arena, run, "trace.bin");
    if (!ret->spec.text_path || !ret->partial || !ret->metrics || !ret->trace)
        return tctl_fail_memory(r->err, strlen(run));
    return TCTL_OK;
}

tctl_status tctl_worker_request_read(tctl_arena *arena, const char *run, tctl_worker_request *ret,
                                     tctl_error *err)
{
    const char *path = tctl_path_join(arena, run, "request.json");
    tctl_buf bytes = TCTL_BUF_INIT;
    json_t *root = NULL;
    if (!path)
        return tctl_fail_memory(err, strlen(run));
    tctl_status status = tctl_file_read(path, LIMIT, &bytes, err);
    if (!status)
        status = tctl_json_parse(path, bytes.data ? bytes.data : "", bytes.size, &root, err);
    if (!status && !json_is_object(root))
        status = tctl_fail(err, TCTL_EFORMAT, "'%s' is no JSON object", path);
    const reader r = {arena, path, root, err};
    tctl_worker_request request;
    memset(&request, 0, sizeof request);
    if (!status)
        status = read_members(&r, run, &request);
    if (!status)
        *ret = request;
    json_decref(root);
    tctl_buf_release(&bytes);
    return status;
}
