/* SPDX-License-Identifier: Apache-2.0 */
/* Looking into a tree of yaml.h, and showing its parts. */
#include <string.h>

#include "config/reader.h"
#include "config/utf8.h"
#include "config/yaml.h"

void tctl_yaml_relocate(tctl_yaml_node *node, tctl_loc loc, bool overridden)
{
    node->loc = loc;
    node->overridden = overridden;
    for (size_t i = 0; i < node->n; i++) {
        if (node->kind == TCTL_YAML_SEQUENCE) {
            tctl_yaml_relocate(node->items[i], loc, overridden);
        } else {
            tctl_yaml_relocate(node->pairs[i].key, loc, overridden);
            tctl_yaml_relocate(node->pairs[i].value, loc, overridden);
        }
    }
}

tctl_yaml_node *tctl_yaml_get(const tctl_yaml_node *mapping, const char *key)
{
    if (!mapping || mapping->kind != TCTL_YAML_MAPPING)
        return NULL;
    for (size_t i = 0; i < mapping->n; i++) {
        if (strcmp(mapping->pairs[i].key->text, key) == 0)
            return mapping->pairs[i].value;
    }
    return NULL;
}

const char *tctl_yaml_kind(const tctl_yaml_node *node)
{
    if (node->kind == TCTL_YAML_SEQUENCE)
        return "a list";
    return node->kind == TCTL_YAML_MAPPING ? "a mapping" : "a value";
}

const char *tctl_yaml_show(tctl_arena *arena, const char *text, size_t length)
{
    enum { MAX_SHOWN = 60 };
    char shown[MAX_SHOWN * 4 + 8];
    size_t at = 0, i = 0;
    for (size_t n = 0; i < length && n < MAX_SHOWN; n++) {
        uint32_t code;
        size_t bytes = tctl_utf8_decode(text + i, length - i, &code);
        if (bytes == 0 || (code < 0x20 && code != '\n') || (code >= 0x7F && code < 0xA0)) {
            memcpy(shown + at, "\xEF\xBF\xBD", 3);
            at += 3;
        } else if (code == '\n') {
            memcpy(shown + at, "\\n", 2);
            at += 2;
        } else {
            memcpy(shown + at, text + i, bytes);
            at += bytes;
        }
        i += bytes ? bytes : 1;
    }
    if (i < length) {
        memcpy(shown + at, "\xE2\x80\xA6", 3);
        at += 3;
    }
    return tctl_arena_copy(arena, shown, at);
}
