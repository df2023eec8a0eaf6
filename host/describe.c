/* SPDX-License-Identifier: Apache-2.0 */
/* See describe.h. */
#include "host/describe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "manifest/path_json.h"
#include "trainctl/ext/trainer.h"

const char *tctl_type_text(int32_t type)
{
    static const char *const names[] = {"?",    "bool",  "int",    "real",     "text", "enum",
                                        "path", "count", "plugin", "duration", "size"};
    return type >= 1 && (size_t)type < TCTL_COUNT_OF(names) ? names[type] : names[0];
}

const char *tctl_bits_text(uint32_t bits)
{
    return bits == TCTL_BITS_SAME ? "same" : "recipe";
}

json_t *tctl_claims_json(uint32_t claims)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{TCTL_SAME_RUNS, "runs"},
                 {TCTL_SAME_THREADS, "threads"},
                 {TCTL_SAME_CPUS, "cpus"},
                 {TCTL_SAME_RESUME, "resume"},
                 {TCTL_SAME_DEVICES, "devices"}};
    json_t *list = json_array();
    for (size_t i = 0; list && i < TCTL_COUNT_OF(names); i++) {
        if ((claims & names[i].bit) && json_array_append_new(list, json_string(names[i].name)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *tctl_loaded_json(const tctl_loaded *loaded)
{
    const tctl_plugin *p = loaded->plugin;
    char digest[TCTL_SHA256_HEX], abi[32];
    tctl_sha256_hex(&loaded->digest, digest);
    snprintf(abi, sizeof abi, "%u.%u", p->abi_major, p->abi_minor);
    return json_pack("{s:o, s:s, s:s, s:s, s:o, s:s, s:s?, s:s, s:s, s:o}", "use",
                     tctl_path_to_json(loaded->use), "name", p->name, "version", p->version, "license",
                     p->license, "path", tctl_path_to_json(loaded->path), "sha256", digest, "build_id",
                     loaded->build_id, "abi", abi, "bits", tctl_bits_text(p->bits), "claims",
                     tctl_claims_json(p->claims));
}

static void add_real(tctl_buf *buf, double value)
{
    char text[TCTL_REAL_TEXT];
    (void)tctl_format_real(value, text);
    tctl_buf_add_text(buf, text);
}

void tctl_option_range(const tctl_option *o, tctl_buf *ret)
{
    if (o->type == TCTL_BOOL)
        tctl_buf_add_text(ret, "true|false");
    bool bounded = o->int_min || o->int_max;
    if (bounded && o->int_max == INT64_MAX)
        tctl_buf_add_format(ret, ">= %" PRId64, o->int_min);
    else if (bounded)
        tctl_buf_add_format(ret, "%" PRId64 "..%" PRId64, o->int_min, o->int_max);
    if (fpclassify(o->real_min) != FP_ZERO || fpclassify(o->real_max) != FP_ZERO) {
        add_real(ret, o->real_min);
        tctl_buf_add_text(ret, "..");
        add_real(ret, o->real_max);
    }
    for (uint32_t i = 0; o->choices && o->choices[i]; i++)
        tctl_buf_add_format(ret, "%s%s", i ? "|" : ret->size ? " " : "", o->choices[i]);
}

/* ---- all of it --------------------------------------------------------------------------------------- */

/* Appends and returns true; false (and the item is gone) if either is NULL or memory is out. */
static bool append(json_t *list, json_t *item)
{
    return item && json_array_append_new(list, item) == 0;
}

static json_t *option_json(const tctl_option *o)
{
    tctl_buf range = TCTL_BUF_INIT;
    tctl_option_range(o, &range);
    const char *text = tctl_buf_text(&range);
    json_t *json = json_pack(
        "{s:s, s:s, s:s, s:b, s:s?, s:s?, s:s, s:s?, s:b, s:b}", "name", o->name, "type",
        tctl_type_text(o->type), "range", text ? text : "", "required", (o->flags & TCTL_OPT_REQUIRED) != 0,
        "default", o->default_yaml, "unit", o->unit, "doc", o->doc, "since", o->since, "changes_results",
        (o->flags & TCTL_OPT_SEMANTIC) != 0, "repeated", (o->flags & TCTL_OPT_REPEATED) != 0);
    tctl_buf_release(&range);
    return json;
}

static json_t *options_json(const tctl_option *options, uint32_t n, uint32_t option_size)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++) {
        const void *at = (const char *)options + (size_t)i * option_size;
        if (!append(list, option_json(at))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *operators_json(const tctl_plugin *p)
{
    const tctl_trainer *trainer = tctl_plugin_extension(p, TCTL_TRAINER_ID);
    json_t *list = json_array();
    for (uint32_t i = 0; list && trainer && i < trainer->n_ops; i++) {
        const void *at = (const char *)trainer->ops + (size_t)i * trainer->op_schema_size;
        const tctl_op_schema *op = at;
        json_t *json = json_pack("{s:s, s:s, s:o}", "name", op->op, "doc", op->doc, "options",
                                 options_json(op->options, op->n_options, p->option_size));
        if (!append(list, json)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *provides_json(const tctl_plugin *p)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < p->n_extensions; i++)
        (void)append(list, json_string(p->extensions[i].id));
    return list;
}

static json_t *exports_json(const tctl_elf *elf)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < elf->n_exports; i++) {
        if (strcmp(elf->exports[i], "trainctl_plugin_v1") != 0)
            (void)append(list, json_string(elf->exports[i]));
    }
    return list;
}

static json_t *forbidden_json(const tctl_elf *elf)
{
    tctl_arena *arena = tctl_arena_create();
    const tctl_forbidden *found = NULL;
    uint32_t n = 0;
    json_t *list = json_array();
    if (arena && !tctl_elf_forbidden(arena, elf, &found, &n, NULL)) {
        for (uint32_t i = 0; list && i < n; i++)
            (void)append(list, json_pack("{s:s, s:s}", "symbol", found[i].symbol, "why", found[i].why));
    }
    tctl_arena_destroy(arena);
    return list;
}

json_t *tctl_plugin_json(const tctl_loaded *loaded)
{
    const tctl_plugin *p = loaded->plugin;
    json_t *root = tctl_loaded_json(loaded);
    json_t *more =
        json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "summary", p->summary, "remembers",
                  (p->flags & TCTL_PLUGIN_REMEMBERS) != 0, "provides", provides_json(p), "exports",
                  exports_json(loaded->elf), "forbidden", forbidden_json(loaded->elf), "options",
                  options_json(p->options, p->n_options, p->option_size), "operators", operators_json(p));
    bool ok = root && more && json_object_update(root, more) == 0;
    json_decref(more);
    if (!ok)
        json_decref(root);
    return ok ? root : NULL;
}
