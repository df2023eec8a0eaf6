/* SPDX-License-Identifier: Apache-2.0 */
/* The run store: reserving at once, finding, and telling who died. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "manifest/store.h"

typedef struct fixture {
    tctl_arena *arena;
    char folder[64];
    const char *store;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    unsetenv("TRAINCTL_STORE");
    snprintf(f->folder, sizeof f->folder, "/tmp/trainctl-store-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->arena = tctl_arena_create();
    assert_int_equal(tctl_store_locate(f->arena, f->folder, true, &f->store, NULL), TCTL_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tctl_remove_tree(f->folder, NULL);
    tctl_arena_destroy(f->arena);
    free(f);
    return 0;
}

static tctl_run make(fixture *f, const char *name, const char *final_state)
{
    tctl_run run = TCTL_RUN_NONE;
    tctl_error err = {0};
    assert_int_equal(tctl_run_create(f->arena, f->store, name, &run, &err), TCTL_OK);
    if (final_state != NULL)
        assert_int_equal(tctl_run_set_state(&run, final_state, "why", 3, &err), TCTL_OK);
    return run;
}

static void two_hundred_at_once_get_two_hundred_directories(void **state)
{
    fixture *f = *state;
    enum { N = 200 };
    for (int i = 0; i < N; i++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            tctl_run run = make(f, "same", TCTL_STATE_DONE);
            _exit(run.path == NULL);
        }
    }
    int failed = 0, status;
    while (wait(&status) > 0)
        failed += status != 0;
    assert_int_equal(failed, 0);
    tctl_run *runs = NULL;
    uint32_t n = 0;
    assert_int_equal(tctl_run_list(f->arena, f->store, &runs, &n, NULL), TCTL_OK);
    assert_int_equal(n, N);
    for (uint32_t i = 0; i < n; i++) {
        assert_string_equal(tctl_run_state(&runs[i]), TCTL_STATE_DONE);
        assert_true(i == 0 || tctl_run_started(&runs[i - 1]) <= tctl_run_started(&runs[i]));
        tctl_run_release(&runs[i]);
    }
}

static void a_run_is_found_by_id_prefix_age_and_path(void **state)
{
    fixture *f = *state;
    tctl_run a = make(f, "alpha", TCTL_STATE_DONE), b = make(f, "beta", TCTL_STATE_FAILED);
    const char *ways[] = {b.id, "beta", "last", "last~0", b.path};
    tctl_error err = {0};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        tctl_run found = TCTL_RUN_NONE;
        assert_int_equal(tctl_run_find(f->arena, f->store, ways[i], &found, &err), TCTL_OK);
        assert_string_equal(found.id, b.id);
        assert_string_equal(tctl_run_state(&found), TCTL_STATE_FAILED);
        assert_string_equal(json_string_value(json_object_get(found.state, "reason")), "why");
        tctl_run_release(&found);
    }
    tctl_run found = TCTL_RUN_NONE;
    assert_int_equal(tctl_run_find(f->arena, f->store, "last~1", &found, &err), TCTL_OK);
    assert_string_equal(found.id, a.id);
    tctl_run_release(&found);
    tctl_run_release(&a);
    tctl_run_release(&b);
}

static void what_is_not_there_or_not_unique_is_said(void **state)
{
    fixture *f = *state;
    tctl_run found = TCTL_RUN_NONE;
    tctl_error err = {0};
    assert_int_equal(tctl_run_find(f->arena, f->store, "last", &found, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "there are no runs in '"));
    tctl_run a = make(f, "twin", TCTL_STATE_DONE), b = make(f, "twin", TCTL_STATE_DONE);
    assert_int_equal(tctl_run_find(f->arena, f->store, "twin", &found, &err), TCTL_EINVAL);
    assert_string_equal(err.message, "'twin' could be any of 2 runs: write more of its id");
    assert_int_equal(err.n_notes, 2);
    assert_int_equal(tctl_run_find(f->arena, f->store, "other", &found, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "there is no run 'other'"));
    assert_int_equal(tctl_run_find(f->arena, f->store, "last~2", &found, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "there are only 2 runs"));
    tctl_run_release(&a);
    tctl_run_release(&b);
}

static void a_run_whose_supervisor_was_killed_shows_as_died(void **state)
{
    fixture *f = *state;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        tctl_run run = make(f, "victim", TCTL_STATE_RUNNING);
        if (write(ready[1], &run.lock, 1) == 1)
            pause();
        _exit(1);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    tctl_run run = TCTL_RUN_NONE;
    assert_int_equal(tctl_run_find(f->arena, f->store, "victim", &run, NULL), TCTL_OK);
    assert_string_equal(tctl_run_state(&run), TCTL_STATE_RUNNING);
    tctl_run_release(&run);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(tctl_run_find(f->arena, f->store, "victim", &run, NULL), TCTL_OK);
    assert_string_equal(tctl_run_state(&run), TCTL_STATE_DIED);
    assert_string_equal(json_string_value(json_object_get(run.state, "reason")),
                        "the launcher ended while the run was running");
    tctl_run_release(&run);
    close(ready[0]);
    close(ready[1]);
}

/* A later process with the same pid is not the supervisor: the start time differs. */
static void without_locks_the_recorded_process_decides(void **state)
{
    fixture *f = *state;
    tctl_run run = make(f, "plain", TCTL_STATE_RUNNING), found = TCTL_RUN_NONE;
    json_object_set_new(run.state, "locked", json_false());
    assert_int_equal(tctl_run_set_state(&run, TCTL_STATE_RUNNING, NULL, -1, NULL), TCTL_OK);
    assert_int_equal(tctl_run_find(f->arena, f->store, "plain", &found, NULL), TCTL_OK);
    assert_string_equal(tctl_run_state(&found), TCTL_STATE_RUNNING);
    tctl_run_release(&found);
    json_object_set_new(json_object_get(run.state, "supervisor"), "start_time", json_string("1"));
    assert_int_equal(tctl_run_set_state(&run, TCTL_STATE_RUNNING, NULL, -1, NULL), TCTL_OK);
    assert_int_equal(tctl_run_find(f->arena, f->store, "plain", &found, NULL), TCTL_OK);
    assert_string_equal(tctl_run_state(&found), TCTL_STATE_DIED);
    tctl_run_release(&found);
    tctl_run_release(&run);
}

static void folders_that_are_no_runs_are_passed_over(void **state)
{
    fixture *f = *state;
    char path[256];
    snprintf(path, sizeof path, "%s/runs/half", f->store);
    assert_int_equal(tctl_make_folders(path, 0777, NULL), TCTL_OK);
    snprintf(path, sizeof path, "%s/runs/broken", f->store);
    assert_int_equal(tctl_make_folders(path, 0777, NULL), TCTL_OK);
    snprintf(path, sizeof path, "%s/runs/broken/state.json", f->store);
    assert_int_equal(tctl_file_replace(path, "{\"state\":", 9, 0666, NULL), TCTL_OK);
    tctl_run good = make(f, "good", TCTL_STATE_DONE), *runs = NULL;
    uint32_t n = 0;
    assert_int_equal(tctl_run_list(f->arena, f->store, &runs, &n, NULL), TCTL_OK);
    assert_int_equal(n, 1);
    assert_string_equal(runs[0].id, good.id);
    tctl_run_release(&runs[0]);
    tctl_run_release(&good);
}

static void names_become_safe_file_names(void **state)
{
    fixture *f = *state;
    tctl_run run = make(f, "a/../b c", TCTL_STATE_DONE);
    assert_memory_equal(run.id, "a-..-b-c-", 9);
    assert_null(strchr(run.id, '/'));
    tctl_run_release(&run);
    run = make(f, "", TCTL_STATE_DONE);
    assert_memory_equal(run.id, "run-", 4);
    tctl_run_release(&run);
}

static void the_store_is_the_nearest_above(void **state)
{
    fixture *f = *state;
    char below[128];
    const char *store = NULL;
    snprintf(below, sizeof below, "%s/x/y", f->folder);
    assert_int_equal(tctl_make_folders(below, 0777, NULL), TCTL_OK);
    assert_int_equal(tctl_store_locate(f->arena, below, false, &store, NULL), TCTL_OK);
    assert_string_equal(store, f->store);
    setenv("TRAINCTL_STORE", "/elsewhere", 1);
    assert_int_equal(tctl_store_locate(f->arena, below, false, &store, NULL), TCTL_OK);
    assert_string_equal(store, "/elsewhere");
    unsetenv("TRAINCTL_STORE");
}

static void without_a_store_it_is_at_the_root_of_the_working_tree(void **state)
{
    fixture *f = *state;
    char root[128], below[160], git[160], expected[160];
    const char *store = NULL;
    snprintf(root, sizeof root, "%s/project", f->folder);
    snprintf(below, sizeof below, "%s/x/y", root);
    snprintf(git, sizeof git, "%s/.git", root);
    snprintf(expected, sizeof expected, "%s/.trainctl", root);
    assert_int_equal(tctl_make_folders(below, 0777, NULL), TCTL_OK);
    assert_int_equal(tctl_make_folders(git, 0777, NULL), TCTL_OK);
    assert_int_equal(tctl_remove_tree(f->store, NULL), TCTL_OK);
    assert_int_equal(tctl_store_locate(f->arena, below, false, &store, NULL), TCTL_OK);
    assert_string_equal(store, expected);
    assert_int_equal(tctl_remove_tree(git, NULL), TCTL_OK);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(two_hundred_at_once_get_two_hundred_directories),
        CASE(a_run_is_found_by_id_prefix_age_and_path),
        CASE(what_is_not_there_or_not_unique_is_said),
        CASE(a_run_whose_supervisor_was_killed_shows_as_died),
        CASE(without_locks_the_recorded_process_decides),
        CASE(folders_that_are_no_runs_are_passed_over),
        CASE(names_become_safe_file_names),
        CASE(the_store_is_the_nearest_above),
        CASE(without_a_store_it_is_at_the_root_of_the_working_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
