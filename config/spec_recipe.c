/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recipe: what decides the bits of a run, as JSON. See tctl_spec_recipe in spec.h for its form.
 *
 * Everything here comes from the resolved spec, never from its text: comments, order of keys, quotes, spelled-out
 * defaults and "0.10" instead of "0.1" cannot show.
 */
#include <inttypes.h>
#include <stdio.h>

#include "config/spec.h"

static int set(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

/* Takes both; the value is released if it cannot be appended. */
static json_t *append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0)
        return list;
    json_decref(list);
    return NULL;
}

/* {"plugin": "sgd@0.1.0", "options": {…}}, with "name" if it is not NULL. */
static json_t *use_json(const tctl_use *use, const char *name)
{
    char id[256];
    json_t *object = json_object();
    snprintf(id, sizeof id, "%s@%s", use->plugin->name, use->plugin->version);
    int bad = set(object, "plugin", json_string(id));
    bad |= set(object, "options", tctl_config_json(use->config, true));
    if (name)
        bad |= set(object, "name", json_string(name));
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *uses_json(tctl_use *const *uses, uint32_t n, bool only_those_that_matter)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++) {
        if (!only_those_that_matter || uses[i]->plugin->bits != TCTL_BITS_SAME)
            list = append(list, use_json(uses[i], uses[i]->name));
    }
    return list;
}

static json_t *data_json(const tctl_spec *spec)
{
    json_t *all = json_object();
    for (uint32_t i = 0; all && i < spec->n_data; i++) {
        const tctl_data_spec *data = &spec->data[i];
        json_t *one = data->source ? use_json(data->source, NULL) : json_pack("{s:s}", "path", data->written);
        int bad = !one;
        if (data->source)
            bad = bad || set(one, "transforms", uses_json(data->transforms, data->n_transforms, false));
        if (bad || json_object_set(all, data->name, one)) {
            json_decref(all);
            all = NULL;
        }
        json_decref(one);
    }
    return all;
}

static json_t *inputs_json(const tctl_spec *spec, const tctl_op_spec *op)
{
    json_t *from = json_array();
    for (uint32_t i = 0; from && i < op->n_inputs; i++) {
        int32_t input = op->inputs[i];
        from = append(from, json_string(input == TCTL_MODEL_INPUT ? "input" : spec->ops[input].name));
    }
    return from;
}

static json_t *model_json(const tctl_spec *spec)
{
    json_t *model = json_array();
    for (uint32_t i = 0; model && i < spec->n_ops; i++) {
        const tctl_op_spec *op = &spec->ops[i];
        model =
            append(model, json_pack("{s:s, s:s, s:o, s:o}", "op", op->op, "name", op->name, "from",
                                    inputs_json(spec, op), "options", tctl_config_json(op->config, true)));
    }
    return model;
}

static json_t *texts_json(const char *const *texts, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++)
        list = append(list, json_string(texts[i]));
    return list;
}

/* The path alone, unless there is more to say. */
static json_t *output_json(const tctl_output_spec *output)
{
    uint32_t n = 0;
    while (output->volatile_paths && output->volatile_paths[n])
        n++;
    if (n == 0 && !output->as_bytes)
        return json_string(output->path);
    return json_pack("{s:s, s:s, s:o}", "path", output->path, "compare",
                     output->as_bytes ? "bytes" : "content", "volatile",
                     texts_json(output->volatile_paths, n));
}

static json_t *outputs_json(const tctl_spec *spec)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < spec->n_outputs; i++)
        list = append(list, output_json(&spec->outputs[i]));
    return list;
}

json_t *tctl_spec_recipe(const tctl_spec *spec)
{
    static const char *const contracts[] = {"", "exact", "machine", "off"};
    char seed[24];
    json_t *recipe = json_object();
    snprintf(seed, sizeof seed, "%" PRIu64, spec->seed);
    int bad = set(recipe, "format", json_string("trainctl-recipe/1"));
    bad |= set(recipe, "seed", json_string(seed));
    bad |= set(recipe, "contract", json_string(contracts[spec->contract]));
    bad |= set(recipe, "data", data_json(spec));
    bad |= set(recipe, "stages", uses_json(spec->stages, spec->n_stages, true));
    if (spec->trainer) {
        bad |= set(recipe, "model", model_json(spec));
        bad |= set(recipe, "train", use_json(spec->trainer, NULL));
    } else {
        bad |= set(recipe, "run", json_string(spec->command));
        bad |= set(recipe, "outputs", outputs_json(spec));
        bad |= set(recipe, "seed_scope", json_string(spec->determinism.sample_seeds ? "sample" : "worker"));
    }
    if (spec->command || !spec->determinism.is_default)
        bad |= set(recipe, "determinism", tctl_config_json(spec->determinism.config, true));
    if (bad) {
        json_decref(recipe);
        return NULL;
    }
    return recipe;
}
