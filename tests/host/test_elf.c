/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files read without running them: symbols found, files that are cut short or foreign refused. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "host/elf.h"

static tctl_buf file = TCTL_BUF_INIT;
static tctl_arena *arena;

static void assert_refused(const void *data, size_t size, const char *words)
{
    tctl_error err;
    tctl_elf *elf = NULL;
    assert_int_equal(tctl_elf_read(arena, "x.so", data, size, &elf, &err), TCTL_EPLUGIN);
    assert_null(elf);
    if (!strstr(err.message, words))
        fail_msg("'%s' does not say '%s'", err.message, words);
}

static void symbols_are_found(void **state)
{
    (void)state;
    tctl_elf *elf = NULL;
    assert_int_equal(tctl_elf_read(arena, "good.so", file.data, file.size, &elf, NULL), TCTL_OK);
    assert_true(elf->has_symbols);
    assert_true(tctl_elf_exports(elf, "trainctl_plugin_v1"));
    assert_false(tctl_elf_exports(elf, "trainctl_plugin_v2"));
    bool malloc_found = false;
    for (uint32_t i = 0; i < elf->n_imports; i++)
        malloc_found |= strcmp(elf->imports[i], "malloc") == 0;
    assert_true(malloc_found);
    assert_non_null(elf->build_id);
    assert_int_equal(strlen(elf->build_id), 40); /* SHA-1 */
}

static void forbidden_imports_are_named(void **state)
{
    (void)state;
    const char *const imports[] = {"malloc", "time", "setlocale"};
    const tctl_elf elf = {.has_symbols = true, .n_imports = 3, .imports = imports};
    const tctl_forbidden *found = NULL;
    uint32_t n = 0;
    assert_int_equal(tctl_elf_forbidden(arena, &elf, &found, &n, NULL), TCTL_OK);
    assert_int_equal(n, 2);
    assert_string_equal(found[0].symbol, "time");
    assert_string_equal(found[0].why, "reads the clock");
    assert_string_equal(found[1].symbol, "setlocale");
}

static void what_is_no_library_is_refused(void **state)
{
    (void)state;
    assert_refused("", 0, "is not a shared object");
    assert_refused("#!/bin/sh\n", 10, "is not a shared object");
    assert_refused("\x7f"
                   "ELF",
                   4, "another kind of machine");
    assert_refused(file.data, 20, "is cut short: its header needs");
}

static void a_file_that_is_cut_short_never_passes(void **state)
{
    (void)state;
    /* The last loaded byte lies well before the section table; whatever is cut before it is refused. */
    for (size_t size = 64; size < file.size / 4; size += 37) {
        tctl_elf *elf = NULL;
        char *cut = malloc(size);
        assert_non_null(cut);
        memcpy(cut, file.data, size);
        assert_int_equal(tctl_elf_read(arena, "x.so", cut, size, &elf, NULL), TCTL_EPLUGIN);
        free(cut);
    }
    assert_refused(file.data, file.size / 4, "is cut short");
}

static void another_machine_is_refused(void **state)
{
    (void)state;
    char *copy = malloc(file.size);
    assert_non_null(copy);
    memcpy(copy, file.data, file.size);
    copy[offsetof(Elf64_Ehdr, e_machine)] = EM_SPARC;
    assert_refused(copy, file.size, "another kind of machine");
    memcpy(copy, file.data, file.size);
    copy[offsetof(Elf64_Ehdr, e_type)] = ET_REL;
    assert_refused(copy, file.size, "not a shared object: build it with -shared");
    free(copy);
}

static void wild_offsets_are_harmless(void **state)
{
    (void)state;
    uint64_t x = 88172645463325252u;
    char *copy = malloc(file.size);
    assert_non_null(copy);
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, file.data, file.size);
        Elf64_Ehdr header;
        memcpy(&header, copy, sizeof header);
        for (int flips = 0; flips < 4; flips++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            /* In the header, the segment table or the section table: where offsets are. */
            size_t base = flips % 3 == 0 ? 0 : flips % 3 == 1 ? header.e_phoff : header.e_shoff;
            size_t at = (base + x % 512) % file.size;
            copy[at] = (char)(x >> 32);
        }
        tctl_elf *elf = NULL;
        tctl_arena *own = tctl_arena_create();
        assert_non_null(own);
        (void)tctl_elf_read(own, "x.so", copy, file.size, &elf,
                            NULL); /* under sanitizers: reads nothing outside */
        tctl_arena_destroy(own);
    }
    free(copy);
}

static int load_file(void **state)
{
    (void)state;
    char path[4096];
    const char *build = getenv("TRAINCTL_BUILD");
    snprintf(path, sizeof path, "%s/tests/abi/good.so", build ? build : ".");
    arena = tctl_arena_create();
    return !arena || tctl_file_read(path, (size_t)64 << 20, &file, NULL);
}

static int free_file(void **state)
{
    (void)state;
    tctl_arena_destroy(arena);
    tctl_buf_release(&file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_are_found),
        cmocka_unit_test(forbidden_imports_are_named),
        cmocka_unit_test(what_is_no_library_is_refused),
        cmocka_unit_test(a_file_that_is_cut_short_never_passes),
        cmocka_unit_test(another_machine_is_refused),
        cmocka_unit_test(wild_offsets_are_harmless),
    };
    return cmocka_run_group_tests(tests, load_file, free_file);
}
