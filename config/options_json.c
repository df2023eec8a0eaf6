/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration as JSON, for the recipe and for people.
 *
 * Numbers stay numbers; an integer that would not survive another reader (beyond 2^53) is a decimal string.
 * Counts are "200 steps" in the table's own spelling, durations are seconds, sizes bytes, paths as written.
 */
#include <inttypes.h>
#include <stdio.h>

#include "config/options.h"

static json_t *integer(int64_t value)
{
    static const int64_t exact = (int64_t)1 << 53;
    char text[32];
    if (value >= -exact && value <= exact)
        return json_integer(value);
    snprintf(text, sizeof text, "%" PRId64, value);
    return json_string(text);
}

static json_t *use_json(const tctl_use *use, bool semantic_only)
{
    char id[256];
    snprintf(id, sizeof id, "%s@%s", use->plugin->name, use->plugin->version);
    return json_pack("{s:s, s:o}", "plugin", id, "options", tctl_config_json(use->config, semantic_only));
}

static json_t *value_json(const tctl_option *option, const tctl_value *value, bool semantic_only)
{
    char count[128];
    switch (option->type) {
    case TCTL_BOOL:
        return json_boolean(value->i);
    case TCTL_INT:
    case TCTL_SIZE:
        return integer(value->i);
    case TCTL_REAL:
    case TCTL_DURATION:
        return json_real(value->r);
    case TCTL_COUNT:
        snprintf(count, sizeof count, "%" PRId64 " %s", value->i, value->text);
        return json_string(count);
    case TCTL_PATH:
        return json_string(value->written);
    case TCTL_PLUGIN:
        return use_json(value->use, semantic_only);
    default:
        return json_string(value->text);
    }
}

static json_t *entry_json(const tctl_config_entry *entry, bool semantic_only)
{
    if (!(entry->option->flags & TCTL_OPT_REPEATED))
        return value_json(entry->option, &entry->values[0], semantic_only);
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < entry->n; i++) {
        if (json_array_append_new(list, value_json(entry->option, &entry->values[i], semantic_only))) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

json_t *tctl_config_json(const tctl_config *config, bool semantic_only)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object && i < config->n; i++) {
        const tctl_config_entry *entry = &config->entries[i];
        uint32_t flags = entry->option->flags;
        if (entry->n == 0 || (flags & TCTL_OPT_SECRET) || (semantic_only && !(flags & TCTL_OPT_SEMANTIC)))
            continue;
        if (json_object_set_new(object, entry->option->name, entry_json(entry, semantic_only))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}
