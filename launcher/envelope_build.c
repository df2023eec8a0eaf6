/* SPDX-License-Identifier: Apache-2.0 */
/* An environment that is being made: what is in it, and adding to it with and without a record. */
#include "launcher/envelope_internal.h"

#include <stdlib.h>
#include <string.h>

const char *tctl_envelope_lookup(const char *const *from, const char *name)
{
    size_t length = strlen(name);
    for (; from != NULL && *from != NULL; from++) {
        if (strncmp(*from, name, length) == 0 && (*from)[length] == '=')
            return *from + length + 1;
    }
    return NULL;
}

bool tctl_envelope_is_among(const char *name, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        if (strcmp(name, *list) == 0)
            return true;
    }
    return false;
}

bool tctl_envelope_is_text_in(const json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

bool tctl_envelope_has(const tctl_envelope_builder *b, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < b->n; i++) {
        if (strncmp(b->variables[i], name, length) == 0 && b->variables[i][length] == '=')
            return true;
    }
    return false;
}

void tctl_envelope_add(tctl_envelope_builder *b, const char *name, const char *value)
{
    const char *entry = tctl_arena_format(b->arena, "%s=%s", name, value);
    if (entry == NULL || b->n >= TCTL_ENVELOPE_MAX_VARIABLES)
        b->failed = true;
    else
        b->variables[b->n++] = entry;
}

/* json_string refuses bytes that are not UTF-8; such a value is recorded by name. */
void tctl_envelope_record_value(tctl_envelope_builder *b, const char *name, const char *value)
{
    json_t *text = json_string(value);
    if (text != NULL)
        json_object_set_new(b->values, name, text);
    else
        json_array_append_new(b->names, json_string(name));
}

void tctl_envelope_pin(tctl_envelope_builder *b, const char *name, const char *value)
{
    tctl_envelope_add(b, name, value);
    tctl_envelope_record_value(b, name, value);
}

int tctl_envelope_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}
