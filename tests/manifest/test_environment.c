/* SPDX-License-Identifier: Apache-2.0 */
/* The environment: what is recorded by value, what never is, ISA levels, libraries, build-ids, the machine class. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "manifest/digest.h"
#include "manifest/elf.h"
#include "manifest/environment.h"
#include "manifest/environment_internal.h"

static json_t *environment(const char *const *env, const char *const *secrets)
{
    json_t *e = NULL;
    assert_int_equal(tctl_environment_capture(env, secrets, &e, NULL), TCTL_OK);
    return e;
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

static void variables_are_kept_by_an_allow_list(void **state)
{
    (void)state;
    static const char *const env[] = {"OMP_NUM_THREADS=2",
                                      "EDITOR=vi",
                                      "PATH=/bin",
                                      "NCCL_ALGO=",
                                      "WANDB_API_KEY=k1",
                                      "HF_TOKEN=k2",
                                      "TF_AUTH_TOKEN=k3",
                                      "TRAINCTL_PASSWORD=k4",
                                      "OMP_MINE=k5",
                                      "XLA_PROXY=http://me:k6@example.org/",
                                      "TORCH_HUB=hf_k7abc",
                                      "LANG=\xff",
                                      "=odd",
                                      "odd",
                                      "OMP_NUM_THREADS=3",
                                      "MKL_X=a=b",
                                      NULL};
    static const char *const secrets[] = {"OMP_MINE", NULL};
    json_t *e = environment(env, secrets);
    json_t *values = json_object_get(e, "variables"), *names = json_object_get(e, "variable_names");
    assert_string_equal(json_string_value(json_object_get(values, "OMP_NUM_THREADS")), "2");
    assert_string_equal(json_string_value(json_object_get(values, "PATH")), "/bin");
    assert_string_equal(json_string_value(json_object_get(values, "NCCL_ALGO")), "");
    assert_string_equal(json_string_value(json_object_get(values, "LANG")), "\\xff");
    assert_string_equal(json_string_value(json_object_get(values, "MKL_X")), "a=b");
    assert_int_equal(json_object_size(values), 5);
    static const char *const only_names[] = {"EDITOR",        "WANDB_API_KEY",     "HF_TOKEN",
                                             "TF_AUTH_TOKEN", "TRAINCTL_PASSWORD", "OMP_MINE",
                                             "XLA_PROXY",     "TORCH_HUB"};
    for (size_t i = 0; i < sizeof only_names / sizeof only_names[0]; i++)
        assert_true(has_text(names, only_names[i]));
    assert_int_equal(json_array_size(names), 8);
    char *all = json_dumps(e, 0), secret[] = "k0";
    for (char c = '1'; c <= '7'; c++) {
        secret[1] = c;
        char *at = strstr(all, secret);
        /* "sk1" and the like may stand in a flag's name; as a value none of them does */
        if (at && at[-1] == '"')
            fail_msg("'%s' was recorded", secret);
    }
    assert_null(strstr(all, "k6@"));
    assert_null(strstr(all, "hf_k7"));
    free(all);
    json_decref(e);
}

static void neither_host_nor_user_is_recorded(void **state)
{
    (void)state;
    static const char *const env[] = {"USER=frida-the-user", "HOSTNAME=host-of-frida",
                                      "HOME=/srv/frida-the-user", NULL};
    json_t *e = environment(env, NULL);
    char *all = json_dumps(e, 0);
    char host[256] = "";
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    assert_null(strstr(all, "frida"));
    if (strlen(host) > 3)
        assert_null(strstr(all, host));
    free(all);
    json_decref(e);
}

static void the_machine_is_described(void **state)
{
    (void)state;
    json_t *e = environment(NULL, NULL);
    const json_t *cpu = json_object_get(e, "cpu");
    assert_true(json_array_size(json_object_get(cpu, "flags")) > 5);
    assert_true(json_is_string(json_object_get(cpu, "model")));
    assert_true(json_is_string(json_object_get(cpu, "isa")));
    assert_true(json_integer_value(json_object_get(json_object_get(e, "cores"), "online")) >= 1);
    assert_true(strlen(json_string_value(json_object_get(e, "memory_bytes"))) > 6);
    assert_int_equal(json_integer_value(json_object_get(e, "page_size")), sysconf(_SC_PAGESIZE));
    assert_int_equal(strncmp(json_string_value(json_object_get(e, "libc")), "glibc 2.", 8), 0);
    assert_true(json_is_string(json_object_get(json_object_get(e, "distribution"), "id")));
    json_t *again = environment(NULL, NULL);
    assert_true(json_equal(e, again));
    json_decref(e);
    json_decref(again);
}

static void isa_levels_follow_the_psabi(void **state)
{
    (void)state;
    static const char v2[] = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
    static const char v3[] = " avx avx2 bmi1 bmi2 f16c fma abm movbe xsave";
    static const struct {
        bool two, three;
        const char *more, *level;
    } cases[] = {
        {false, false, "", "x86-64-v1"},
        {true, false, "", "x86-64-v2"},
        {true, false, " avx avx2", "x86-64-v2"},
        {true, true, "", "x86-64-v3"},
        {true, true, " avx512f avx512bw", "x86-64-v3"},
        {true, true, " avx512f avx512bw avx512cd avx512dq avx512vl", "x86-64-v4"},
        {false, true, "", "x86-64-v1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        json_t *flags = json_array();
        snprintf(text, sizeof text, "%s%s%s", cases[i].two ? v2 : "", cases[i].three ? v3 : "",
                 cases[i].more);
        char *rest = text, *word;
        while ((word = strsep(&rest, " ")) != NULL)
            json_array_append_new(flags, json_string(word));
        assert_string_equal(tctl_isa_level("x86_64", flags), cases[i].level);
        assert_string_equal(tctl_isa_level("aarch64", flags), "aarch64");
        assert_null(tctl_isa_level("riscv64", flags));
        json_decref(flags);
    }
}

static const json_t *object_of(const json_t *list, const char *part)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(list, i, entry)
    {
        if (strstr(json_string_value(json_object_get(entry, "path")), part))
            return entry;
    }
    return NULL;
}

static void loaded_libraries_are_listed_by_content(void **state)
{
    (void)state;
    json_t *list = NULL;
    assert_int_equal(tctl_shared_objects(NULL, &list, NULL), TCTL_OK);
    const json_t *libc = object_of(list, "/libc.so"), *self = object_of(list, "unit_manifest_environment");
    assert_true(libc && self);
    assert_null(object_of(list, "vdso"));
    tctl_sha256 digest;
    uint64_t size;
    char hex[TCTL_SHA256_HEX];
    const char *path = json_string_value(json_object_get(libc, "path"));
    assert_int_equal(tctl_sha256_file(path, &digest, &size, NULL), TCTL_OK);
    tctl_sha256_hex(&digest, hex);
    assert_string_equal(json_string_value(json_object_get(libc, "sha256")), hex);
    char *id = tctl_build_id(path);
    assert_non_null(id);
    assert_string_equal(json_string_value(json_object_get(libc, "build_id")), id);
    free(id);
    for (size_t i = 1; i < json_array_size(list); i++)
        assert_true(strcmp(json_string_value(json_object_get(json_array_get(list, i - 1), "path")),
                           json_string_value(json_object_get(json_array_get(list, i), "path"))) < 0);
    json_decref(list);
}

static void a_library_replaced_since_it_was_loaded_has_no_digest(void **state)
{
    (void)state;
    char folder[] = "/tmp/trainctl-so-XXXXXX", command[512], path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/one.so", folder);
    snprintf(command, sizeof command,
             "cd %s && for i in 1 2; do echo \"int v(void); int v(void) { return $i; }\" >$i.c &&"
             "cc -shared -fPIC -Wl,--build-id=sha1 -o $i.so $i.c || exit 1; done; mv 1.so one.so",
             folder);
    if (system(command) != 0) {
        print_message("no compiler to make a library with\n");
        tctl_remove_tree(folder, NULL);
        skip();
    }
    void *library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    for (int replaced = 0; replaced < 2; replaced++) {
        json_t *list = NULL;
        assert_int_equal(tctl_shared_objects(NULL, &list, NULL), TCTL_OK);
        const json_t *one = object_of(list, "/one.so");
        assert_non_null(one);
        assert_true(json_is_string(json_object_get(one, "build_id")));
        assert_int_equal(json_is_string(json_object_get(one, "sha256")), !replaced);
        assert_int_equal(json_is_true(json_object_get(one, "replaced")), replaced);
        json_decref(list);
        snprintf(command, sizeof command, "mv %s/2.so %s/one.so", folder, folder);
        assert_int_equal(replaced ? 0 : system(command), 0);
    }
    dlclose(library);
    tctl_remove_tree(folder, NULL);
}

static void files_without_a_build_id_have_none(void **state)
{
    (void)state;
    assert_null(tctl_build_id("/nowhere"));
    assert_null(tctl_build_id("/etc/passwd"));
    assert_null(tctl_build_id("/dev/zero"));
    assert_null(tctl_build_id("/"));
}

static void notes_are_read_within_their_bounds(void **state)
{
    (void)state;
    static const uint8_t good[] = {4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 'G', 'N', 'U', 0, 9,    9,    9,    9,
                                   4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, 0xab, 0xcd, 0x01, 0};
    char hex[TCTL_BUILD_ID_HEX];
    assert_true(tctl_elf_notes_build_id(good, sizeof good, 4, false, hex));
    assert_string_equal(hex, "abcd01");
    for (size_t n = 0; n < sizeof good - 1; n++) {
        uint8_t *copy = malloc(n + 1); /* exactly so much, for the sanitizer */
        memcpy(copy, good, n);
        if (n < sizeof good - 4)
            assert_false(tctl_elf_notes_build_id(copy, n, 4, false, hex));
        free(copy);
    }
    uint8_t huge[sizeof good];
    memcpy(huge, good, sizeof good);
    memset(huge, 0xff, 8);
    assert_false(tctl_elf_notes_build_id(huge, sizeof huge, 4, false, hex));
    assert_false(tctl_elf_notes_build_id(good, sizeof good, 4, true, hex)); /* the other byte order */
}

static void the_machine_class_is_compared_field_by_field(void **state)
{
    (void)state;
    json_t *was = environment(NULL, NULL), *is = json_deep_copy(was);
    json_t *same = tctl_environment_differences(was, is);
    assert_int_equal(json_array_size(same), 0);
    json_decref(same);
    /* What does not count. */
    json_object_set_new(is, "memory_bytes", json_integer(1));
    json_object_set_new(json_object_get(is, "cpu"), "microcode", json_string("0xff"));
    json_object_set_new(json_object_get(is, "kernel"), "release",
                        json_sprintf("%s-other", json_string_value(json_object_get(
                                                     json_object_get(was, "kernel"), "release"))));
    json_array_append_new(json_object_get(json_object_get(is, "cpu"), "flags"), json_string("zz_new"));
    same = tctl_environment_differences(was, is);
    assert_int_equal(json_array_size(same), 0);
    json_decref(same);
    /* What does. */
    json_object_set_new(json_object_get(is, "cpu"), "model", json_string("Other"));
    json_array_append_new(json_object_get(json_object_get(is, "cpu"), "flags"), json_string("avx1024"));
    json_object_set_new(is, "libc", json_string("glibc 9"));
    json_object_set_new(json_object_get(is, "kernel"), "release", json_string("99.1"));
    json_object_set_new(
        was, "shared_objects",
        json_pack("[{s:s,s:s},{s:s,s:s}]", "path", "/l/a", "sha256", "1", "path", "/l/b", "sha256", "2"));
    json_object_set_new(
        is, "shared_objects",
        json_pack("[{s:s,s:s},{s:s,s:s}]", "path", "/l/a", "sha256", "1", "path", "/l/c", "sha256", "3"));
    json_t *found = tctl_environment_differences(was, is);
    static const char *const fields[] = {"cpu.model",    "libc", "cpu.vector_flags",
                                         "kernel.major", "/l/b", "/l/c"};
    assert_int_equal(json_array_size(found), 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(json_string_value(json_object_get(json_array_get(found, i), "field")), fields[i]);
    const json_t *libc = json_array_get(found, 1);
    assert_string_equal(json_string_value(json_object_get(libc, "is")), "glibc 9");
    assert_true(json_is_null(json_object_get(json_array_get(found, 5), "was")));
    json_decref(found);
    json_t *nothing = json_object();
    found = tctl_environment_differences(nothing, is);
    assert_true(json_array_size(found) > 3);
    json_decref(found);
    json_decref(nothing);
    json_decref(was);
    json_decref(is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_kept_by_an_allow_list),
        cmocka_unit_test(neither_host_nor_user_is_recorded),
        cmocka_unit_test(the_machine_is_described),
        cmocka_unit_test(isa_levels_follow_the_psabi),
        cmocka_unit_test(loaded_libraries_are_listed_by_content),
        cmocka_unit_test(a_library_replaced_since_it_was_loaded_has_no_digest),
        cmocka_unit_test(files_without_a_build_id_have_none),
        cmocka_unit_test(notes_are_read_within_their_bounds),
        cmocka_unit_test(the_machine_class_is_compared_field_by_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
