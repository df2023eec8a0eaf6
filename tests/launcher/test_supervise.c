/* SPDX-License-Identifier: Apache-2.0 */
/* One child from start to end: its words, its events, its signals, and what it leaves behind. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "launcher/supervise.h"

typedef struct fixture {
    tctl_arena *arena;
    char folder[64], log[96];
    tctl_envelope envelope;
    tctl_view *view;
    tctl_child_end end;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/trainctl-supervise-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->log, sizeof f->log, "%s/log.txt", f->folder);
    f->arena = tctl_arena_create();
    f->view = tctl_view_create(true, false);
    static const char *const from[] = {"PATH=/usr/bin:/bin", NULL};
    static const tctl_determinism determinism = {.fixed_addresses = true};
    tctl_envelope_request request = {.run = "r",
                                     .out = f->folder,
                                     .report = f->folder,
                                     .determinism = &determinism,
                                     .seed = 7,
                                     .threads = 1,
                                     .from = from};
    assert_int_equal(tctl_envelope_make(f->arena, &request, &f->envelope, NULL), TCTL_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    tctl_child_release(&f->end);
    tctl_envelope_release(&f->envelope);
    tctl_view_destroy(f->view);
    tctl_remove_tree(f->folder, NULL);
    tctl_arena_destroy(f->arena);
    free(f);
    return 0;
}

static void supervise(fixture *f, const char *script, double grace)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    tctl_child child = {.argv = argv,
                        .folder = f->folder,
                        .log_path = f->log,
                        .envelope = &f->envelope,
                        .events = true,
                        .grace_seconds = grace,
                        .view = f->view};
    tctl_error err = {0};
    if (tctl_supervise(f->arena, &child, &f->end, &err) != TCTL_OK)
        fail_msg("%s", err.message);
}

static void assert_log(const fixture *f, const char *expected)
{
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->log, 1 << 20, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text), expected);
    tctl_buf_release(&text);
}

/* No process of ours is left: neither a zombie nor one that runs. */
static void assert_alone(void)
{
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void output_and_error_go_to_the_log_in_order(void **state)
{
    fixture *f = *state;
    supervise(f, "echo one; echo two >&2; echo three", 5);
    assert_int_equal(f->end.exit_code, 0);
    assert_null(tctl_child_reason(f->arena, &f->end));
    assert_log(f, "one\ntwo\nthree\n");
    assert_alone();
}

static void the_exit_status_is_said(void **state)
{
    fixture *f = *state;
    supervise(f, "exit 7", 5);
    assert_int_equal(f->end.exit_code, 7);
    assert_string_equal(tctl_child_reason(f->arena, &f->end), "exit status 7");
}

static void a_signal_is_named(void **state)
{
    fixture *f = *state;
    supervise(f, "kill -SEGV $$", 5);
    assert_int_equal(f->end.signal, SIGSEGV);
    assert_int_equal(f->end.exit_code, 128 + SIGSEGV);
    assert_string_equal(tctl_child_reason(f->arena, &f->end), "killed by SIGSEGV");
    supervise(f, "kill -KILL $$", 5);
    assert_string_equal(tctl_child_reason(f->arena, &f->end), "killed by SIGKILL (out of memory?)");
}

static void events_are_read_however_they_are_cut(void **state)
{
    fixture *f = *state;
    supervise(f,
              "printf '{\"phase\":\"create\",\"plu' >&3; sleep 0.05; printf 'gin\":\"p\"}\\nnonsense\\n' >&3;"
              "printf '{\"metrics\":{\"epoch\":1}}\\n{\"metrics\":{\"epoch\":2}}\\n' >&3",
              5);
    assert_string_equal(f->end.phase, "create");
    assert_string_equal(f->end.plugin, "p");
    assert_int_equal(json_integer_value(json_object_get(f->end.last_metrics, "epoch")), 2);
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
    fixture *f = *state;
    const char *argv[] = {"/nowhere/worker", NULL};
    tctl_child child = {
        .argv = argv, .folder = f->folder, .log_path = f->log, .envelope = &f->envelope, .view = f->view};
    tctl_error err = {0};
    assert_int_equal(tctl_supervise(f->arena, &child, &f->end, &err), TCTL_ENOENT);
    assert_non_null(strstr(err.message, "cannot run '/nowhere/worker'"));
    assert_alone();
}

/* Signals `count` times from a process of its own, `gap` seconds apart. */
static pid_t signal_me(int signal, int count, double gap)
{
    pid_t me = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    for (int i = 0; i < count; i++) {
        nanosleep(&(struct timespec){(time_t)gap, (long)((gap - (double)(time_t)gap) * 1e9)}, NULL);
        kill(me, signal);
    }
    _exit(0);
}

static void the_first_signal_asks(void **state)
{
    fixture *f = *state;
    signal_me(SIGINT, 1, 0.2);
    supervise(f, "trap 'echo asked; exit 130' TERM; while :; do sleep 0.02; done", 5);
    assert_int_equal(f->end.stopped_by, SIGINT);
    assert_int_equal(f->end.exit_code, 130); /* what the trap says; its `sleep` was asked as well */
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->log, 1 << 20, &text, NULL), TCTL_OK);
    assert_non_null(strstr(tctl_buf_text(&text), "asked\n"));
    tctl_buf_release(&text);
}

static void the_second_signal_kills(void **state)
{
    fixture *f = *state;
    signal_me(SIGINT, 2, 0.2);
    supervise(f, "trap '' TERM; echo deaf; while :; do sleep 0.02; done", 60);
    assert_int_equal(f->end.signal, SIGKILL);
    assert_true(f->end.seconds < 5);
    assert_log(f, "deaf\n");
}

static void the_end_of_the_grace_time_kills(void **state)
{
    fixture *f = *state;
    signal_me(SIGTERM, 1, 0.1);
    supervise(f, "trap '' TERM; while :; do sleep 0.02; done", 0.3);
    assert_int_equal(f->end.stopped_by, SIGTERM);
    assert_int_equal(f->end.signal, SIGKILL);
    assert_true(f->end.seconds > 0.3 && f->end.seconds < 5);
}

static void nothing_of_the_group_is_left(void **state)
{
    fixture *f = *state;
    supervise(f, "sleep 1000 & sh -c 'sleep 1000' & echo $!", 5);
    assert_int_equal(f->end.exit_code, 0);
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->log, 1 << 20, &text, NULL), TCTL_OK);
    char probe[128];
    snprintf(probe, sizeof probe, "/proc/%.*s/stat", (int)strcspn(tctl_buf_text(&text), "\n"),
             tctl_buf_text(&text));
    assert_false(tctl_path_exists(probe));
    tctl_buf_release(&text);
    assert_alone();
    assert_true(json_array_size(f->end.left) >= 2);
    assert_string_equal(json_string_value(json_array_get(f->end.left, 0)), "sleep");
}

/* Whether the process whose number is the first line of the log is there; waits for the line. */
static bool is_there(fixture *f, char probe[128])
{
    tctl_buf text = TCTL_BUF_INIT;
    for (int i = 0; i < 500 && text.size == 0; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        tctl_file_read(f->log, 1 << 20, &text, NULL);
    }
    snprintf(probe, 128, "/proc/%.*s/stat", (int)strcspn(tctl_buf_text(&text), "\n"), tctl_buf_text(&text));
    tctl_buf_release(&text);
    return tctl_path_exists(probe);
}

static void a_daemon_of_the_childs_is_found_and_ended(void **state)
{
    fixture *f = *state;
    char probe[128];
    supervise(f, "setsid sh -c 'trap \"\" TERM; echo $$; sleep 1000; sleep 1000' & sleep 0.3", 5);
    assert_int_equal(f->end.exit_code, 0);
    assert_false(is_there(f, probe));
    assert_alone();
    assert_int_equal(json_array_size(f->end.left), 1);
    assert_string_equal(json_string_value(json_array_get(f->end.left, 0)), "sh");
}

static void what_ends_by_itself_is_not_ended(void **state)
{
    fixture *f = *state;
    supervise(f, "sleep 0.05 &", 5);
    assert_null(f->end.left);
    assert_alone();
}

static void a_grandchild_does_not_outlive_its_supervisor(void **state)
{
    fixture *f = *state;
    char probe[128];
    pid_t pid = fork();
    if (pid == 0) {
        supervise(f, "setsid sh -c 'trap \"\" TERM HUP; echo $$; sleep 1000; sleep 1000' & sleep 1000", 5);
        _exit(0);
    }
    assert_true(is_there(f, probe));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 500 && tctl_path_exists(probe); i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) /* a former test made us a subreaper */
            continue;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    assert_false(tctl_path_exists(probe));
}

static void a_guardian_that_is_killed_takes_all_with_it(void **state)
{
    fixture *f = *state;
    supervise(f, "setsid sleep 1000 & kill -9 $PPID; sleep 1000", 5);
    assert_true(f->end.unguarded);
    assert_int_equal(f->end.signal, SIGKILL);
    assert_string_equal(tctl_child_reason(f->arena, &f->end),
                        "its guardian was killed, and so was the child");
    assert_alone();
}

static void the_child_inherits_no_descriptor_of_the_callers(void **state)
{
    fixture *f = *state;
    int leaked = dup2(STDERR_FILENO, 77);
    assert_int_equal(leaked, 77);
    supervise(f, "test -e /proc/self/fd/77; echo $?; read -r line; echo $?", 5);
    close(leaked);
    tctl_buf text = TCTL_BUF_INIT;
    assert_int_equal(tctl_file_read(f->log, 1 << 20, &text, NULL), TCTL_OK);
    assert_string_equal(tctl_buf_text(&text), "1\n1\n"); /* the second: standard input is empty */
    tctl_buf_release(&text);
}

static void a_child_does_not_outlive_its_supervisor(void **state)
{
    fixture *f = *state;
    pid_t pid = fork();
    if (pid == 0) {
        supervise(f, "echo $$; exec sleep 1000", 5);
        _exit(0);
    }
    tctl_buf text = TCTL_BUF_INIT;
    char probe[128];
    for (int i = 0; i < 200 && text.size == 0; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        tctl_file_read(f->log, 1 << 20, &text, NULL);
    }
    snprintf(probe, sizeof probe, "/proc/%.*s/stat", (int)strcspn(tctl_buf_text(&text), "\n"),
             tctl_buf_text(&text));
    assert_true(tctl_path_exists(probe));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < 200 && tctl_path_exists(probe); i++) {
        while (waitpid(-1, NULL, WNOHANG) > 0) /* a former test made us a subreaper */
            continue;
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    assert_false(tctl_path_exists(probe));
    tctl_buf_release(&text);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(output_and_error_go_to_the_log_in_order),
        CASE(the_exit_status_is_said),
        CASE(a_signal_is_named),
        CASE(events_are_read_however_they_are_cut),
        CASE(a_program_that_is_not_there_is_an_error),
        CASE(the_first_signal_asks),
        CASE(the_second_signal_kills),
        CASE(the_end_of_the_grace_time_kills),
        CASE(nothing_of_the_group_is_left),
        CASE(a_daemon_of_the_childs_is_found_and_ended),
        CASE(what_ends_by_itself_is_not_ended),
        CASE(a_grandchild_does_not_outlive_its_supervisor),
        CASE(a_guardian_that_is_killed_takes_all_with_it),
        CASE(the_child_inherits_no_descriptor_of_the_callers),
        CASE(a_child_does_not_outlive_its_supervisor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
