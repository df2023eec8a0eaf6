/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: codes, texts that are too long, notes, NULL. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"

static void a_failure_is_code_and_text(void **state)
{
    (void)state;
    tctl_error err;
    memset(&err, 0x55, sizeof err); /* whatever was there is gone */
    assert_int_equal(tctl_fail(&err, TCTL_EINVAL, "bad %s %d", "thing", 7), TCTL_EINVAL);
    assert_int_equal(err.code, TCTL_EINVAL);
    assert_string_equal(err.message, "bad thing 7");
    assert_int_equal(err.n_notes, 0);
    assert_string_equal(err.hint, "");
    assert_null(err.loc.file);
    const tctl_loc loc = {"a.yaml", 3, 4, 3, 9};
    assert_int_equal(tctl_fail_at(&err, TCTL_ESPEC, loc, "here"), TCTL_ESPEC);
    assert_int_equal(err.loc.line, 3);
    assert_int_equal(tctl_fail_memory(&err, 12345), TCTL_ENOMEM);
    assert_string_equal(err.message, "out of memory: 12345 bytes asked for");
}

static void system_errors_have_their_code_and_reason(void **state)
{
    (void)state;
    static const struct {
        int errnum;
        tctl_status code;
        const char *text;
    } cases[] = {
        {ENOENT, TCTL_ENOENT, "cannot open 'x': No such file or directory"},
        {ENOTDIR, TCTL_ENOENT, "cannot open 'x': Not a directory"},
        {ENOSPC, TCTL_ENOSPC, "cannot open 'x': No space left on device"},
        {EDQUOT, TCTL_ENOSPC, "cannot open 'x': Disk quota exceeded"},
        {ENOMEM, TCTL_ENOMEM, "cannot open 'x': Cannot allocate memory"},
        {EACCES, TCTL_EIO, "cannot open 'x': Permission denied"},
        {99999, TCTL_EIO, "cannot open 'x': Unknown error 99999"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tctl_error err;
        assert_int_equal(tctl_fail_errno(&err, cases[i].errnum, "cannot open '%s'", "x"), cases[i].code);
        assert_string_equal(err.message, cases[i].text);
        assert_int_equal(tctl_fail_errno(NULL, cases[i].errnum, "cannot open '%s'", "x"), cases[i].code);
    }
}

/* Every length around the end of the buffer, with characters of 1 to 4 bytes: the text stays valid UTF-8. */
static void a_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    static const char *const letters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t l = 0; l < 4; l++) {
        size_t n = strlen(letters[l]);
        for (size_t shift = 0; shift < 4; shift++) {
            char text[3000] = "";
            memset(text, '.', shift);
            for (size_t at = shift; at + n < sizeof text; at += n)
                memcpy(text + at, letters[l], n);
            tctl_error err;
            tctl_fail(&err, TCTL_EINVAL, "%s", text);
            size_t length = strlen(err.message);
            assert_true(length > TCTL_ERROR_MESSAGE - 8 && length < TCTL_ERROR_MESSAGE);
            assert_string_equal(err.message + length - 3, "\xe2\x80\xa6");
            assert_int_equal((length - 3 - shift) % n, 0);
        }
    }
}

static void a_long_path_does_not_hide_the_reason(void **state)
{
    (void)state;
    for (size_t length = 950; length < 1100; length++) {
        char path[1200];
        memset(path, 'p', length);
        path[length] = '\0';
        tctl_error err;
        tctl_fail_errno(&err, EACCES, "cannot open '%s'", path);
        const char *reason = strrchr(err.message, ':');
        assert_non_null(reason);
        assert_string_equal(reason, ": Permission denied");
        assert_true(strlen(err.message) < TCTL_ERROR_MESSAGE);
    }
}

static void notes_add_up_to_a_limit(void **state)
{
    (void)state;
    tctl_error err;
    tctl_fail(&err, TCTL_EIO, "cause");
    for (int i = 0; i < 10; i++)
        tctl_note(&err, "note %d", i);
    assert_int_equal(err.n_notes, TCTL_ERROR_NOTES);
    assert_string_equal(err.notes[0], "note 0");
    assert_string_equal(err.notes[3], "note 3");
    assert_string_equal(err.message, "cause");
    char text[2000];
    memset(text, 'n', sizeof text);
    text[sizeof text - 1] = '\0';
    tctl_fail(&err, TCTL_EIO, "cause");
    tctl_note_at(&err, (tctl_loc){"f", 1, 2, 0, 0}, "%s", text);
    assert_int_equal(strlen(err.notes[0]), TCTL_ERROR_NOTE - 1);
    assert_int_equal(err.note_locs[0].col, 2);
    tctl_hint(&err, "try %s", "that");
    assert_string_equal(err.hint, "try that");
}

static void null_only_passes_the_code_on(void **state)
{
    (void)state;
    assert_int_equal(tctl_fail(NULL, TCTL_EBUSY, "x"), TCTL_EBUSY);
    assert_int_equal(tctl_fail_at(NULL, TCTL_ESPEC, (tctl_loc){0}, "x"), TCTL_ESPEC);
    assert_int_equal(tctl_fail_memory(NULL, 1), TCTL_ENOMEM);
    tctl_note(NULL, "x");
    tctl_note_at(NULL, (tctl_loc){0}, "x");
    tctl_hint(NULL, "x");
    tctl_error_clear(NULL);
}

static void every_status_has_its_own_words(void **state)
{
    (void)state;
    for (tctl_status a = TCTL_EBUSY; a <= TCTL_OK; a++) {
        assert_string_not_equal(tctl_status_text(a), "unknown status");
        for (tctl_status b = TCTL_EBUSY; b < a; b++)
            assert_string_not_equal(tctl_status_text(a), tctl_status_text(b));
    }
    assert_string_equal(tctl_status_text(1), "unknown status");
    assert_string_equal(tctl_status_text(TCTL_EBUSY - 1), "unknown status");
    assert_string_equal(tctl_status_text(INT32_MIN), "unknown status");
}

static void a_bug_ends_the_process_and_says_where(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        TCTL_BUG_IF(1 + 1 == 2);
        _exit(0);
    }
    close(ends[1]);
    char text[256] = "";
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "trainctl: bug at "));
    assert_non_null(strstr(text, "test_error.c:"));
    assert_non_null(strstr(text, "1 + 1 == 2"));
    TCTL_BUG_IF(false); /* and goes on */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_is_code_and_text),
        cmocka_unit_test(system_errors_have_their_code_and_reason),
        cmocka_unit_test(a_long_text_is_cut_between_characters),
        cmocka_unit_test(a_long_path_does_not_hide_the_reason),
        cmocka_unit_test(notes_add_up_to_a_limit),
        cmocka_unit_test(null_only_passes_the_code_on),
        cmocka_unit_test(every_status_has_its_own_words),
        cmocka_unit_test(a_bug_ends_the_process_and_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
