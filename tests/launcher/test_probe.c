/* SPDX-License-Identifier: Apache-2.0 */
/* What each probe changes for a child, and that nothing else does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launcher/probe.h"

static const char *const nothing[] = {NULL};

static tctl_spec fixed(void)
{
    return (tctl_spec){.resources = {.threads = 4},
                       .determinism = {.fixed_addresses = true,
                                       .interposer = true,
                                       .keep_denormals = true,
                                       .sort_directories = true,
                                       .libc_seeds = true,
                                       .python = true,
                                       .python_seeds = true,
                                       .unpinned = nothing}};
}

typedef struct applied {
    tctl_spec spec;
    tctl_spec_request asked;
    tctl_circumstances changed;
} applied;

static applied apply(tctl_arena *arena, const tctl_spec *spec, uint32_t bits)
{
    applied a;
    static const char *const set[] = {"a=1", NULL};
    const tctl_spec_request asked = {.set = set};
    assert_int_equal(tctl_probe_apply(arena, bits, 85, spec, &asked, &a.spec, &a.asked, &a.changed, NULL),
                     TCTL_OK);
    return a;
}

static bool has(const applied *a, const char *variable)
{
    for (const char *const *v = a->changed.variables; *v != NULL; v++) {
        if (strcmp(*v, variable) == 0)
            return true;
    }
    return false;
}

static void the_table_has_every_probe_once(void **state)
{
    (void)state;
    uint32_t all = 0;
    for (uint32_t i = 0; i < TCTL_N_PROBES; i++) {
        const tctl_probe *p = tctl_probe_at(i);
        assert_int_equal(all & p->bit, 0);
        assert_ptr_equal(tctl_probe_of(p->bit), p);
        assert_true(*p->name && *p->with && *p->cause && *p->advice);
        all |= p->bit;
    }
    assert_int_equal(all, (1 << TCTL_N_PROBES) - 1);
    assert_null(tctl_probe_of(0));
}

static void only_what_the_envelope_leaves_open_is_probed(void **state)
{
    (void)state;
    const uint32_t always = TCTL_PROBE_MEMORY | TCTL_PROBE_FILE_TIMES | TCTL_PROBE_CLOCK | TCTL_PROBE_THREADS;
    tctl_spec spec = fixed();
    assert_int_equal(tctl_probes_open(&spec), always | TCTL_PROBE_ENTROPY);
    spec.determinism.seeded_entropy = true;
    assert_int_equal(tctl_probes_open(&spec), always);
    spec.determinism.fixed_addresses = false;
    spec.determinism.unpinned = (const char *const[]){"TZ", "PYTHONHASHSEED", NULL};
    assert_int_equal(tctl_probes_open(&spec), always | TCTL_PROBE_ADDRESSES | TCTL_PROBE_HASH);
    spec.determinism.interposer = false;
    assert_int_equal(tctl_probes_open(&spec), (1 << TCTL_N_PROBES) - 1);
}

static void no_probe_changes_nothing(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = fixed();
    applied a = apply(arena, &spec, 0);
    assert_memory_equal(&a.spec, &spec, sizeof spec);
    assert_null(a.changed.variables[0]);
    assert_false(a.changed.library || a.changed.one_cpu);
    assert_string_equal(a.asked.set[0], "a=1");
    tctl_arena_destroy(arena);
}

static void knobs_are_turned_in_a_copy(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = {.determinism = {.unpinned = (const char *const[]){"PYTHONHASHSEED", "TZ", NULL}}};
    applied a = apply(arena, &spec, TCTL_PROBE_ADDRESSES);
    assert_true(a.spec.determinism.fixed_addresses);
    assert_false(spec.determinism.fixed_addresses || a.spec.determinism.interposer || a.changed.library);
    a = apply(arena, &spec, TCTL_PROBE_ENTROPY);
    assert_true(a.spec.determinism.seeded_entropy && a.spec.determinism.interposer);
    a = apply(arena, &spec, TCTL_PROBE_DENORMALS);
    assert_true(a.spec.determinism.keep_denormals && a.spec.determinism.interposer);
    a = apply(arena, &spec, TCTL_PROBE_DIRECTORIES);
    assert_true(a.spec.determinism.sort_directories && a.spec.determinism.interposer);
    a = apply(arena, &spec, TCTL_PROBE_SEEDS);
    assert_true(a.spec.determinism.libc_seeds && a.spec.determinism.python_seeds &&
                a.spec.determinism.python);
    a = apply(arena, &spec, TCTL_PROBE_HASH);
    assert_string_equal(a.spec.determinism.unpinned[0], "TZ");
    assert_null(a.spec.determinism.unpinned[1]);
    tctl_arena_destroy(arena);
}

static void one_thread_is_asked_of_libraries_worker_and_kernel(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = fixed();
    applied a = apply(arena, &spec, TCTL_PROBE_THREADS);
    assert_int_equal(a.spec.resources.threads, 1);
    assert_string_equal(a.asked.set[0], "a=1");
    assert_string_equal(a.asked.set[1], "resources.threads=1");
    assert_null(a.asked.set[2]);
    assert_true(a.changed.one_cpu && a.changed.library);
    assert_true(has(&a, "TRAINCTL_PROBE= threads"));
    tctl_arena_destroy(arena);
}

static void the_library_is_told_what_to_hold_still(void **state)
{
    (void)state;
    tctl_arena *arena = tctl_arena_create();
    tctl_spec spec = fixed();
    applied a = apply(arena, &spec, TCTL_PROBE_MEMORY);
    assert_true(has(&a, "TRAINCTL_PROBE= fill=85") && has(&a, "MALLOC_PERTURB_=85"));
    assert_false(a.changed.one_cpu);
    a = apply(arena, &spec, TCTL_PROBE_CLOCK | TCTL_PROBE_FILE_TIMES);
    assert_true(has(&a, "TRAINCTL_PROBE= clock files"));
    assert_null(a.changed.variables[1]);
    tctl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_every_probe_once),
        cmocka_unit_test(only_what_the_envelope_leaves_open_is_probed),
        cmocka_unit_test(no_probe_changes_nothing),
        cmocka_unit_test(knobs_are_turned_in_a_copy),
        cmocka_unit_test(one_thread_is_asked_of_libraries_worker_and_kernel),
        cmocka_unit_test(the_library_is_told_what_to_hold_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
