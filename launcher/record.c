/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting the manifest together. docs/manifest.md describes the members.
 */
#include "launcher/record.h"

#include <string.h>

#include "launcher/experiment.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

static json_t *texts(const char *const *list)
{
    json_t *ret = json_array();
    for (; list != NULL && *list != NULL; list++)
        json_array_append_new(ret, json_string(*list));
    return ret;
}

static json_t *run_json(const tctl_record *r)
{
    json_t *left = r->end->child.left;
    return json_pack("{s:s, s:s, s:o, s:f, s:o, s:o}", "id", r->run->id, "name", r->spec->name, "started",
                     tctl_json_count(tctl_run_started(r->run)), "seconds", r->end->child.seconds,
                     "peak_bytes", tctl_json_count(r->end->child.peak_bytes), "left",
                     left == NULL ? json_array() : json_incref(left));
}

static json_t *request_json(const tctl_record *r)
{
    tctl_sha256 spec = tctl_sha256_of(r->spec->text, r->spec->text_size);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s?}", "spec", tctl_path_to_json(r->spec->path), "folder",
                     tctl_path_to_json(r->spec->folder), "spec_sha256", tctl_json_sha256(&spec), "set",
                     texts(r->asked->set), "without", texts(r->asked->without), "seed", r->asked->seed);
}

static json_t *resources_json(const tctl_resources *r)
{
    return json_pack("{s:i, s:i, s:i, s:o, s:s}", "threads", (int)r->threads, "workers", (int)r->workers,
                     "prefetch", (int)r->prefetch, "cache_bytes", tctl_json_count(r->cache_bytes), "device",
                     r->device == NULL ? "cpu" : r->device);
}

/* A member of worker.json; an empty list where there is no worker. */
static json_t *from_worker(const tctl_record *r, const char *key)
{
    json_t *value = json_object_get(r->end->worker, key);
    return json_is_array(value) ? json_incref(value) : json_array();
}

static json_t *digest_map(const json_t *list)
{
    json_t *map = json_object();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name != NULL)
            json_object_set(map, name, json_object_get(item, "sha256"));
    }
    return map;
}

tctl_status tctl_experiment_digest(const json_t *manifest, tctl_sha256 *ret, tctl_error *err)
{
    json_t *code = json_object_get(json_object_get(manifest, "code"), "digest");
    json_t *all = json_pack("{s:O, s:o, s:o, s:o}", "recipe", json_object_get(manifest, "recipe_digest"),
                            "data", digest_map(json_object_get(manifest, "data")), "plugins",
                            digest_map(json_object_get(manifest, "plugins")), "code",
                            json_is_string(code) ? json_incref(code) : json_null());
    tctl_status st = all == NULL ? tctl_fail_memory(err, 0) : tctl_json_digest(all, ret, err);
    json_decref(all);
    return st;
}

static json_t *put_together(const tctl_record *r)
{
    bool is_command = r->spec->command != NULL;
    json_t *none = json_null();
    json_t *m = json_pack(
        "{s:s, s:s, s:o, s:s, s:o, s:O, s:o, s:o, s:i, s:o, s:o, s:s, s:s?}", "format", TCTL_MANIFEST_FORMAT,
        "trainctl", TRAINCTL_VERSION, "run", run_json(r), "contract", tctl_contract_name(r->spec->contract),
        "seed", tctl_json_count(r->spec->seed), "recipe", r->spec->recipe, "recipe_digest",
        tctl_json_sha256(r->recipe_digest), "result_digest", tctl_json_sha256(&r->end->result), "exit_code",
        r->end->child.exit_code, "request", request_json(r), "resources", resources_json(&r->spec->resources),
        "child", is_command ? "command" : "worker", "command", r->spec->command);
    if (m == NULL)
        return NULL;
    json_object_set(m, "code", r->capture->code);
    json_object_set_new(m, "data", tctl_inputs_json(&r->capture->inputs));
    json_object_set_new(m, "plugins", from_worker(r, "plugins"));
    json_object_set_new(m, "stages", from_worker(r, "stages"));
    if (r->end->shared_objects != NULL)
        json_object_set(m, "shared_objects", r->end->shared_objects);
    else
        json_object_set_new(m, "shared_objects", from_worker(r, "shared_objects"));
    json_object_set(m, "interposer", r->end->interposer == NULL ? none : r->end->interposer);
    if (r->end->uncontrolled != NULL)
        json_object_set(m, "uncontrolled", r->end->uncontrolled);
    json_object_set(m, "environment", r->capture->environment);
    json_object_set(m, "envelope", r->end->envelope);
    json_object_set_new(m, "determinism", tctl_config_json(r->spec->determinism.config, false));
    json_object_set(m, "python", r->end->python == NULL ? none : r->end->python);
    json_object_set(m, "uncontrolled", r->end->uncontrolled);
    json_object_set(m, "outputs", r->end->outputs);
    json_object_set(m, "trace", r->end->trace == NULL ? none : r->end->trace);
    json_object_set(m, "metrics", r->end->child.last_metrics == NULL ? none : r->end->child.last_metrics);
    return m;
}

tctl_status tctl_record_make(const tctl_record *r, json_t **ret, tctl_error *err)
{
    tctl_sha256 digest;
    json_t *m = put_together(r);
    if (m == NULL)
        return tctl_fail_memory(err, 0);
    tctl_status st = tctl_experiment_digest(m, &digest, err);
    if (st == TCTL_OK && json_object_set_new(m, "experiment_digest", tctl_json_sha256(&digest)) != 0)
        st = tctl_fail_memory(err, 0);
    if (st == TCTL_OK)
        *ret = m;
    else
        json_decref(m);
    return st;
}
