/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor: which contract each finding leaves, and what it advises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "launcher/doctor.h"

static tctl_doctor examine(tctl_arena *arena, const char *folder, const json_t *environment)
{
    tctl_doctor d = {
        .arena = arena, .folder = folder, .program = "/proc/self/exe", .environment = environment};
    return d;
}

/* The finding of a check whose text holds `part` (NULL: any); NULL if there is none. */
static const tctl_finding *find(const tctl_doctor *d, const char *check, const char *part)
{
    for (size_t i = 0; i < d->n; i++) {
        if (strcmp(d->findings[i].check, check) == 0 && (!part || strstr(d->findings[i].what, part)))
            return &d->findings[i];
    }
    return NULL;
}

static json_t *make_environment(int fma, const char *isa)
{
    return json_pack("{s:{s:s, s:s, s:b}, s:s, s:[], s:n}", "cpu", "model", "Test CPU", "isa", isa, "fma",
                     fma, "memory_bytes", "8000000000", "gpus", "nvidia_driver");
}

static void a_processor_without_fma_keeps_machine_only(void **state)
{
    (void)state;
    for (int fma = 0; fma < 2; fma++) {
        tctl_arena *arena = tctl_arena_create();
        json_t *environment = make_environment(fma, fma ? "x86-64-v3" : "x86-64-v2");
        tctl_doctor d = examine(arena, "/", environment);
        tctl_doctor_machine(&d);
        const tctl_finding *cpu = find(&d, "cpu", "Test CPU");
        assert_non_null(cpu);
        assert_int_equal(cpu->best, fma ? TCTL_CONTRACT_EXACT : TCTL_CONTRACT_MACHINE);
        assert_int_equal(cpu->fix != NULL, !fma);
        assert_non_null(find(&d, "memory", "8.0 GB"));
        const tctl_finding *fp = find(&d, "floating point", NULL);
        assert_true(fp && fp->best == TCTL_CONTRACT_EXACT);
        json_decref(environment);
        tctl_arena_destroy(arena);
    }
}

static void preloads_are_named(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    json_t *environment = make_environment(1, "x86-64-v3");
    setenv("LD_PRELOAD", "/nowhere/lib.so", 1);
    tctl_doctor d = examine(arena, "/", environment);
    tctl_doctor_machine(&d);
    unsetenv("LD_PRELOAD");
    const tctl_finding *preload = find(&d, "preloads", "LD_PRELOAD=/nowhere/lib.so");
    assert_true(preload && preload->best == TCTL_CONTRACT_MACHINE && preload->fix);
    json_decref(environment);
    tctl_arena_destroy(arena);
}

static void variables_are_judged_one_by_one(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = {
        .name = "e", .command = "x", .contract = TCTL_CONTRACT_MACHINE, .determinism = {.variables = true}};
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    setenv("NCCL_ALGO", "Best", 1);
    setenv("OMP_NUM_THREADS", "7", 1);
    tctl_doctor d = examine(arena, "/", NULL), with = d;
    with.spec = &spec;
    tctl_doctor_envelope(&d);
    tctl_doctor_envelope(&with);
    unsetenv("OPENBLAS_CORETYPE");
    unsetenv("NCCL_ALGO");
    unsetenv("OMP_NUM_THREADS");
    const tctl_finding *f = find(&d, "environment", "OPENBLAS_CORETYPE is kept");
    assert_true(f && !f->warning && f->best == TCTL_CONTRACT_EXACT);
    f = find(&d, "environment", "no run starts with this NCCL_ALGO");
    assert_true(f && f->warning && f->best == TCTL_CONTRACT_EXACT);
    f = find(&with, "environment", "no run starts with this NCCL_ALGO");
    assert_true(f && f->best == TCTL_CONTRACT_OFF);
    assert_string_equal(f ? f->fix : "", "unset NCCL_ALGO, or run with --allow-env NCCL_ALGO");
    f = find(&with, "environment", "OMP_NUM_THREADS is replaced");
    assert_true(f && f->warning && f->best == TCTL_CONTRACT_EXACT);
    tctl_arena_destroy(arena);
}

static void what_a_spec_turns_off_is_said_with_what_it_costs(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = {.name = "e", .command = "x", .contract = TCTL_CONTRACT_MACHINE};
    spec.determinism =
        (tctl_determinism){.variables = true, .interposer = true, .python = true, .libc_seeds = true};
    tctl_doctor d = examine(arena, "/", NULL);
    d.spec = &spec;
    tctl_doctor_envelope(&d);
    const tctl_finding *f = find(&d, "knobs", "'sort_directories' is off");
    assert_true(f && f->warning && f->fix);
    assert_non_null(find(&d, "knobs", "'trace' is off"));
    assert_null(find(&d, "knobs", "'libc_seeds'"));
    tctl_doctor bare = examine(arena, "/", NULL);
    bare.program = "/bin/sh"; /* beside it there is none of ours */
    tctl_doctor_envelope(&bare);
    f = find(&bare, "interposer", "not installed");
    assert_true(f && f->warning && f->fix);
    tctl_arena_destroy(arena);
}

/* Makes an executable file of these bytes. */
static void make_program(const char *path, const char *bytes, size_t size)
{
    assert_int_equal(tctl_file_replace(path, bytes, size, 0755, NULL), TCTL_OK);
}

static void a_program_without_an_interpreter_is_out_of_reach(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    char folder[] = "/tmp/trainctl-doctor-XXXXXX", path[64];
    /* An ELF header of 64 bits that has no program headers. */
    static const char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [54] = 56};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/static", folder);
    make_program(path, elf, sizeof elf);
    snprintf(path, sizeof path, "%s/script", folder);
    make_program(path, "#!/bin/sh\n", 10);
    static const struct {
        const char *command, *said;
        bool warning;
    } cases[] = {
        {"A=b exec ./static --fast | tee x", "linked statically", true},
        {"env LD=1 ./script", ", a script", false},
        {"/bin/sh -c x", "'/bin/sh' is /bin/sh", false},
        {"$PROGRAM x", "the shell decides which", false},
        {"no-such-program-anywhere", "is no file", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_spec spec = {.name = "e", .command = cases[i].command, .contract = TCTL_CONTRACT_MACHINE};
        tctl_doctor d = examine(arena, folder, NULL);
        d.spec = &spec;
        tctl_doctor_program(&d);
        const tctl_finding *f = find(&d, "program", cases[i].said);
        if (f == NULL)
            fail_msg("%s: %s", cases[i].command, d.findings[0].what);
        assert_true(f && f->warning == cases[i].warning);
    }
    tctl_remove_tree(folder, NULL);
    tctl_arena_destroy(arena);
}

static void the_version_of_python_and_torch_is_read_from_their_files(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    char folder[] = "/tmp/trainctl-doctor-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/lib/python3.7/site-packages/torch-1.9.0.dist-info", folder);
    assert_int_equal(tctl_make_folders(path, 0777, NULL), TCTL_OK);
    snprintf(path, sizeof path, "%s/bin", folder);
    assert_int_equal(tctl_make_folders(path, 0777, NULL), TCTL_OK);
    snprintf(path, sizeof path, "%s/bin/python3.7", folder);
    make_program(path, "#!/bin/sh\n", 10);
    tctl_spec spec = {.name = "e", .command = "bin/python3.7 train.py", .contract = TCTL_CONTRACT_MACHINE};
    tctl_doctor d = examine(arena, folder, NULL);
    d.spec = &spec;
    tctl_doctor_program(&d);
    const tctl_finding *python = find(&d, "python", "3.7: the shim may not reach all of it"),
                       *torch = find(&d, "torch", "1.9.0: some of its flags may not be known");
    assert_true(python && python->warning && torch && torch->warning);
    tctl_remove_tree(folder, NULL);
    tctl_arena_destroy(arena);
}

static void the_store_is_tried_and_left_clean(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    char folder[] = "/tmp/trainctl-doctor-XXXXXX", command[128];
    assert_non_null(mkdtemp(folder));
    unsetenv("TRAINCTL_STORE");
    setenv("TRAINCTL_PLUGIN_PATH", folder, 1);
    setenv("XDG_CACHE_HOME", folder, 1);
    tctl_doctor d = examine(arena, folder, NULL);
    tctl_doctor_files(&d);
    assert_non_null(find(&d, "store", "(made by the first run)"));
    const tctl_finding *fs = find(&d, "file system", "sync, lock and rename work");
    assert_true(fs && fs->best == TCTL_CONTRACT_EXACT);
    assert_non_null(find(&d, "code", "is in no git repository"));
    assert_non_null(find(&d, "cache of digests", folder));
    snprintf(command, sizeof command, "test -z \"$(ls -A %s | grep -v '^trainctl$')\"", folder);
    assert_int_equal(system(command), 0);
    setenv("TRAINCTL_STORE", "/proc/store", 1); /* nobody can write there */
    tctl_doctor bad = examine(arena, folder, NULL);
    tctl_doctor_files(&bad);
    fs = find(&bad, "file system", "no file can be made");
    assert_true(fs && fs->best == TCTL_CONTRACT_OFF && fs->fix);
    unsetenv("TRAINCTL_STORE");
    tctl_remove_tree(folder, NULL);
    tctl_arena_destroy(arena);
}

static void a_command_cannot_keep_exact(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = {.name = "e", .command = "true", .contract = TCTL_CONTRACT_EXACT};
    tctl_doctor d = examine(arena, "/", NULL);
    d.spec = &spec;
    tctl_doctor_spec(&d);
    assert_int_equal(d.findings[0].best, TCTL_CONTRACT_MACHINE);
    assert_string_equal(d.findings[0].fix, "write 'contract: machine'");
    spec.contract = TCTL_CONTRACT_MACHINE;
    tctl_doctor_spec(&d);
    assert_int_equal(d.findings[1].best, TCTL_CONTRACT_MACHINE);
    assert_null(d.findings[1].fix);
    spec.command = NULL;
    tctl_doctor_spec(&d);
    assert_int_equal(d.findings[2].best, TCTL_CONTRACT_EXACT);
    tctl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_processor_without_fma_keeps_machine_only),
        cmocka_unit_test(preloads_are_named),
        cmocka_unit_test(variables_are_judged_one_by_one),
        cmocka_unit_test(what_a_spec_turns_off_is_said_with_what_it_costs),
        cmocka_unit_test(a_program_without_an_interpreter_is_out_of_reach),
        cmocka_unit_test(the_version_of_python_and_torch_is_read_from_their_files),
        cmocka_unit_test(the_store_is_tried_and_left_clean),
        cmocka_unit_test(a_command_cannot_keep_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
