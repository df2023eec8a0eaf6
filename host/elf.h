/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a shared object says about itself, read from its bytes without running it: whether it is whole, for this
 * machine, what it exports, what it wants from others.
 *
 * Reads foreign bytes: nothing in the file is trusted. Symbols come from the section table, which linkers write
 * and only sstrip removes; without it `has_symbols` is false and the lists are empty.
 */
#ifndef TCTL_HOST_ELF_H
#define TCTL_HOST_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct tctl_elf {
    bool has_symbols;
    uint32_t n_imports, n_exports;
    const char *const *imports; /* undefined dynamic symbols, in the file's order */
    const char *const *exports; /* defined ones that others can see */
    const char *build_id;       /* GNU build-id as hex, or NULL */
} tctl_elf;

/* `name` is for messages. TCTL_EPLUGIN: not an ELF shared object, for another machine, or cut short. */
tctl_status tctl_elf_read(tctl_arena *, const char *name, const void *data, size_t size, tctl_elf **ret,
                          tctl_error *err);

bool tctl_elf_exports(const tctl_elf *, const char *symbol);

/* Imports that the rules of conduct forbid (rand, time, getenv, exit, setlocale, pthread_create, …), as
 * { "time", "reads the clock" } pairs; *ret_n may be 0. From the arena. */
typedef struct tctl_forbidden {
    const char *symbol, *why;
} tctl_forbidden;
tctl_status tctl_elf_forbidden(tctl_arena *, const tctl_elf *, const tctl_forbidden **ret, uint32_t *ret_n,
                               tctl_error *err);

#endif
