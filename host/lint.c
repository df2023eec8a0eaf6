/* SPDX-License-Identifier: Apache-2.0 */
/* See lint.h: the descriptor and the function tables; lint_options.c has the options. */
#include "host/lint.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "trainctl/ext/graph.h"
#include "trainctl/ext/hooks.h"
#include "trainctl/ext/optimizer.h"
#include "trainctl/ext/schedule.h"
#include "trainctl/ext/source.h"
#include "trainctl/ext/state.h"
#include "trainctl/ext/trainer.h"
#include "trainctl/ext/transform.h"

#define MAX_EXTENSIONS 64
#define MAX_OPS        1000

/* The descriptor and option as ABI 1.0 had them: the least that any plugin has. They may grow; these may not. */
#define PLUGIN_SIZE_1_0 (offsetof(tctl_plugin, destroy) + sizeof(((tctl_plugin *)0)->destroy))
#define OPTION_SIZE_1_0 (offsetof(tctl_option, since) + sizeof(((tctl_option *)0)->since))

/* The functions that an extension cannot be without. */
typedef struct required {
    const char *name;
    size_t offset;
} required;

typedef struct contract {
    const char *id;
    size_t size; /* of the struct in ABI 1.0 */
    required functions[4];
} contract;

#define MUST(T, f)                                                                                           \
    {                                                                                                        \
#f, offsetof(T, f)                                                                                   \
    }

static const contract contracts[] = {
    {TCTL_SOURCE_ID,
     sizeof(tctl_source),
     {MUST(tctl_source, count), MUST(tctl_source, describe), MUST(tctl_source, read)}},
    {TCTL_TRANSFORM_ID,
     sizeof(tctl_transform),
     {MUST(tctl_transform, describe), MUST(tctl_transform, apply)}},
    {TCTL_TRAINER_ID, sizeof(tctl_trainer), {MUST(tctl_trainer, run)}},
    {TCTL_OPTIMIZER_ID, sizeof(tctl_optimizer), {MUST(tctl_optimizer, update)}},
    {TCTL_SCHEDULE_ID, sizeof(tctl_schedule), {MUST(tctl_schedule, factor)}},
    {TCTL_GRAPH_ID, sizeof(tctl_graph), {MUST(tctl_graph, rewrite)}},
    {TCTL_HOOKS_ID, sizeof(tctl_hooks), {{NULL, 0}}},
    {TCTL_STATE_ID, sizeof(tctl_state), {MUST(tctl_state, save), MUST(tctl_state, load)}},
};

/* ---- versions and sizes ------------------------------------------------------------------------------ */

static tctl_status check_versions(const tctl_plugin *p, const char *who, tctl_error *err)
{
    if (p->abi_major != TCTL_ABI_MAJOR || p->abi_minor > TCTL_ABI_MINOR)
        return tctl_fail(err, TCTL_EPLUGIN, "%s needs ABI %u.%u; this trainctl offers %d.%d", who,
                         p->abi_major, p->abi_minor, TCTL_ABI_MAJOR, TCTL_ABI_MINOR);
    if (p->struct_size < PLUGIN_SIZE_1_0)
        return tctl_fail(err, TCTL_EPLUGIN,
                         "%s has a descriptor of %u bytes; ABI %u.%u has at least %zu: begin it with "
                         "TCTL_PLUGIN_HEADER",
                         who, p->struct_size, p->abi_major, p->abi_minor, PLUGIN_SIZE_1_0);
    if (p->option_size < OPTION_SIZE_1_0 || p->option_size % sizeof(void *) != 0)
        return tctl_fail(
            err, TCTL_EPLUGIN,
            "%s has options of %u bytes; ABI %u.%u has at least %zu: begin it with TCTL_PLUGIN_HEADER", who,
            p->option_size, p->abi_major, p->abi_minor, OPTION_SIZE_1_0);
    return TCTL_OK;
}

/* ---- words and flags --------------------------------------------------------------------------------- */

static bool is_plugin_name(const char *name)
{
    if (!(name[0] >= 'a' && name[0] <= 'z') || strlen(name) > 64)
        return false;
    for (const char *c = name; *c; c++) {
        if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '_'))
            return false;
    }
    return true;
}

static tctl_status check_words(const tctl_plugin *p, const char *who, tctl_error *err)
{
    const struct {
        const char *what, *text;
    } words[] = {
        {"name", p->name}, {"version", p->version}, {"licence", p->license}, {"summary", p->summary}};
    for (size_t i = 0; i < TCTL_COUNT_OF(words); i++) {
        if (!words[i].text || !*words[i].text)
            return tctl_fail(err, TCTL_EPLUGIN, "%s has no %s", who, words[i].what);
        if (!tctl_lint_is_utf8(words[i].text))
            return tctl_fail(err, TCTL_EPLUGIN, "%s has a %s that is not UTF-8", who, words[i].what);
    }
    if (!is_plugin_name(p->name))
        return tctl_fail(
            err, TCTL_EPLUGIN,
            "%s calls itself '%.80s'; a name is 1 to 64 lower-case letters, digits, '-' and '_', "
            "beginning with a letter",
            who, p->name);
    if (p->bits != TCTL_BITS_SAME && p->bits != TCTL_BITS_RECIPE)
        return tctl_fail(err, TCTL_EPLUGIN,
                         "%s does not say its effect on bits: TCTL_BITS_SAME or TCTL_BITS_RECIPE, got %u",
                         who, p->bits);
    const uint32_t claims =
        TCTL_SAME_RUNS | TCTL_SAME_THREADS | TCTL_SAME_CPUS | TCTL_SAME_RESUME | TCTL_SAME_DEVICES;
    if (p->claims & ~claims)
        return tctl_fail(err, TCTL_EPLUGIN, "%s makes unknown claims 0x%x", who, p->claims & ~claims);
    if (p->flags & ~(uint32_t)TCTL_PLUGIN_REMEMBERS)
        return tctl_fail(err, TCTL_EPLUGIN, "%s has unknown flags 0x%x", who,
                         p->flags & ~(uint32_t)TCTL_PLUGIN_REMEMBERS);
    if (!p->create || !p->destroy)
        return tctl_fail(err, TCTL_EPLUGIN, "%s has no '%s' function", who, p->create ? "destroy" : "create");
    return TCTL_OK;
}

/* ---- function tables --------------------------------------------------------------------------------- */

static tctl_status check_contract(const contract *c, const void *vtable, const char *who, tctl_error *err)
{
    uint32_t size;
    memcpy(&size, vtable, sizeof size);
    /* The functions that it must have were all there in 1.0, so a smaller struct lacks some of them. */
    if (size < c->size)
        return tctl_fail(err, TCTL_EPLUGIN, "%s: '%s' has a struct_size of %u, ABI 1.0 has %zu", who, c->id,
                         size, c->size);
    for (size_t i = 0; i < TCTL_COUNT_OF(c->functions) && c->functions[i].name; i++) {
        void (*function)(void);
        memcpy(&function, (const char *)vtable + c->functions[i].offset, sizeof function);
        if (!function)
            return tctl_fail(err, TCTL_EPLUGIN, "%s: '%s' lacks the function '%s'", who, c->id,
                             c->functions[i].name);
    }
    return TCTL_OK;
}

static tctl_status check_slots(const tctl_optimizer *optimizer, const char *who, tctl_error *err)
{
    if (optimizer->n_slots > TCTL_OPTIMIZER_MAX_SLOTS)
        return tctl_fail(err, TCTL_EPLUGIN, "%s: '%s' has %u slots, at most %d are possible", who,
                         TCTL_OPTIMIZER_ID, optimizer->n_slots, TCTL_OPTIMIZER_MAX_SLOTS);
    for (uint32_t i = 0; i < optimizer->n_slots; i++) {
        if (!optimizer->slot_names || !optimizer->slot_names[i])
            return tctl_fail(err, TCTL_EPLUGIN, "%s: '%s' has no name for slot %u", who, TCTL_OPTIMIZER_ID,
                             i);
    }
    return TCTL_OK;
}

static tctl_status check_ops(const tctl_plugin *p, const tctl_trainer *trainer, const char *who,
                             tctl_error *err)
{
    const size_t least = offsetof(tctl_op_schema, reserved) + sizeof(uint32_t);
    if (trainer->n_ops > MAX_OPS || (trainer->n_ops && (!trainer->ops || trainer->op_schema_size < least)))
        return tctl_fail(err, TCTL_EPLUGIN, "%s: '%s' has a broken table of operators", who, TCTL_TRAINER_ID);
    for (uint32_t i = 0; i < trainer->n_ops; i++) {
        const void *at = (const char *)trainer->ops + (size_t)i * trainer->op_schema_size;
        const tctl_op_schema *op = at;
        char name[256];
        if (!op->op || !*op->op || !op->doc || !*op->doc)
            return tctl_fail(err, TCTL_EPLUGIN, "%s: operator number %u has no name or no doc", who, i);
        if (op->min_inputs > op->max_inputs || op->max_inputs > TCTL_NODE_MAX_INPUTS)
            return tctl_fail(err, TCTL_EPLUGIN,
                             "%s: operator '%s' takes %u to %u inputs; possible are 0 to %d", who, op->op,
                             op->min_inputs, op->max_inputs, TCTL_NODE_MAX_INPUTS);
        snprintf(name, sizeof name, "%.128s: operator '%.64s'", who, op->op);
        tctl_status status = tctl_options_lint(op->options, op->n_options, p->option_size, name, err);
        if (status)
            return status;
    }
    return TCTL_OK;
}

static tctl_status check_extension(const tctl_plugin *p, uint32_t i, const char *who, tctl_error *err)
{
    const tctl_extension *e = &p->extensions[i];
    if (!e->id || !*e->id || !e->vtable)
        return tctl_fail(err, TCTL_EPLUGIN, "%s: extension number %u has no %s", who, i,
                         e->id && *e->id ? "functions" : "id");
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(p->extensions[j].id, e->id) == 0)
            return tctl_fail(err, TCTL_EPLUGIN, "%s provides '%s' twice", who, e->id);
    }
    tctl_status status = TCTL_OK;
    for (size_t c = 0; c < TCTL_COUNT_OF(contracts) && !status; c++) {
        if (strcmp(contracts[c].id, e->id) == 0)
            status = check_contract(&contracts[c], e->vtable, who, err);
    }
    if (!status && strcmp(e->id, TCTL_OPTIMIZER_ID) == 0)
        status = check_slots(e->vtable, who, err);
    if (!status && strcmp(e->id, TCTL_TRAINER_ID) == 0)
        status = check_ops(p, e->vtable, who, err);
    return status;
}

static tctl_status check_extensions(const tctl_plugin *p, const char *who, tctl_error *err)
{
    if (p->n_extensions == 0)
        return tctl_fail(err, TCTL_EPLUGIN, "%s provides nothing: its table of extensions is empty", who);
    if (p->n_extensions > MAX_EXTENSIONS || !p->extensions)
        return tctl_fail(err, TCTL_EPLUGIN, "%s has a broken table of extensions: %u entries", who,
                         p->n_extensions);
    tctl_status status = TCTL_OK;
    for (uint32_t i = 0; i < p->n_extensions && !status; i++)
        status = check_extension(p, i, who, err);
    return status;
}

tctl_status tctl_plugin_lint(const tctl_plugin *p, const char *who, tctl_error *err)
{
    tctl_status status = check_versions(p, who, err);
    if (!status)
        status = check_words(p, who, err);
    if (!status)
        status = tctl_options_lint(p->options, p->n_options, p->option_size, who, err);
    if (!status)
        status = check_extensions(p, who, err);
    return status;
}
