/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `determinism:`, and the reserved key of `data:`: what is done for a child whose code nobody changes.
 *
 * The defaults follow the contract: with `off` nothing was promised, so that everything is off that the spec does not
 * turn on. That the names of `unpin` are those of pinned variables is checked where the variables are known.
 */
#include <string.h>

#include "config/spec_read.h"

static const tctl_value *value_of(const tctl_config *config, const char *option)
{
    const tctl_config_entry *entry = tctl_config_find(config, option);
    return entry && entry->n ? &entry->values[0] : NULL;
}

static bool is_on(const tctl_config *config, const char *option)
{
    const tctl_value *value = value_of(config, option);
    return value && value->i != 0;
}

static bool is_word(const tctl_config *config, const char *option, const char *word)
{
    const tctl_value *value = value_of(config, option);
    return value && strcmp(value->text, word) == 0;
}

/* What contract `off` has where the spec says nothing. Addresses stay fixed and the interposer stays in place: they
 * record, and promise nothing. */
static void turn_off_defaults(tctl_config *config)
{
    for (uint32_t i = 0; i < config->n; i++) {
        tctl_config_entry *entry = &config->entries[i];
        const char *name = entry->option->name;
        if (entry->n == 0 || entry->values[0].given != 1)
            continue;
        if (strcmp(name, "denormals") == 0)
            entry->values[0].text = "off";
        else if (strcmp(name, "trace") == 0 ||
                 (entry->option->type == TCTL_BOOL && strcmp(name, "interposer") != 0))
            entry->values[0].i = 0;
    }
}

/* True if every value is the default, written or not; `fresh` has nothing but defaults. */
static bool same_values(const tctl_config *config, const tctl_config *fresh)
{
    for (uint32_t i = 0; i < config->n; i++) {
        const tctl_config_entry *a = &config->entries[i], *b = &fresh->entries[i];
        if (a->n != b->n)
            return false;
        if (a->n == 0)
            continue;
        bool is_text = a->option->type == TCTL_ENUM || a->option->type == TCTL_TEXT;
        if (is_text ? strcmp(a->values[0].text, b->values[0].text) != 0 : a->values[0].i != b->values[0].i)
            return false;
    }
    return true;
}

static tctl_status read_unpinned(const tctl_spec_reader *r, const tctl_config *config,
                                 const char *const **ret)
{
    const tctl_config_entry *entry = tctl_config_find(config, "unpin");
    uint32_t n = entry ? entry->n : 0;
    const char **names = tctl_arena_take_array(r->ctx.arena, n + 1u, sizeof *names);
    if (!names)
        return tctl_reader_no_memory(&r->ctx, n * sizeof *names);
    for (uint32_t i = 0; i < n; i++)
        names[i] = entry->values[i].text;
    *ret = names;
    return TCTL_OK;
}

/* Reads the section at `node` (NULL: nothing but defaults) and lets the contract change the defaults. */
static tctl_status read_section(const tctl_spec_reader *r, const tctl_yaml_node *node, tctl_config **ret)
{
    const tctl_spec_section *section = tctl_spec_section_find("determinism");
    const tctl_yaml_node nothing = {.kind = TCTL_YAML_MAPPING, .loc = tctl_loc_start(r->root->loc)};
    tctl_status status =
        tctl_config_read(&r->ctx, node ? node : &nothing, section->options, section->n_options,
                         sizeof *section->options, NULL, "'determinism'", "determinism", ret);
    if (!status && r->spec->contract == TCTL_CONTRACT_OFF)
        turn_off_defaults(*ret);
    return status;
}

/* `data: {seed_scope: sample}`. */
static tctl_status read_seed_scope(const tctl_spec_reader *r)
{
    const tctl_spec_section *section = tctl_spec_section_find("data-keys");
    const tctl_yaml_node *data = tctl_yaml_get(r->root, "data");
    tctl_config *config = NULL;
    if (!data || data->kind != TCTL_YAML_MAPPING || !tctl_yaml_get(data, "seed_scope"))
        return TCTL_OK;
    tctl_loc loc = tctl_spec_key_loc(data, "seed_scope");
    if (!r->spec->command) {
        tctl_error *err = tctl_reader_error(&r->ctx);
        tctl_fail_at(err, TCTL_ESPEC, loc, "'seed_scope' has no meaning with 'train'");
        tctl_note(err, "it is a key of 'data' itself: no data set can have this name");
        tctl_hint(err, "leave it out: a trainer's random numbers belong to samples, not to workers");
        return TCTL_OK;
    }
    tctl_yaml_node only = {.kind = TCTL_YAML_MAPPING, .loc = data->loc, .n = 1};
    for (size_t i = 0; i < data->n; i++) {
        if (strcmp(data->pairs[i].key->text, "seed_scope") == 0)
            only.pairs = &data->pairs[i];
    }
    tctl_status status = tctl_config_read(&r->ctx, &only, section->options, section->n_options,
                                          sizeof *section->options, NULL, "'data'", "data", &config);
    r->spec->determinism.sample_seeds = !status && is_word(config, "seed_scope", "sample");
    return status;
}

tctl_status tctl_spec_read_determinism(tctl_spec_reader *r)
{
    const tctl_yaml_node *node = tctl_yaml_get(r->root, "determinism");
    bool empty = node && node->kind == TCTL_YAML_SCALAR && node->length == 0 && !node->quoted;
    tctl_config *c = NULL, *fresh = NULL;
    tctl_status status = read_section(r, empty ? NULL : node, &c);
    if (!status)
        status = read_section(r, NULL, &fresh);
    if (status)
        return status;
    const tctl_value *trace = value_of(c, "trace");
    r->spec->determinism = (tctl_determinism){
        .variables = is_on(c, "variables"),
        .fixed_addresses = is_word(c, "addresses", "fixed"),
        .interposer = is_on(c, "interposer"),
        .sort_directories = is_on(c, "sort_directories"),
        .libc_seeds = is_on(c, "libc_seeds"),
        .seeded_entropy = is_word(c, "entropy", "seeded"),
        .keep_denormals = is_word(c, "denormals", "keep"),
        .python = is_on(c, "python"),
        .python_seeds = is_on(c, "python_seeds"),
        .torch = is_on(c, "torch"),
        .state_check = is_on(c, "state_check"),
        .trace = trace ? (uint32_t)trace->i : 0,
        .config = c,
        .is_default = same_values(c, fresh),
    };
    status = read_unpinned(r, c, &r->spec->determinism.unpinned);
    return status ? status : read_seed_scope(r);
}
