/* SPDX-License-Identifier: Apache-2.0 */
/* What a child finds around it does not depend on the user's shell, and secrets are not recorded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "launcher/envelope.h"

static const char *lookup(const tctl_envelope *e, const char *name)
{
    for (const char *const *v = e->variables; *v != NULL; v++) {
        if (strncmp(*v, name, strlen(name)) == 0 && (*v)[strlen(name)] == '=')
            return *v + strlen(name) + 1;
    }
    return NULL;
}

static tctl_envelope make(tctl_arena *arena, const char *const *from, const char *const *secrets, bool knobs)
{
    tctl_envelope e = {0};
    tctl_determinism determinism = {.variables = knobs, .fixed_addresses = true};
    tctl_envelope_request request = {.run = "mnist-abc",
                                     .report = "/runs/report",
                                     .determinism = &determinism,
                                     .out = "/runs/out",
                                     .seed = 1029,
                                     .threads = 3,
                                     .secrets = secrets,
                                     .from = from};
    assert_int_equal(tctl_envelope_make(arena, &request, &e, NULL), TCTL_OK);
    return e;
}

static void pinned_values_replace_the_users(void **state)
{
    (void)state;
    static const char *const from[] = {"LC_ALL=de_DE.UTF-8", "OMP_NUM_THREADS=64", "PYTHONHASHSEED=random",
                                       NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, true);
    assert_string_equal(lookup(&e, "LC_ALL"), "C");
    assert_string_equal(lookup(&e, "TZ"), "UTC");
    assert_string_equal(lookup(&e, "OMP_NUM_THREADS"), "3");
    assert_string_equal(lookup(&e, "CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
    assert_string_equal(lookup(&e, "TRAINCTL_SEED"), "1029");
    assert_string_equal(lookup(&e, "TRAINCTL_OUT"), "/runs/out");
    assert_string_equal(lookup(&e, "TRAINCTL_RUN"), "mnist-abc");
    assert_string_not_equal(lookup(&e, "PYTHONHASHSEED"), "random");
    assert_int_equal(json_array_size(json_object_get(e.record, "replaced")), 3);
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static void other_variables_stay_outside(void **state)
{
    (void)state;
    static const char *const from[] = {"PATH=/bin",        "HOME=/h/x",         "EDITOR=ed",
                                       "LANG=de_DE.UTF-8", "CUDNN_VERSION=9.1", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, true);
    assert_string_equal(lookup(&e, "PATH"), "/bin");
    assert_string_equal(lookup(&e, "HOME"), "/h/x");
    assert_null(lookup(&e, "EDITOR"));
    assert_null(lookup(&e, "LANG"));
    assert_null(lookup(&e, "CUDNN_VERSION"));
    const json_t *values = json_object_get(e.record, "variables");
    assert_string_equal(json_string_value(json_object_get(values, "PATH")), "/bin");
    assert_null(json_object_get(values, "HOME")); /* by name only */
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static void without_a_promise_libraries_are_left_alone(void **state)
{
    (void)state;
    static const char *const from[] = {NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, false);
    assert_null(lookup(&e, "NVIDIA_TF32_OVERRIDE"));
    assert_string_equal(lookup(&e, "LC_ALL"), "C");
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static void secrets_pass_and_are_recorded_by_name(void **state)
{
    (void)state;
    static const char *const from[] = {"API_KEY=hunter2", "PATH=/bin:hunter2", NULL};
    static const char *const secrets[] = {"API_KEY", "PATH", "NOT_SET", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, secrets, true);
    assert_string_equal(lookup(&e, "API_KEY"), "hunter2");
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_json_canonical(e.record, &text, NULL), TCTL_OK);
    assert_null(strstr(tctl_buf_text(&text), "hunter2"));
    assert_non_null(strstr(tctl_buf_text(&text), "\"secrets\":[\"API_KEY\",\"PATH\",\"NOT_SET\"]"));
    tctl_buf_release(&text);
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static void bytes_that_are_not_text_are_recorded_by_name(void **state)
{
    (void)state;
    static const char *const from[] = {"LD_LIBRARY_PATH=/\xff", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, true);
    assert_string_equal(lookup(&e, "LD_LIBRARY_PATH"), "/\xff");
    assert_null(json_object_get(json_object_get(e.record, "variables"), "LD_LIBRARY_PATH"));
    assert_int_equal(json_array_size(json_object_get(e.record, "names")), 1);
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static const tctl_determinism all_on = {.variables = true};

/* The error of a check of this environment; code TCTL_OK: nothing is refused. */
static tctl_error check(const char *const *from, const char *const *allow,
                        const tctl_determinism *determinism)
{
    tctl_error err = {0};
    tctl_envelope_request request = {.determinism = determinism, .allow = allow, .from = from};
    tctl_status st = tctl_envelope_check(&request, &err);
    assert_int_equal(st, err.code);
    return err;
}

static void what_may_not_repeat_is_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const from[] = {"CUBLAS_WORKSPACE_CONFIG=:0:0", "CUBLAS_EMULATE_SINGLE=1", "PATH=/bin",
                                       NULL};
    static const char *const one[] = {"CUBLAS_WORKSPACE_CONFIG", NULL}, *const both[] = {
                                                                            "CUBLAS_EMULATE_SINGLE",
                                                                            "CUBLAS_WORKSPACE_CONFIG", NULL};
    tctl_error err = check(from, NULL, &all_on);
    assert_int_equal(err.code, TCTL_EDETERMINISM);
    assert_non_null(strstr(err.message, "'CUBLAS_EMULATE_SINGLE=1': it may change results")); /* by name */
    assert_int_equal(err.n_notes, 1);
    assert_non_null(strstr(err.notes[0], "'CUBLAS_WORKSPACE_CONFIG=:0:0'"));
    assert_non_null(strstr(err.notes[0], "results are known to repeat with ':4096:8' or ':16:8'"));
    assert_non_null(strstr(err.hint, "--allow-env CUBLAS_EMULATE_SINGLE"));
    err = check(from, one, &all_on);
    assert_non_null(strstr(err.message, "CUBLAS_EMULATE_SINGLE"));
    assert_int_equal(check(from, both, &all_on).code, TCTL_OK);
    static const tctl_determinism off = {.variables = false};
    assert_int_equal(check(from, NULL, &off).code, TCTL_OK);
}

static void a_refusal_does_not_show_what_looks_like_a_secret(void **state)
{
    (void)state;
    static const char *const from[] = {"TORCH_AUTH_TOKEN=hunter2", NULL};
    tctl_error err = check(from, NULL, &all_on);
    assert_int_equal(err.code, TCTL_EDETERMINISM);
    assert_non_null(strstr(err.message, "TORCH_AUTH_TOKEN"));
    assert_null(strstr(err.message, "hunter2"));
}

static bool is_in(const json_t *record, const char *list, const char *name)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(record, list), i, item)
    {
        if (strcmp(json_string_value(item), name) == 0)
            return true;
    }
    return false;
}

static void what_is_known_to_repeat_is_kept_and_repeated(void **state)
{
    (void)state;
    static const char *const then[] = {"CUBLAS_WORKSPACE_CONFIG=:16:8",
                                       "OPENBLAS_CORETYPE=Haswell",
                                       "MODE=fast",
                                       "PYTHONOPTIMIZE=1",
                                       "PATH=/then",
                                       NULL},
                             *const now[] = {"OPENBLAS_CORETYPE=Prescott", "MODE=slow", "PATH=/now", NULL},
                             *const allow[] = {"MODE", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope a = {0}, b = {0};
    tctl_envelope_request request = {
        .run = "r", .out = "/out", .threads = 1, .determinism = &all_on, .allow = allow, .from = then};
    assert_int_equal(tctl_envelope_make(arena, &request, &a, NULL), TCTL_OK);
    assert_string_equal(lookup(&a, "CUBLAS_WORKSPACE_CONFIG"), ":16:8");
    assert_string_equal(lookup(&a, "OPENBLAS_CORETYPE"), "Haswell");
    assert_true(is_in(a.record, "kept", "CUBLAS_WORKSPACE_CONFIG"));
    assert_true(is_in(a.record, "kept", "OPENBLAS_CORETYPE"));
    assert_true(is_in(a.record, "allowed", "MODE"));
    request.allow = NULL;
    request.from = now;
    request.recorded = a.record;
    assert_int_equal(tctl_envelope_make(arena, &request, &b, NULL), TCTL_OK);
    assert_string_equal(lookup(&b, "CUBLAS_WORKSPACE_CONFIG"), ":16:8");
    assert_string_equal(lookup(&b, "OPENBLAS_CORETYPE"), "Haswell");
    assert_string_equal(lookup(&b, "MODE"), "fast");
    assert_string_equal(lookup(&b, "PYTHONOPTIMIZE"), "1");
    assert_string_equal(lookup(&b, "PATH"), "/now"); /* a place */
    assert_true(json_equal(json_object_get(a.record, "kept"), json_object_get(b.record, "kept")));
    assert_true(json_equal(json_object_get(a.record, "allowed"), json_object_get(b.record, "allowed")));
    tctl_envelope_release(&a);
    tctl_envelope_release(&b);
    tctl_arena_destroy(arena);
}

static void a_variable_that_was_not_set_then_is_not_set_again(void **state)
{
    (void)state;
    static const char *const then[] = {"PATH=/bin", NULL}, *const now[] = {"ATEN_CPU_CAPABILITY=avx2", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope a = {0}, b = {0};
    tctl_envelope_request request = {.threads = 1, .determinism = &all_on, .from = then};
    assert_int_equal(tctl_envelope_make(arena, &request, &a, NULL), TCTL_OK);
    request.from = now;
    request.recorded = a.record;
    assert_int_equal(tctl_envelope_make(arena, &request, &b, NULL), TCTL_OK);
    assert_null(lookup(&b, "ATEN_CPU_CAPABILITY"));
    tctl_envelope_release(&a);
    tctl_envelope_release(&b);
    tctl_arena_destroy(arena);
}

static void thread_counts_are_all_the_same_and_the_user_is_told(void **state)
{
    (void)state;
    static const char *const from[] = {"OMP_NUM_THREADS=8", NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, true);
    size_t n, counted = 0;
    const tctl_variable *table = tctl_variables(&n);
    for (size_t i = 0; i < n; i++) {
        if (table[i].kind != TCTL_VARIABLE_THREADS)
            continue;
        assert_string_equal(lookup(&e, table[i].name), "3");
        counted++;
    }
    assert_true(counted > 10);
    assert_true(is_in(e.record, "replaced", "OMP_NUM_THREADS"));
    assert_non_null(e.notes[0]);
    assert_non_null(strstr(e.notes[0], "OMP_NUM_THREADS=8 of your environment is replaced by 3"));
    assert_null(e.notes[1]);
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

static void an_unpinned_variable_is_the_users(void **state)
{
    (void)state;
    static const char *const unpinned[] = {"TZ", "XLA_FLAGS", "NCCL_ALGO", NULL},
                             *const from[] = {"TZ=Europe/Paris", "XLA_FLAGS=--xla_dump_to=/x", NULL};
    static const tctl_determinism determinism = {.variables = true, .unpinned = unpinned};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = {0};
    tctl_envelope_request request = {.threads = 1, .determinism = &determinism, .from = from};
    assert_int_equal(tctl_envelope_make(arena, &request, &e, NULL), TCTL_OK);
    assert_string_equal(lookup(&e, "TZ"), "Europe/Paris");
    assert_string_equal(lookup(&e, "XLA_FLAGS"), "--xla_dump_to=/x");
    assert_null(lookup(&e, "NCCL_ALGO"));
    assert_string_equal(lookup(&e, "NCCL_PROTO"), "Simple");
    tctl_envelope_release(&e);
    tctl_arena_destroy(arena);
}

/* What the table says about itself: a name is there once, and every pinned value is one that is allowed. */
static void the_table_is_sound(void **state)
{
    (void)state;
    size_t n;
    const tctl_variable *table = tctl_variables(&n);
    for (size_t i = 0; i < n; i++) {
        const tctl_variable *v = &table[i];
        assert_ptr_equal(tctl_variable_find(v->name, strlen(v->name)), v);
        assert_true(v->why[0] != '\0' && v->why[strlen(v->why) - 1] != '.');
        if (v->kind == TCTL_VARIABLE_LIBRARY || v->kind == TCTL_VARIABLE_FIXED)
            assert_true(tctl_variable_allows(v, tctl_variable_value(v)));
        if (v->kind == TCTL_VARIABLE_LIBRARY || v->kind == TCTL_VARIABLE_CHOICE)
            assert_false(tctl_variable_allows(v, "no such value"));
    }
}

static void the_same_request_makes_the_same_envelope(void **state)
{
    (void)state;
    static const char *const one[] = {"PATH=/bin", "HOME=/h", NULL}, *const other[] = {"HOME=/h", "PATH=/bin",
                                                                                       NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope a = make(arena, one, NULL, true), b = make(arena, other, NULL, true);
    size_t n = 0;
    for (; a.variables[n] != NULL; n++)
        assert_string_equal(a.variables[n], b.variables[n]);
    assert_null(b.variables[n]);
    tctl_envelope_release(&a);
    tctl_envelope_release(&b);
    tctl_arena_destroy(arena);
}

/* Its size decides the addresses of a child's stack. */
static void the_size_does_not_depend_on_where_the_run_lies(void **state)
{
    (void)state;
    static const char *const from[] = {"PATH=/bin", NULL};
    tctl_arena *arena = tctl_arena_create();
    size_t sizes[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        tctl_envelope e = {0};
        tctl_determinism determinism = {.trace = 1};
        tctl_envelope_request request = {
            .run = i == 0 ? "a" : "longer", .threads = 1, .from = from, .determinism = &determinism};
        request.out = i == 0 ? "/out" : "/somewhere/else/verify-17/out";
        request.report = i == 0 ? "/report" : "/somewhere/else/verify-17/report";
        request.trace = i == 0 ? "/trace.bin" : "/somewhere/else/verify-17/trace.bin";
        request.trace_stop = i == 0 ? NULL : "17";
        request.interposer = i == 0 ? "/lib/x.so" : NULL;
        request.python = i == 0 ? NULL : "/lib/python";
        assert_int_equal(tctl_envelope_make(arena, &request, &e, NULL), TCTL_OK);
        for (const char *const *v = e.variables; *v != NULL; v++)
            sizes[i] += strlen(*v) + 1 + sizeof *v;
        tctl_envelope_release(&e);
    }
    assert_int_equal(sizes[0], sizes[1]);
    tctl_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_values_replace_the_users),
        cmocka_unit_test(other_variables_stay_outside),
        cmocka_unit_test(without_a_promise_libraries_are_left_alone),
        cmocka_unit_test(secrets_pass_and_are_recorded_by_name),
        cmocka_unit_test(bytes_that_are_not_text_are_recorded_by_name),
        cmocka_unit_test(what_may_not_repeat_is_refused_with_the_reason),
        cmocka_unit_test(a_refusal_does_not_show_what_looks_like_a_secret),
        cmocka_unit_test(what_is_known_to_repeat_is_kept_and_repeated),
        cmocka_unit_test(a_variable_that_was_not_set_then_is_not_set_again),
        cmocka_unit_test(thread_counts_are_all_the_same_and_the_user_is_told),
        cmocka_unit_test(an_unpinned_variable_is_the_users),
        cmocka_unit_test(the_table_is_sound),
        cmocka_unit_test(the_same_request_makes_the_same_envelope),
        cmocka_unit_test(the_size_does_not_depend_on_where_the_run_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
