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
    static const char *const from[] = {"PATH=/bin", "HOME=/h/x", "EDITOR=ed", "CUBLAS_EMULATE_SINGLE=1",
                                       NULL};
    tctl_arena *arena = tctl_arena_create();
    tctl_envelope e = make(arena, from, NULL, true);
    assert_string_equal(lookup(&e, "PATH"), "/bin");
    assert_string_equal(lookup(&e, "HOME"), "/h/x");
    assert_null(lookup(&e, "EDITOR"));
    assert_null(lookup(&e, "CUBLAS_EMULATE_SINGLE"));
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
            sizes[i] += strlen(*v) + 1;
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
        cmocka_unit_test(the_same_request_makes_the_same_envelope),
        cmocka_unit_test(the_size_does_not_depend_on_where_the_run_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
