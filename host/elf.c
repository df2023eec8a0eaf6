/* SPDX-License-Identifier: Apache-2.0 */
/* See elf.h. Layout: System V gABI, chapters 4 and 5. Headers are copied out, never pointed into: a file need not
 * be aligned. */
#include "host/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "manifest/elf.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#elif defined(__riscv)
#define MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define MACHINE EM_PPC64
#else
#define MACHINE EM_NONE /* any */
#endif

#if __SIZEOF_POINTER__ == 8
#define CLASS        ELFCLASS64
#define SYM_BIND(st) ELF64_ST_BIND(st)
#define SYM_SEEN(st) ELF64_ST_VISIBILITY(st)
#else
#define CLASS        ELFCLASS32
#define SYM_BIND(st) ELF32_ST_BIND(st)
#define SYM_SEEN(st) ELF32_ST_VISIBILITY(st)
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ORDER ELFDATA2LSB
#else
#define ORDER ELFDATA2MSB
#endif

#define MAX_SYMBOLS (1u << 20)

typedef struct reader {
    tctl_arena *arena;
    const char *name;
    const unsigned char *data;
    size_t size;
    tctl_error *err;
} reader;

/* Copies `size` bytes at `offset`, or false if the file is shorter. */
static bool copy_out(const reader *r, uint64_t offset, void *out, size_t size)
{
    if (offset > r->size || size > r->size - offset)
        return false;
    memcpy(out, r->data + offset, size);
    return true;
}

static tctl_status check_header(const reader *r, ElfW(Ehdr) * header)
{
    if (r->size < SELFMAG || memcmp(r->data, ELFMAG, SELFMAG) != 0)
        return tctl_fail(r->err, TCTL_EPLUGIN,
                         "'%s' is not a shared object: it does not begin with '\\x7fELF'", r->name);
    if (r->size < EI_NIDENT || r->data[EI_CLASS] != CLASS || r->data[EI_DATA] != ORDER)
        return tctl_fail(r->err, TCTL_EPLUGIN, "'%s' is a shared object for another kind of machine",
                         r->name);
    if (!copy_out(r, 0, header, sizeof *header))
        return tctl_fail(r->err, TCTL_EPLUGIN, "'%s' is cut short: its header needs %zu bytes, it has %zu",
                         r->name, sizeof *header, r->size);
    if (MACHINE != EM_NONE && header->e_machine != MACHINE)
        return tctl_fail(r->err, TCTL_EPLUGIN, "'%s' is a shared object for another kind of machine",
                         r->name);
    if (header->e_type != ET_DYN)
        return tctl_fail(r->err, TCTL_EPLUGIN,
                         "'%s' is an ELF file but not a shared object: build it with -shared", r->name);
    return TCTL_OK;
}

static tctl_status read_notes(const reader *r, const ElfW(Phdr) * segment, tctl_elf *elf)
{
    char hex[TCTL_BUILD_ID_HEX];
    if (segment->p_offset > r->size || segment->p_filesz > r->size - segment->p_offset ||
        !tctl_elf_notes_build_id(r->data + segment->p_offset, (size_t)segment->p_filesz,
                                 (size_t)segment->p_align, false, hex))
        return TCTL_OK;
    elf->build_id = tctl_arena_copy(r->arena, hex, strlen(hex));
    return elf->build_id ? TCTL_OK : tctl_fail_memory(r->err, strlen(hex) + 1);
}

/* dlopen maps a segment that is not there and dies of SIGBUS when it is touched: look first. */
static tctl_status check_segments(const reader *r, const ElfW(Ehdr) * header, tctl_elf *elf)
{
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        uint64_t at = header->e_phoff + (uint64_t)i * sizeof segment;
        if (header->e_phentsize != sizeof segment || at < header->e_phoff ||
            !copy_out(r, at, &segment, sizeof segment))
            return tctl_fail(r->err, TCTL_EPLUGIN, "'%s' is cut short: its segment table is not there",
                             r->name);
        if (segment.p_type == PT_NOTE && !elf->build_id) {
            tctl_status status = read_notes(r, &segment, elf);
            if (status)
                return status;
        }
        if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC)
            continue;
        if (segment.p_offset > r->size || segment.p_filesz > r->size - segment.p_offset)
            return tctl_fail(r->err, TCTL_EPLUGIN,
                             "'%s' is cut short: segment %u has %llu bytes at offset %llu, the file has %zu",
                             r->name, i, (unsigned long long)segment.p_filesz,
                             (unsigned long long)segment.p_offset, r->size);
    }
    return TCTL_OK;
}

/* The NUL-terminated string at `at` of the table, or NULL. */
static const char *string_at(const reader *r, const ElfW(Shdr) * table, uint64_t at)
{
    if (at >= table->sh_size)
        return NULL;
    const char *start = (const char *)r->data + table->sh_offset + at;
    return memchr(start, '\0', table->sh_size - at) ? start : NULL;
}

/* The table of dynamic symbols and its strings, both inside the file; false if the file names none. */
static bool find_symbols(const reader *r, const ElfW(Ehdr) * header, ElfW(Shdr) * ret_symbols,
                         ElfW(Shdr) * ret_strings)
{
    for (uint32_t i = 0; i < header->e_shnum; i++) {
        uint64_t at = header->e_shoff + (uint64_t)i * sizeof *ret_symbols;
        if (header->e_shentsize != sizeof *ret_symbols || at < header->e_shoff ||
            !copy_out(r, at, ret_symbols, sizeof *ret_symbols))
            return false;
        if (ret_symbols->sh_type != SHT_DYNSYM)
            continue;
        uint64_t strings = header->e_shoff + (uint64_t)ret_symbols->sh_link * sizeof *ret_strings;
        return strings >= header->e_shoff && copy_out(r, strings, ret_strings, sizeof *ret_strings) &&
               ret_strings->sh_offset <= r->size &&
               ret_strings->sh_size <= r->size - ret_strings->sh_offset &&
               ret_symbols->sh_offset <= r->size && ret_symbols->sh_size <= r->size - ret_symbols->sh_offset;
    }
    return false;
}

static tctl_status read_symbols(const reader *r, const ElfW(Ehdr) * header, tctl_elf *elf)
{
    ElfW(Shdr) symbols, strings;
    if (!find_symbols(r, header, &symbols, &strings))
        return TCTL_OK;
    size_t n = symbols.sh_size / sizeof(ElfW(Sym));
    if (n > MAX_SYMBOLS)
        return tctl_fail(r->err, TCTL_EPLUGIN, "'%s' has %zu dynamic symbols, more than %u", r->name, n,
                         MAX_SYMBOLS);
    const char **imports = tctl_arena_take_array(r->arena, n + 1, sizeof *imports);
    const char **exports = tctl_arena_take_array(r->arena, n + 1, sizeof *exports);
    if (!imports || !exports)
        return tctl_fail_memory(r->err, (n + 1) * sizeof *imports);
    for (size_t i = 1; i < n; i++) { /* entry 0 is reserved */
        ElfW(Sym) symbol;
        if (!copy_out(r, symbols.sh_offset + i * sizeof symbol, &symbol, sizeof symbol))
            break;
        const char *name = string_at(r, &strings, symbol.st_name);
        if (!name || !*name || SYM_BIND(symbol.st_info) == STB_LOCAL)
            continue;
        const char *copy = tctl_arena_copy(r->arena, name, strlen(name));
        if (!copy)
            return tctl_fail_memory(r->err, strlen(name));
        if (symbol.st_shndx == SHN_UNDEF)
            imports[elf->n_imports++] = copy;
        else if (SYM_SEEN(symbol.st_other) == STV_DEFAULT || SYM_SEEN(symbol.st_other) == STV_PROTECTED)
            exports[elf->n_exports++] = copy;
    }
    elf->has_symbols = true;
    elf->imports = imports;
    elf->exports = exports;
    return TCTL_OK;
}

tctl_status tctl_elf_read(tctl_arena *arena, const char *name, const void *data, size_t size, tctl_elf **ret,
                          tctl_error *err)
{
    const reader r = {arena, name, data, size, err};
    ElfW(Ehdr) header;
    tctl_elf *elf = tctl_arena_take(arena, sizeof *elf);
    if (!elf)
        return tctl_fail_memory(err, sizeof *elf);
    tctl_status status = check_header(&r, &header);
    if (!status)
        status = check_segments(&r, &header, elf);
    if (!status)
        status = read_symbols(&r, &header, elf);
    if (!status)
        *ret = elf;
    return status;
}

bool tctl_elf_exports(const tctl_elf *elf, const char *symbol)
{
    for (uint32_t i = 0; i < elf->n_exports; i++) {
        if (strcmp(elf->exports[i], symbol) == 0)
            return true;
    }
    return false;
}

static const tctl_forbidden rules[] = {
    {"rand", "draws random numbers that the seed does not decide"},
    {"srand", "draws random numbers that the seed does not decide"},
    {"random", "draws random numbers that the seed does not decide"},
    {"srandom", "draws random numbers that the seed does not decide"},
    {"drand48", "draws random numbers that the seed does not decide"},
    {"lrand48", "draws random numbers that the seed does not decide"},
    {"getrandom", "draws random numbers that the seed does not decide"},
    {"getentropy", "draws random numbers that the seed does not decide"},
    {"arc4random", "draws random numbers that the seed does not decide"},
    {"time", "reads the clock"},
    {"gettimeofday", "reads the clock"},
    {"clock_gettime", "reads the clock"},
    {"getenv", "reads the environment; use an option"},
    {"secure_getenv", "reads the environment; use an option"},
    {"setenv", "changes the environment of the whole process"},
    {"putenv", "changes the environment of the whole process"},
    {"exit", "ends the process; return an error"},
    {"_exit", "ends the process; return an error"},
    {"quick_exit", "ends the process; return an error"},
    {"setlocale", "changes the locale of the whole process"},
    {"uselocale", "changes the locale of a thread that is not its own"},
    {"chdir", "changes the working directory of the whole process"},
    {"fchdir", "changes the working directory of the whole process"},
    {"umask", "changes the file mode mask of the whole process"},
    {"signal", "installs a signal handler"},
    {"sigaction", "installs a signal handler"},
    {"pthread_create", "starts a thread; use trainctl.parallel/1"},
    {"thrd_create", "starts a thread; use trainctl.parallel/1"},
    {"fork", "starts a process"},
    {"system", "starts a process"},
    {"popen", "starts a process"},
    {"fesetround", "changes the floating-point mode"},
    {"fesetenv", "changes the floating-point mode"},
    {"printf", "prints; use trainctl.log/1"},
    {"puts", "prints; use trainctl.log/1"},
    {"putchar", "prints; use trainctl.log/1"},
    {"__printf_chk", "prints; use trainctl.log/1"},
    {"stdout", "prints; use trainctl.log/1"},
    {"stderr", "prints; use trainctl.log/1"},
};

tctl_status tctl_elf_forbidden(tctl_arena *arena, const tctl_elf *elf, const tctl_forbidden **ret,
                               uint32_t *ret_n, tctl_error *err)
{
    uint32_t n = 0;
    tctl_forbidden *found = tctl_arena_take_array(arena, TCTL_COUNT_OF(rules), sizeof *found);
    if (!found)
        return tctl_fail_memory(err, sizeof rules);
    for (uint32_t rule = 0; rule < TCTL_COUNT_OF(rules); rule++) {
        for (uint32_t i = 0; i < elf->n_imports; i++) {
            if (strcmp(elf->imports[i], rules[rule].symbol) == 0) {
                found[n++] = rules[rule];
                break;
            }
        }
    }
    *ret = found;
    *ret_n = n;
    return TCTL_OK;
}
