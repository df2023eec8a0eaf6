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

static void preloads_and_knobs_are_named(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    json_t *environment = make_environment(1, "x86-64-v3");
    setenv("LD_PRELOAD", "/nowhere/lib.so", 1);
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    tctl_doctor d = examine(arena, "/", environment);
    tctl_doctor_machine(&d);
    unsetenv("LD_PRELOAD");
    unsetenv("OPENBLAS_CORETYPE");
    const tctl_finding *preload = find(&d, "preloads", "LD_PRELOAD=/nowhere/lib.so");
    assert_true(preload && preload->best == TCTL_CONTRACT_MACHINE && preload->fix);
    const tctl_finding *knobs = find(&d, "library knobs", "OPENBLAS_CORETYPE=Haswell");
    assert_true(knobs && knobs->warning && knobs->best == TCTL_CONTRACT_EXACT);
    json_decref(environment);
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
        cmocka_unit_test(preloads_and_knobs_are_named),
        cmocka_unit_test(the_store_is_tried_and_left_clean),
        cmocka_unit_test(a_command_cannot_keep_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
