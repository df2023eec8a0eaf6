/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a plugin's file: symbols, imports and build-id, before any of it could be run. */
#include <stdlib.h>
#include <string.h>

#include "host/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every string, so that a sanitizer sees one that is not there. */
static size_t measure(const char *const *names, uint32_t n)
{
    size_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!names[i][0])
            abort(); /* symbols without a name are left out */
        total += strlen(names[i]);
    }
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_elf *elf = NULL;
    tctl_error err;
    if (!arena)
        return 0;
    tctl_status status = tctl_elf_read(arena, "x.so", data, size, &elf, &err);
    if (status && (elf || !err.message[0]))
        abort();
    if (!status) {
        const tctl_forbidden *found = NULL;
        uint32_t n = 0;
        size_t total = measure(elf->imports, elf->n_imports) + measure(elf->exports, elf->n_exports);
        if (total && !elf->has_symbols)
            abort();
        if (elf->build_id && strspn(elf->build_id, "0123456789abcdef") != strlen(elf->build_id))
            abort();
        (void)tctl_elf_exports(elf, "trainctl_plugin_v1");
        (void)tctl_elf_forbidden(arena, elf, &found, &n, NULL);
    }
    tctl_arena_destroy(arena);
    return 0;
}
