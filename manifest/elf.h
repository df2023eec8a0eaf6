/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GNU build-id of ELF files, 32 and 64 bit, little- and big-endian.
 *
 * Reads headers only; every offset and size is checked against what there is, since the file may be anything.
 */
#ifndef TCTL_MANIFEST_ELF_H
#define TCTL_MANIFEST_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hex digits and a NUL; longer build-ids (GNU's are 16 or 20 bytes) are not taken. */
#define TCTL_BUILD_ID_HEX 129

/* Where bytes come from: `read` gives exactly `size` bytes from `offset`, or false. */
typedef struct tctl_elf_source {
    void *impl;
    bool (*read)(void *impl, uint64_t offset, void *ret, size_t size);
} tctl_elf_source;

/* False if it is no ELF file, is malformed, or has no build-id. */
bool tctl_elf_build_id(const tctl_elf_source *, char ret[TCTL_BUILD_ID_HEX]);

/* The build-id among the notes of a segment. `align` is the segment's p_align (4 or 8); `swap`: of the other byte
 * order than this machine. */
bool tctl_elf_notes_build_id(const void *notes, size_t size, size_t align, bool swap,
                             char ret[TCTL_BUILD_ID_HEX]);

#endif
