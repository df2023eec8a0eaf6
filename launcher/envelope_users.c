/* SPDX-License-Identifier: Apache-2.0 */
/* The user's variables on their way into the child's environment. What is judged about them is in envelope_fate.c. */
#include "launcher/envelope_internal.h"

#include <stdlib.h>
#include <string.h>

#include "manifest/environment.h"

static void pass(tctl_envelope_builder *b, const tctl_variable *v, const char *name, const char *value,
                 int fate)
{
    bool by_name = v == NULL ? tctl_environment_looks_secret(name) : v->kind == TCTL_VARIABLE_NAMED;
    tctl_envelope_add(b, name, value);
    if (by_name)
        json_array_append_new(b->names, json_string(name));
    else
        tctl_envelope_record_value(b, name, value);
    if (tctl_envelope_is_among(name, b->request->allow))
        json_array_append_new(b->allowed, json_string(name));
    else if (fate == TCTL_FATE_KEPT)
        json_array_append_new(b->kept, json_string(name));
}

/* True if `verify` takes it from the record, not from its own shell. */
static bool is_recorded(const tctl_envelope_builder *b, const tctl_variable *v, const char *name)
{
    if (b->request->recorded == NULL)
        return false;
    if (tctl_envelope_is_among(name, b->request->determinism->unpinned))
        return true;
    return v != NULL && (v->kind == TCTL_VARIABLE_LIBRARY || v->kind == TCTL_VARIABLE_CHOICE ||
                         v->kind == TCTL_VARIABLE_PASSED || v->kind == TCTL_VARIABLE_FAMILY);
}

/* In the order of names: a shell's own order means nothing. */
void tctl_envelope_pass_users(tctl_envelope_builder *b)
{
    size_t n = 0;
    while (b->request->from != NULL && b->request->from[n] != NULL)
        n++;
    const char **sorted = tctl_arena_take_array(b->arena, n + 1, sizeof *sorted);
    if (sorted == NULL) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = b->request->from[i];
    qsort(sorted, n, sizeof *sorted, tctl_envelope_by_text);
    for (const char **e = sorted; *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        size_t length = equals == NULL ? 0 : (size_t)(equals - *e);
        const tctl_variable *v = NULL;
        char *name = length == 0 ? NULL : tctl_arena_copy(b->arena, *e, length);
        if (length == 0 || name == NULL) {
            b->failed = b->failed || length > 0;
            continue;
        }
        if (tctl_envelope_has(b, name) || is_recorded(b, tctl_variable_find(name, length), name))
            continue;
        int fate = tctl_envelope_fate(b->request, name, length, equals + 1, &v);
        if (fate == TCTL_FATE_PASSED || fate == TCTL_FATE_KEPT)
            pass(b, v, name, equals + 1, fate);
    }
}

/* What was kept, passed by value or allowed then. A manifest may come from anywhere: a name with '=' is not one. */
void tctl_envelope_pass_recorded(tctl_envelope_builder *b)
{
    const json_t *recorded = b->request->recorded, *allowed = json_object_get(recorded, "allowed");
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(recorded, "variables"), name, value)
    {
        const tctl_variable *v = tctl_variable_find(name, strlen(name));
        bool was_allowed = tctl_envelope_is_text_in(allowed, name);
        if (*name == '\0' || strchr(name, '=') != NULL || tctl_envelope_has(b, name) ||
            !json_is_string(value))
            continue;
        if (!was_allowed && !is_recorded(b, v, name))
            continue;
        bool was_kept = tctl_envelope_is_text_in(json_object_get(recorded, "kept"), name);
        pass(b, v, name, json_string_value(value), was_kept ? TCTL_FATE_KEPT : TCTL_FATE_PASSED);
        if (was_allowed && !tctl_envelope_is_among(name, b->request->allow))
            json_array_append_new(b->allowed, json_string(name));
    }
}

void tctl_envelope_pass_secrets(tctl_envelope_builder *b)
{
    for (const char *const *s = b->request->secrets; s != NULL && *s != NULL; s++) {
        const char *value = tctl_envelope_lookup(b->request->from, *s);
        if (value != NULL && !tctl_envelope_has(b, *s))
            tctl_envelope_add(b, *s, value);
        json_array_append_new(b->secrets, json_string(*s));
        json_object_del(b->values, *s);
    }
}

/* A probe's, in place of what the name has so far. */
void tctl_envelope_replace(tctl_envelope_builder *b)
{
    for (const char *const *v = b->request->variables; v != NULL && *v != NULL; v++) {
        size_t length = strcspn(*v, "="), kept = 0;
        const char *name = tctl_arena_copy(b->arena, *v, length);
        for (size_t i = 0; i < b->n; i++) {
            if (strncmp(b->variables[i], *v, length + 1) != 0)
                b->variables[kept++] = b->variables[i];
        }
        b->n = kept;
        if (name == NULL || (*v)[length] != '=') {
            b->failed = true;
            return;
        }
        tctl_envelope_pin(b, name, *v + length + 1);
    }
}
