/* SPDX-License-Identifier: Apache-2.0 */
/* See report.h. */
#include "host/worker/report.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/file.h"
#include "base/json.h"
#include "host/describe.h"
#include "manifest/environment.h"
#include "manifest/path_json.h"

/* ---- worker.json ------------------------------------------------------------------------------------- */

static bool add_stage(json_t *list, const tctl_use *use)
{
    json_t *stage = json_pack("{s:s, s:s, s:s, s:o}", "name", use->name, "plugin", use->plugin->name, "role",
                              use->config->where, "config", tctl_config_json(use->config, false));
    return stage && json_array_append_new(list, stage) == 0;
}

static json_t *stages_json(const tctl_spec *spec)
{
    json_t *list = json_array();
    bool ok = list != NULL;
    for (uint32_t i = 0; spec && i < spec->n_data; i++) {
        const tctl_data_spec *data = &spec->data[i];
        ok = ok && (!data->source || add_stage(list, data->source));
        for (uint32_t k = 0; k < data->n_transforms; k++)
            ok = ok && add_stage(list, data->transforms[k]);
    }
    ok = ok && (!spec || !spec->trainer || add_stage(list, spec->trainer));
    for (uint32_t i = 0; spec && i < spec->n_stages; i++)
        ok = ok && add_stage(list, spec->stages[i]);
    if (!ok)
        json_decref(list);
    return ok ? list : NULL;
}

static json_t *plugins_json(const tctl_plugins *plugins)
{
    uint32_t n = 0;
    json_t *list = json_array();
    if (plugins)
        (void)tctl_plugins_loaded(plugins, 0, &n);
    for (uint32_t i = 0; list && i < n; i++) {
        json_t *plugin = tctl_loaded_json(tctl_plugins_loaded(plugins, i, NULL));
        if (!plugin || json_array_append_new(list, plugin) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *memory_json(const tctl_services *services)
{
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    (void)getrusage(RUSAGE_SELF, &usage);
    tctl_memory_use use = {0};
    if (services)
        use = tctl_services_memory(services);
    return json_pack("{s:I, s:I}", "peak_resident_bytes", (json_int_t)usage.ru_maxrss * 1024,
                     "peak_service_bytes", (json_int_t)use.peak_bytes);
}

/* Canonical text into RUN/name, replaced at once. Releases `root`; NULL means that memory is out. */
static tctl_status write_json(const char *run, const char *name, json_t *root, tctl_error *err)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_buf text = TCTL_BUF_INIT;
    const char *path = arena ? tctl_path_join(arena, run, name) : NULL;
    tctl_status status = root && path ? tctl_json_canonical(root, &text, err) : tctl_fail_memory(err, 0);
    if (!status)
        status = tctl_file_replace(path, text.data, text.size, 0666, err);
    json_decref(root);
    tctl_buf_release(&text);
    tctl_arena_destroy(arena);
    return status;
}

tctl_status tctl_worker_report_write(const tctl_worker_report *report, tctl_error *err)
{
    json_t *objects = NULL;
    tctl_status status = tctl_shared_objects(NULL, &objects, err);
    if (status)
        return status;
    json_t *root = json_pack("{s:o, s:o, s:o, s:o}", "plugins", plugins_json(report->plugins), "stages",
                             stages_json(report->spec), "shared_objects", objects, "memory",
                             memory_json(report->services));
    return write_json(report->run, "worker.json", root, err);
}

/* ---- error.json -------------------------------------------------------------------------------------- */

/* A message may quote a path, whose bytes need not be UTF-8. */
static json_t *words(const char *text)
{
    json_t *json = json_string(text);
    return json ? json : tctl_path_to_json(text);
}

static json_t *notes_json(const tctl_error *e)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < e->n_notes; i++)
        (void)json_array_append_new(list, words(e->notes[i]));
    return list;
}

static void render(const tctl_worker_report *report, const tctl_error *failure, tctl_diags *diags,
                   tctl_buf *text)
{
    const char *source = report->spec ? report->spec->text : NULL;
    size_t size = source ? report->spec->text_size : 0;
    if (diags && diags->n)
        tctl_diags_render(diags, source, size, false, text);
    else
        tctl_diag_render(failure, failure->loc.line ? source : NULL, size, false, text);
}

void tctl_worker_report_error(const tctl_worker_report *report, const tctl_error *failure, tctl_diags *diags)
{
    const tctl_error *e = diags && diags->n ? &diags->errors[0] : failure;
    tctl_buf text = TCTL_BUF_INIT;
    render(report, failure, diags, &text);
    const char *rendered = tctl_buf_text(&text) ? tctl_buf_text(&text) : e->message;
    json_t *root = json_pack("{s:i, s:s, s:o, s:o, s:o, s:o}", "code", (int)e->code, "status",
                             tctl_status_text(e->code), "message", words(e->message), "notes", notes_json(e),
                             "hint", words(e->hint), "rendered", words(rendered));
    if (root && e->loc.file)
        (void)json_object_set_new(root, "file", words(e->loc.file));
    if (root && e->loc.line) {
        (void)json_object_set_new(root, "line", json_integer(e->loc.line));
        (void)json_object_set_new(root, "column", json_integer(e->loc.col));
    }
    if (write_json(report->run, "error.json", root, NULL))
        (void)fprintf(stderr, "%s\n", rendered);
    tctl_buf_release(&text);
}
