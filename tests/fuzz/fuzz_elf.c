/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file, and as the notes of one. */
#include <stdlib.h>
#include <string.h>

#include "manifest/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct bytes {
    const uint8_t *data;
    size_t size;
} bytes;

static bool read_bytes(void *impl, uint64_t offset, void *ret, size_t size)
{
    const bytes *b = impl;
    if (offset > b->size || size > b->size - offset)
        return false;
    memcpy(ret, b->data + offset, size);
    return true;
}

static void check(const char *hex)
{
    size_t n = strlen(hex);
    if (n == 0 || n % 2 != 0 || n >= TCTL_BUILD_ID_HEX || strspn(hex, "0123456789abcdef") != n)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char hex[TCTL_BUILD_ID_HEX];
    bytes b = {data, size};
    tctl_elf_source source = {.impl = &b, .read = read_bytes};
    if (tctl_elf_build_id(&source, hex))
        check(hex);
    for (int swap = 0; swap < 2; swap++) {
        if (tctl_elf_notes_build_id(data, size, size % 2 ? 4 : 8, swap, hex))
            check(hex);
    }
    return 0;
}
