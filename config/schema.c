/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema (draft 2020-12) of a spec, from the tables of the spec and of the plugins at hand.
 *
 * For editors: completion, words on hover, marks while typing. `trainctl check` remains the judge; what a schema
 * cannot say (names that must exist, what goes together) is only there. A plugin that is used by path (`use:` with
 * a '/') may have any options.
 *
 * Every function returns a new reference, or NULL if memory is out; NULL may be handed on.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "config/scalar.h"
#include "config/spec_read.h"

typedef struct schema {
    const tctl_plugin *const *plugins;
    uint32_t n_plugins;
    tctl_arena *arena;
} schema;

/* Sets and forgets; an object that could not take it is released. NULL objects stay NULL. */
static json_t *with(json_t *object, const char *key, json_t *value)
{
    if (!object) {
        json_decref(value);
        return NULL;
    }
    if (json_object_set_new(object, key, value) == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *with_item(json_t *list, json_t *item)
{
    if (!list) {
        json_decref(item);
        return NULL;
    }
    if (json_array_append_new(list, item) == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *dropped(json_t *value)
{
    json_decref(value);
    return NULL;
}

static json_t *of_type(const char *type)
{
    return json_pack("{s:s}", "type", type);
}

static json_t *pattern(const char *regex)
{
    return json_pack("{s:s, s:s}", "type", "string", "pattern", regex);
}

/* ---- values --------------------------------------------------------------------------------------- */

/* A bound beyond 2^53 is no bound for an editor. */
static json_t *integer_schema(const tctl_option *option)
{
    static const int64_t exact = (int64_t)1 << 53;
    json_t *object = of_type("integer");
    if (option->int_min == 0 && option->int_max == 0)
        return object;
    if (option->int_min > -exact)
        object = with(object, "minimum", json_integer(option->int_min));
    if (option->int_max < exact)
        object = with(object, "maximum", json_integer(option->int_max));
    return object;
}

static json_t *real_schema(const tctl_option *option)
{
    json_t *object = of_type("number");
    if (option->real_min == option->real_max && option->real_min == 0)
        return object;
    if (isfinite(option->real_min) && fabs(option->real_min) < 1e300)
        object = with(object, "minimum", json_real(option->real_min));
    if (isfinite(option->real_max) && fabs(option->real_max) < 1e300)
        object = with(object, "maximum", json_real(option->real_max));
    return object;
}

static json_t *enum_schema(const char *const *words)
{
    json_t *list = json_array();
    for (; words && *words; words++)
        list = with_item(list, json_string(*words));
    return json_pack("{s:o}", "enum", list);
}

/* "^[0-9]+ *(steps?|epochs?)$" */
static json_t *count_schema(const tctl_option *option)
{
    tctl_buf regex = TCTL_BUF_INIT;
    tctl_buf_add_text(&regex, "^[0-9]+ *(");
    for (size_t i = 0; option->choices && option->choices[i]; i++) {
        const char *unit = option->choices[i];
        size_t length = strlen(unit);
        bool plural = length > 1 && unit[length - 1] == 's';
        tctl_buf_add_format(&regex, "%s%.*ss?", i ? "|" : "", (int)(plural ? length - 1 : length), unit);
    }
    tctl_buf_add_text(&regex, ")$");
    const char *text = tctl_buf_text(&regex);
    json_t *object = text ? pattern(text) : NULL;
    tctl_buf_release(&regex);
    return object;
}

static json_t *reference(const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "#/$defs/%s", name);
    return json_pack("{s:s}", "$ref", path);
}

/* The definition of all plugins with an extension: its id without '/', which separates the steps of a pointer. */
static void role_key(const char *extension, char key[128])
{
    snprintf(key, 128, "use-%s", extension);
    for (char *at = key; (at = strchr(at, '/')) != NULL;)
        *at = '-';
}

static json_t *role_reference(const char *extension)
{
    char key[128];
    role_key(extension, key);
    return reference(key);
}

static json_t *value_schema(const tctl_option *option);

static json_t *reserved_keys(const char *section_name)
{
    const tctl_spec_section *section = section_name ? tctl_spec_section_find(section_name) : NULL;
    json_t *properties = json_object();
    for (uint32_t i = 0; section && i < section->n_options; i++) {
        const tctl_option *option = &section->options[i];
        json_t *value = with(value_schema(option), "description", json_string(option->doc));
        properties = with(properties, option->name, value);
    }
    return properties;
}

static json_t *section_schema(const tctl_option *option)
{
    json_t *ref = reference(option->choices[0]);
    if (option->type == TCTL_SECTION)
        return ref;
    if (option->type == TCTL_SECTION_MAP) /* names are free but for the keys of a second section */
        return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", reserved_keys(option->choices[1]),
                         "additionalProperties", ref);
    if (option->type == TCTL_SECTION_TEXTS) {
        json_t *one = json_pack("{s:[{s:s}, o]}", "anyOf", "type", "string", ref);
        json_t *list = json_pack("{s:s, s:O}", "type", "array", "items", one);
        return json_pack("{s:[o, o]}", "anyOf", one, list);
    }
    return json_pack("{s:s, s:o}", "type", "array", "items", ref);
}

static json_t *value_schema(const tctl_option *option)
{
    switch (option->type) {
    case TCTL_BOOL:
        return of_type("boolean");
    case TCTL_INT:
        return integer_schema(option);
    case TCTL_REAL:
        return real_schema(option);
    case TCTL_ENUM:
        return enum_schema(option->choices);
    case TCTL_COUNT:
        return count_schema(option);
    case TCTL_DURATION:
        return pattern("^[0-9.]+ *(ms|s|secs?|seconds?|min|mins|minutes?|h|hours?|d|days?)$");
    case TCTL_SIZE:
        return json_pack("{s:[o, {s:i}]}", "anyOf", pattern("^[0-9.]+ *([KMGT]iB|[kMGT]?B)$"), "const", 0);
    case TCTL_PLUGIN:
        return role_reference(option->choices[0]);
    case TCTL_PATH:
        return of_type("string");
    case TCTL_SECTION:
    case TCTL_SECTION_LIST:
    case TCTL_SECTION_MAP:
    case TCTL_SECTION_TEXTS:
        return section_schema(option);
    default:
        return json_pack("{s:[s, s, s]}", "type", "string", "number", "boolean");
    }
}

/* What an editor shows: the doc, the unit and the default. */
static json_t *with_words(const schema *s, json_t *object, const tctl_option *option)
{
    const char *unit = option->unit ? option->unit : "", *open = option->unit ? " [" : "";
    const char *fallback = option->default_yaml ? "; default: " : "";
    const char *words = tctl_arena_format(s->arena, "%s%s%s%s%s%s", option->doc ? option->doc : "", open,
                                          unit, option->unit ? "]" : "", fallback,
                                          option->default_yaml ? option->default_yaml : "");
    return with(object, "description", words ? json_string(words) : NULL);
}

static json_t *option_schema(const schema *s, const tctl_option *option)
{
    json_t *value = value_schema(option);
    if ((option->flags & TCTL_OPT_REPEATED) && value) {
        json_t *list = json_pack("{s:s, s:O}", "type", "array", "items", value);
        value = json_pack("{s:[o, o]}", "anyOf", value, list);
    }
    return with_words(s, value, option);
}

/* ---- mappings ------------------------------------------------------------------------------------- */

/* Adds a table's options to `properties` and the names of required ones to `required`. */
static void add_options(const schema *s, const tctl_option *options, uint32_t n, json_t **properties,
                        json_t **required)
{
    for (uint32_t i = 0; i < n; i++) {
        *properties = with(*properties, options[i].name, option_schema(s, &options[i]));
        if (options[i].flags & TCTL_OPT_REQUIRED)
            *required = with_item(*required, json_string(options[i].name));
    }
}

static json_t *closed_object(json_t *properties, json_t *required)
{
    return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                     "additionalProperties", 0);
}

/* {use: NAME, …options…, …the section's own keys…}; `section` may be NULL. */
static json_t *use_schema(const schema *s, const tctl_plugin *plugin, const tctl_spec_section *section)
{
    json_t *properties = json_object(), *required = json_array();
    const tctl_option *options =
        tctl_options_copy(s->arena, plugin->options, plugin->n_options, plugin->option_size);
    if (section)
        add_options(s, section->options, section->n_options, &properties, &required);
    if (section && strcmp(section->name, "data") == 0 && properties)
        json_object_del(properties, "path"); /* it stands instead of `use` */
    if (options)
        add_options(s, options, plugin->n_options, &properties, &required);
    properties = with(properties, "use",
                      json_pack("{s:s, s:s}", "const", plugin->name, "description",
                                plugin->summary ? plugin->summary : ""));
    if (!section || strcmp(section->name, "data") == 0)
        required = with_item(required, json_string("use"));
    return closed_object(properties, options ? required : dropped(required));
}

/* Any plugin that provides one of the extensions: by mapping, by bare name, or by path. */
static json_t *uses_schema(const schema *s, const char *const *extensions, const tctl_spec_section *section)
{
    json_t *any = json_array(), *names = json_array();
    for (uint32_t i = 0; i < s->n_plugins; i++) {
        bool fits = false;
        for (const char *const *id = extensions; *id; id++)
            fits = fits || tctl_plugin_extension(s->plugins[i], *id);
        if (!fits)
            continue;
        any = with_item(any, use_schema(s, s->plugins[i], section));
        names = with_item(names, json_string(s->plugins[i]->name));
    }
    any = with_item(any, json_pack("{s:o}", "enum", names));
    any = with_item(any, pattern("/"));
    any = with_item(any, json_pack("{s:s, s:{s:o}, s:[s]}", "type", "object", "properties", "use",
                                   pattern("/"), "required", "use"));
    return json_pack("{s:o}", "anyOf", any);
}

static json_t *plain_section(const schema *s, const tctl_spec_section *section)
{
    json_t *properties = json_object(), *required = json_array();
    add_options(s, section->options, section->n_options, &properties, &required);
    return with(closed_object(properties, required), "description", json_string(section->doc));
}

static json_t *data_section(const schema *s, const tctl_spec_section *section)
{
    json_t *uses = uses_schema(s, section->options[0].choices, section);
    const tctl_option *path = &section->options[section->n_options - 1];
    json_t *properties = with(json_object(), "path", option_schema(s, path));
    json_t *plain = closed_object(properties, with_item(json_array(), json_string("path")));
    return json_pack("{s:[o, o]}", "anyOf", uses, plain);
}

/* {op: conv, …options…, name, from} or the bare name, for every operator of every trainer. */
static json_t *model_section(const schema *s, const tctl_spec_section *section)
{
    json_t *any = json_array(), *names = json_array();
    for (uint32_t i = 0; i < s->n_plugins; i++) {
        const tctl_trainer *trainer = tctl_plugin_extension(s->plugins[i], TCTL_TRAINER_ID);
        uint32_t n = trainer && TCTL_HAS(tctl_trainer, trainer->struct_size, ops) ? trainer->n_ops : 0;
        for (uint32_t k = 0; k < n; k++) {
            tctl_op_schema op = {0};
            size_t size = trainer->op_schema_size < sizeof op ? trainer->op_schema_size : sizeof op;
            memcpy(&op, (const char *)trainer->ops + (size_t)k * trainer->op_schema_size, size);
            const tctl_option *options =
                tctl_options_copy(s->arena, op.options, op.n_options, s->plugins[i]->option_size);
            json_t *properties = options ? json_object() : NULL, *required = json_array();
            add_options(s, section->options, section->n_options, &properties, &required);
            add_options(s, options, options ? op.n_options : 0, &properties, &required);
            properties = with(properties, "op",
                              json_pack("{s:s, s:s}", "const", op.op, "description", op.doc ? op.doc : ""));
            any = with_item(any, closed_object(properties, required));
            names = with_item(names, json_string(op.op));
        }
    }
    return json_pack("{s:o}", "anyOf", with_item(any, json_pack("{s:o}", "enum", names)));
}

/* ---- the document --------------------------------------------------------------------------------- */

/* A definition for every extension that some option of the tables or of a plugin asks for. */
static json_t *add_roles(const schema *s, json_t *defs, const tctl_option *options, uint32_t n)
{
    for (uint32_t i = 0; i < n && defs; i++) {
        char key[128];
        if (options[i].type != TCTL_PLUGIN || !options[i].choices || !options[i].choices[0])
            continue;
        const char *const one[] = {options[i].choices[0], NULL};
        role_key(one[0], key);
        if (!json_object_get(defs, key))
            defs = with(defs, key, uses_schema(s, one, NULL));
    }
    return defs;
}

static json_t *definitions(const schema *s)
{
    json_t *defs = json_object();
    uint32_t n;
    const tctl_spec_section *sections = tctl_spec_sections(&n);
    for (uint32_t i = 0; i < n; i++) {
        const tctl_spec_section *section = &sections[i];
        json_t *one;
        if (*section->name == '\0') {
            defs = add_roles(s, defs, section->options, section->n_options);
            continue;
        }
        if (strcmp(section->name, "data") == 0)
            one = data_section(s, section);
        else if (strcmp(section->name, "model") == 0)
            one = model_section(s, section);
        else if (section->options[0].type == TCTL_PLUGIN)
            one = uses_schema(s, section->options[0].choices, section);
        else
            one = plain_section(s, section);
        defs = with(defs, section->name, one);
    }
    for (uint32_t i = 0; i < s->n_plugins; i++) {
        const tctl_plugin *plugin = s->plugins[i];
        const tctl_option *options =
            tctl_options_copy(s->arena, plugin->options, plugin->n_options, plugin->option_size);
        defs = options ? add_roles(s, defs, options, plugin->n_options) : dropped(defs);
    }
    return defs;
}

json_t *tctl_spec_schema(const tctl_plugin *const *plugins, uint32_t n)
{
    schema s = {plugins, n, tctl_arena_create()};
    if (!s.arena)
        return NULL;
    json_t *object = plain_section(&s, tctl_spec_section_find(""));
    object = with(object, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    object = with(object, "title", json_string("trainctl experiment spec"));
    object = with(object, "oneOf", json_pack("[{s:[s]}, {s:[s]}]", "required", "train", "required", "run"));
    object = with(object, "$defs", definitions(&s));
    tctl_arena_destroy(s.arena);
    return object;
}
