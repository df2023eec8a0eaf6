/* SPDX-License-Identifier: Apache-2.0 */
/* See host.h: stages and their options. */
#include "bench/bits_network/host.h"

#include <string.h>

#include "bench/bits_network/words.h"

struct tctl_config {
    const tctl_plugin *plugin;
    bits_words words;
    const tctl_part *optimizer, *schedule;
};

/* ---- options ------------------------------------------------------------------------------------------- */

static const char *value_at(const tctl_config *c, const char *name, uint32_t i)
{
    const tctl_option *option = bits_option_find(c->plugin->options, c->plugin->n_options, name);
    TCTL_BUG_IF(!option);
    const char *value = bits_words_value(&c->words, name, i);
    return value || i > 0 ? value : option->default_yaml;
}

static int cfg_given(const tctl_config *c, const char *name)
{
    return value_at(c, name, 0) != NULL;
}

static int cfg_bool(const tctl_config *c, const char *name)
{
    const char *value = value_at(c, name, 0);
    return value && strcmp(value, "true") == 0;
}

static int64_t cfg_int_at(const tctl_config *c, const char *name, uint32_t i)
{
    const char *value = value_at(c, name, i);
    return value ? bits_int_of(value) : 0;
}

static int64_t cfg_int(const tctl_config *c, const char *name)
{
    return cfg_int_at(c, name, 0);
}

static double cfg_real_at(const tctl_config *c, const char *name, uint32_t i)
{
    const char *value = value_at(c, name, i);
    return value ? bits_real_of(value) : 0;
}

static double cfg_real(const tctl_config *c, const char *name)
{
    return cfg_real_at(c, name, 0);
}

static const char *cfg_text_at(const tctl_config *c, const char *name, uint32_t i)
{
    const char *value = value_at(c, name, i);
    return value && strchr(value, ' ') ? strchr(value, ' ') + 1 : value;
}

static const char *cfg_text(const tctl_config *c, const char *name)
{
    return cfg_text_at(c, name, 0);
}

static uint32_t cfg_length(const tctl_config *c, const char *name)
{
    uint32_t n = 0;
    while (value_at(c, name, n))
        n++;
    return n;
}

static const tctl_part *cfg_part(const tctl_config *c, const char *name)
{
    return strcmp(name, "optimizer") == 0 ? c->optimizer : c->schedule;
}

static tctl_status TCTL_PRINTF(4, 5)
    fail_option(tctl_error *err, const tctl_config *c, const char *option, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const tctl_status st = tctl_vfail(err, TCTL_ESPEC, fmt, ap);
    va_end(ap);
    tctl_note(err, "option '%s' of plugin '%s'", option, c->plugin->name);
    return st;
}

static const tctl_host host = {
    .struct_size = sizeof host,
    .abi_minor = TCTL_ABI_MINOR,
    .service = bits_service,
    .fail = tctl_fail,
    .fail_option = fail_option,
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

/* ---- stages -------------------------------------------------------------------------------------------- */

static const tctl_plugin *find_plugin(const char *name)
{
    for (uint32_t i = 0; i < bits_n_plugins; i++) {
        if (strcmp(bits_plugins[i]->name, name) == 0)
            return bits_plugins[i];
    }
    return NULL;
}

tctl_status bits_part_make(bits_session *session, const char *text, const char *streams,
                           const tctl_part *optimizer, const tctl_part *schedule, tctl_part *ret,
                           tctl_error *err)
{
    bits_stage *stage = tctl_arena_take(session->arena, sizeof *stage);
    tctl_config *config = tctl_arena_take(session->arena, sizeof *config);
    if (!stage || !config)
        return tctl_fail_memory(err, sizeof *stage + sizeof *config);
    const bits_words words = bits_words_read(text);
    const tctl_plugin *plugin = find_plugin(words.first);
    if (!plugin)
        return tctl_fail(err, TCTL_ENOENT, "no plugin '%s' is linked in", words.first);
    for (uint32_t i = 0; i < words.n; i++)
        TCTL_BUG_IF(!bits_option_find(plugin->options, plugin->n_options, words.names[i]));
    *config = (tctl_config){plugin, words, optimizer, schedule};
    *stage = (bits_stage){.host = host, .session = session, .streams = streams, .before = session->stages};
    stage->host.impl = stage;
    stage->part = (tctl_part){.plugin = plugin, .name = plugin->name};
    const tctl_status st = plugin->create(&stage->host, config, &stage->part.stage, err);
    if (st) {
        tctl_note(err, "in '%s'", text);
        return st;
    }
    session->stages = stage;
    *ret = stage->part;
    return TCTL_OK;
}

tctl_status bits_session_begin(bits_session *s, const char *recipe, uint32_t threads, tctl_error *err)
{
    *s = (bits_session){.recipe = recipe, .seed = 1029, .arena = tctl_arena_create()};
    if (!s->arena)
        return tctl_fail_memory(err, sizeof *s);
    return tctl_pool_create(threads, &s->pool, err);
}

void bits_session_end(bits_session *s)
{
    for (bits_stage *stage = s->stages; stage; stage = stage->before)
        stage->part.plugin->destroy(stage->part.stage);
    tctl_pool_destroy(s->pool);
    tctl_arena_destroy(s->arena);
}
