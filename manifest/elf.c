/* SPDX-License-Identifier: Apache-2.0 */
/* See elf.h. The layouts are those of elf(5); fields are read by offset, so that one function serves both classes. */
#include "manifest/elf.h"

#include <elf.h>
#include <string.h>

/* Notes of real files are a few hundred bytes; a segment that says more is not read. */
static const uint64_t notes_limit = (uint64_t)1 << 16;
enum { headers_limit = 512 };

static bool machine_is_little(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static uint64_t number(const uint8_t *p, size_t size, bool little)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | p[little ? size - 1 - i : i];
    return v;
}

bool tctl_elf_notes_build_id(const void *notes, size_t size, size_t align, bool swap,
                             char ret[TCTL_BUILD_ID_HEX])
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *p = notes;
    bool little = machine_is_little() != swap;
    size_t mask = align == 8 ? 7 : 3;
    while (size >= 12) {
        size_t name = (size_t)number(p, 4, little), content = (size_t)number(p + 4, 4, little);
        uint64_t type = number(p + 8, 4, little);
        if (name > size - 12 || content > size - 12)
            return false;
        /* Both are below 2^32 and `size`, so nothing overflows. */
        size_t at = (12 + name + mask) & ~mask, end = (at + content + mask) & ~mask;
        if (at > size || content > size - at)
            return false;
        if (type == NT_GNU_BUILD_ID && name == 4 && memcmp(p + 12, "GNU", 4) == 0 && content > 0 &&
            2 * content < TCTL_BUILD_ID_HEX) {
            for (size_t i = 0; i < content; i++) {
                ret[2 * i] = digits[p[at + i] >> 4];
                ret[2 * i + 1] = digits[p[at + i] & 15];
            }
            ret[2 * content] = '\0';
            return true;
        }
        if (end >= size)
            return false;
        p += end;
        size -= end;
    }
    return false;
}

/* Notes of one program header's segment. */
static bool segment_build_id(const tctl_elf_source *source, uint64_t offset, uint64_t size, uint64_t align,
                             bool little, char ret[TCTL_BUILD_ID_HEX])
{
    static const size_t chunk = 4096; /* the build-id stands in front in all that linkers make */
    uint8_t notes[4096];
    if (size > notes_limit)
        return false;
    size_t n = size < chunk ? (size_t)size : chunk;
    return source->read(source->impl, offset, notes, n) &&
           tctl_elf_notes_build_id(notes, n, (size_t)align, little != machine_is_little(), ret);
}

bool tctl_elf_build_id(const tctl_elf_source *source, char ret[TCTL_BUILD_ID_HEX])
{
    uint8_t header[sizeof(Elf64_Ehdr)], entry[sizeof(Elf64_Phdr)];
    if (!source->read(source->impl, 0, header, sizeof(Elf32_Ehdr)) || memcmp(header, ELFMAG, SELFMAG) != 0)
        return false;
    bool wide = header[EI_CLASS] == ELFCLASS64, little = header[EI_DATA] == ELFDATA2LSB;
    if ((!wide && header[EI_CLASS] != ELFCLASS32) || (!little && header[EI_DATA] != ELFDATA2MSB))
        return false;
    if (wide && !source->read(source->impl, 0, header, sizeof(Elf64_Ehdr)))
        return false;
#define FIELD(at, type, field)                                                                               \
    (wide ? number((at) + offsetof(Elf64_##type, field), sizeof(((Elf64_##type *)0)->field), little)         \
          : number((at) + offsetof(Elf32_##type, field), sizeof(((Elf32_##type *)0)->field), little))
    uint64_t table = FIELD(header, Ehdr, e_phoff), n = FIELD(header, Ehdr, e_phnum);
    uint64_t size = FIELD(header, Ehdr, e_phentsize), least = wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    if (size < least || n > headers_limit || table > UINT64_MAX - n * size)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        if (!source->read(source->impl, table + i * size, entry, (size_t)least))
            return false;
        if (FIELD(entry, Phdr, p_type) == PT_NOTE &&
            segment_build_id(source, FIELD(entry, Phdr, p_offset), FIELD(entry, Phdr, p_filesz),
                             FIELD(entry, Phdr, p_align), little, ret))
            return true;
    }
#undef FIELD
    return false;
}
