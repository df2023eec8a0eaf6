/* SPDX-License-Identifier: Apache-2.0 */
/* See stage.h. The reading functions of tctl_host are at the top: they stop the process if a plugin breaks the rule
 * that it asks only for what its table declares, because no stage made from a wrong answer can be trusted. */
#include "host/stage.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/surroundings.h"

/* ---- reading options --------------------------------------------------------------------------------- */

#define TYPE(t) (1u << (t))

static const char *type_name(int32_t type)
{
    static const char *const names[] = {"?",    "BOOL",  "INT",    "REAL",     "TEXT", "ENUM",
                                        "PATH", "COUNT", "PLUGIN", "DURATION", "SIZE"};
    return type >= 1 && (size_t)type < TCTL_COUNT_OF(names) ? names[type] : names[0];
}

static void TCTL_NORETURN TCTL_COLD TCTL_PRINTF(1, 2) plugin_bug(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("trainctl: bug in a plugin: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

static const tctl_config_entry *entry_of(const tctl_config *config, const char *option)
{
    const tctl_config_entry *entry = tctl_config_find(config, option);
    if (!entry)
        plugin_bug("%s asks for option '%s', which its table does not declare", config->what, option);
    return entry;
}

/* Value i of an option whose type must be one of `types`; NULL if it has none. */
static const tctl_value *value_at(const tctl_config *config, const char *option, uint32_t types, uint32_t i)
{
    const tctl_config_entry *entry = entry_of(config, option);
    if (!(TYPE(entry->option->type) & types))
        plugin_bug("%s reads option '%s' as another type than its table declares (%s)", config->what, option,
                   type_name(entry->option->type));
    if (i >= entry->n && i > 0)
        plugin_bug("%s reads value %u of option '%s', which has %u", config->what, i, option, entry->n);
    return i < entry->n && entry->values[i].given ? &entry->values[i] : NULL;
}

/* The value of an option that has at most one. */
static const tctl_value *value_of(const tctl_config *config, const char *option, uint32_t types)
{
    if (entry_of(config, option)->option->flags & TCTL_OPT_REPEATED)
        plugin_bug("%s reads option '%s', which is a list, as one value", config->what, option);
    return value_at(config, option, types, 0);
}

#define INTS  (TYPE(TCTL_INT) | TYPE(TCTL_SIZE) | TYPE(TCTL_COUNT))
#define REALS (TYPE(TCTL_REAL) | TYPE(TCTL_DURATION))
#define TEXTS (TYPE(TCTL_TEXT) | TYPE(TCTL_ENUM) | TYPE(TCTL_PATH) | TYPE(TCTL_COUNT))

static int cfg_given(const tctl_config *config, const char *option)
{
    const tctl_config_entry *entry = entry_of(config, option);
    return entry->n > 0 && entry->values[0].given != 0;
}

static int cfg_bool(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option, TYPE(TCTL_BOOL));
    return value && value->i != 0;
}

static int64_t cfg_int(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option, INTS);
    return value ? value->i : 0;
}

static double cfg_real(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option, REALS);
    return value ? value->r : 0;
}

static const char *cfg_text(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option, TEXTS);
    return value ? value->text : NULL;
}

static uint32_t cfg_length(const tctl_config *config, const char *option)
{
    return entry_of(config, option)->n;
}

static int64_t cfg_int_at(const tctl_config *config, const char *option, uint32_t i)
{
    const tctl_value *value = value_at(config, option, INTS | TYPE(TCTL_BOOL), i);
    return value ? value->i : 0;
}

static double cfg_real_at(const tctl_config *config, const char *option, uint32_t i)
{
    const tctl_value *value = value_at(config, option, REALS, i);
    return value ? value->r : 0;
}

static const char *cfg_text_at(const tctl_config *config, const char *option, uint32_t i)
{
    const tctl_value *value = value_at(config, option, TEXTS, i);
    return value ? value->text : NULL;
}

static const tctl_part *cfg_part(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option, TYPE(TCTL_PLUGIN));
    return value && value->use ? &value->use->part : NULL;
}

/* ---- errors ------------------------------------------------------------------------------------------ */

static tctl_status TCTL_PRINTF(3, 4) host_fail(tctl_error *err, tctl_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, code, fmt, ap);
    va_end(ap);
    return code;
}

static tctl_status TCTL_PRINTF(4, 5)
    host_fail_option(tctl_error *err, const tctl_config *config, const char *option, const char *fmt, ...)
{
    const tctl_config_entry *entry = entry_of(config, option);
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, TCTL_ESPEC, fmt, ap);
    va_end(ap);
    if (!err)
        return TCTL_ESPEC;
    err->loc = entry->n && entry->values[0].loc.line ? entry->values[0].loc : config->loc;
    if (entry->n && entry->values[0].given == 1)
        tctl_note(err, "'%s' has its default, %s", option,
                  entry->option->default_yaml ? entry->option->default_yaml : "none");
    else if (entry->n && entry->values[0].given == 3)
        tctl_note(err, "'%s' was set on the command line", option);
    return TCTL_ESPEC;
}

/* ---- stages ------------------------------------------------------------------------------------------ */

typedef struct entry {
    tctl_host host;
    tctl_caller caller;
    tctl_stage *stage;
    const tctl_plugin *plugin;
    const tctl_use *use;
    struct entry *before; /* the one that was made before this one */
} entry;

struct tctl_stages {
    tctl_stages_request request;
    entry *last;
};

tctl_status tctl_stages_begin(const tctl_stages_request *request, tctl_stages **ret, tctl_error *err)
{
    tctl_stages *stages = calloc(1, sizeof *stages);
    if (!stages)
        return tctl_fail_memory(err, sizeof *stages);
    stages->request = *request;
    *ret = stages;
    return TCTL_OK;
}

/* "data.train (plugin 'idx')" */
static void name_of(const tctl_use *use, char out[256])
{
    snprintf(out, 256, "%.120s (plugin '%.100s')", use->config->where, use->plugin->name);
}

static void say(const tctl_stages *stages, const char *phase, const tctl_use *use)
{
    char who[256];
    name_of(use, who);
    if (stages->request.watch)
        stages->request.watch(stages->request.watch_arg, phase, who);
}

static const tctl_host host_template = {
    .struct_size = sizeof(tctl_host),
    .abi_minor = TCTL_ABI_MINOR,
    .service = tctl_services_find,
    .fail = host_fail,
    .fail_option = host_fail_option,
    .cfg_given = cfg_given,
    .cfg_bool = cfg_bool,
    .cfg_int = cfg_int,
    .cfg_real = cfg_real,
    .cfg_text = cfg_text,
    .cfg_length = cfg_length,
    .cfg_int_at = cfg_int_at,
    .cfg_real_at = cfg_real_at,
    .cfg_text_at = cfg_text_at,
    .cfg_part = cfg_part,
};

/* What `create` must keep to, besides its result. */
static tctl_status check_result(tctl_status status, entry *e, const char *who, tctl_error *err)
{
    if (status == TCTL_OK && !e->stage)
        return tctl_fail(err, TCTL_EPLUGIN, "%s broke its contract: create succeeded without a stage", who);
    if (status == TCTL_OK)
        return TCTL_OK;
    if (status > 0)
        return tctl_fail(err, TCTL_EPLUGIN, "%s broke its contract: create returned the unknown status %d",
                         who, status);
    if (err->code == TCTL_OK || !err->message[0])
        return tctl_fail(err, status, "%s could not be made: %s (it does not say why)", who,
                         tctl_status_text(status));
    return status;
}

static tctl_status call_create(const tctl_stages *stages, entry *e, tctl_error *err)
{
    tctl_surroundings before;
    char who[256];
    name_of(e->use, who);
    tctl_status status = tctl_surroundings_capture(&before, err);
    if (status)
        return status;
    tctl_error_clear(err);
    say(stages, "create", e->use);
    tctl_stage *stage = NULL;
    status = e->plugin->create(&e->host, e->use->config, &stage, err);
    e->stage = status == TCTL_OK ? stage : NULL;
    status = check_result(status, e, who, err);
    tctl_error changed;
    tctl_status kept = tctl_surroundings_check(&before, who, &changed);
    tctl_surroundings_release(&before);
    if (!status && kept) {
        *err = changed;
        return kept;
    }
    return status;
}

static tctl_status add_one(tctl_stages *stages, tctl_use *use, const char *streams, tctl_error *err)
{
    entry *e = calloc(1, sizeof *e);
    if (!e)
        return tctl_fail_memory(err, sizeof *e);
    e->use = use;
    e->plugin = use->plugin;
    e->caller = (tctl_caller){.services = stages->request.services,
                              .name = use->name,
                              .streams = streams ? streams : use->name,
                              .owner = use};
    e->host = host_template;
    e->host.impl = &e->caller;
    tctl_status status = call_create(stages, e, err);
    if (e->stage) { /* also one that failed a check afterwards: it is there, so it will be destroyed */
        e->before = stages->last;
        stages->last = e;
        use->part = (tctl_part){.plugin = use->plugin, .stage = e->stage, .name = use->name};
    } else {
        free(e);
    }
    return status;
}

tctl_status tctl_stages_add(tctl_stages *stages, tctl_use *use, const char *streams, tctl_error *err)
{
    tctl_error scratch;
    err = err ? err : &scratch;
    for (uint32_t i = 0; i < use->config->n; i++) {
        const tctl_config_entry *option = &use->config->entries[i];
        for (uint32_t k = 0; option->option->type == TCTL_PLUGIN && k < option->n; k++) {
            tctl_status status =
                option->values[k].use ? tctl_stages_add(stages, option->values[k].use, NULL, err) : TCTL_OK;
            if (status)
                return status;
        }
    }
    tctl_status status = add_one(stages, use, streams, err);
    if (status) {
        if (err->loc.line == 0)
            err->loc = use->loc;
        tctl_note(err, "in %s: plugin '%s' %s", use->config->where, use->plugin->name, use->plugin->version);
    }
    return status;
}

void tctl_stages_destroy(tctl_stages *stages)
{
    if (!stages)
        return;
    while (stages->last) {
        entry *e = stages->last;
        stages->last = e->before;
        say(stages, "destroy", e->use);
        e->plugin->destroy(e->stage);
        free(e);
    }
    free(stages);
}
