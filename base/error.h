/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors with context.
 *
 * The caller owns a tctl_error; a failing function fills it and returns the code, in one statement:
 *
 *     return tctl_fail(err, TCTL_EIO, "cannot read '%s': %s", path, tctl_errno_text(errno, buf));
 *
 * Functions on the way up add notes; they never replace the cause. Nothing here allocates, so running out
 * of memory can be reported. Every function accepts err == NULL and then only passes the code on.
 *
 * Wording: lower case, no full stop, the error first, values in single quotes, then what would be right.
 */
#ifndef TCTL_BASE_ERROR_H
#define TCTL_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "trainctl/plugin.h"
#include "trainctl/status.h"

#define TCTL_ERROR_MESSAGE 1024
#define TCTL_ERROR_NOTES   4
#define TCTL_ERROR_NOTE    512

/* A place in a file of the user's. Lines and columns count from 1; columns count code points. 0: unknown. */
typedef struct tctl_loc {
    const char *file; /* borrowed: lives as long as the run's arena */
    uint32_t line, col;
    uint32_t end_line, end_col; /* one past the last character */
} tctl_loc;

struct tctl_error {
    tctl_status code;
    tctl_loc loc;
    char message[TCTL_ERROR_MESSAGE];
    uint32_t n_notes;
    char notes[TCTL_ERROR_NOTES][TCTL_ERROR_NOTE];
    tctl_loc note_locs[TCTL_ERROR_NOTES];
    char hint[TCTL_ERROR_NOTE];
};

void tctl_error_clear(tctl_error *err);

/* Fills *err and returns `code`. */
tctl_status tctl_fail(tctl_error *err, tctl_status code, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(3, 4);
tctl_status tctl_vfail(tctl_error *err, tctl_status code, const char *fmt, va_list ap) TCTL_COLD
    TCTL_PRINTF(3, 0);
/* The same for a failed system call: appends ": " and the text of `errnum`; the code is TCTL_ENOSPC for a full
 * disk or quota, TCTL_ENOMEM for ENOMEM, TCTL_ENOENT for a missing file, else TCTL_EIO. */
tctl_status tctl_fail_errno(tctl_error *err, int errnum, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(3, 4);
tctl_status tctl_fail_at(tctl_error *err, tctl_status code, tctl_loc loc, const char *fmt, ...) TCTL_COLD
    TCTL_PRINTF(4, 5);
tctl_status tctl_fail_memory(tctl_error *err, size_t size_bytes) TCTL_COLD;

/* So that a compiler sees, without the body, that a failure is one: gcc's analyser follows paths that do not exist
 * otherwise. */
static inline tctl_status tctl_as_failure(tctl_status code)
{
    return code != TCTL_OK ? code : TCTL_EIO;
}
#define tctl_fail(...)        tctl_as_failure(tctl_fail(__VA_ARGS__))
#define tctl_vfail(...)       tctl_as_failure(tctl_vfail(__VA_ARGS__))
#define tctl_fail_errno(...)  tctl_as_failure(tctl_fail_errno(__VA_ARGS__))
#define tctl_fail_at(...)     tctl_as_failure(tctl_fail_at(__VA_ARGS__))
#define tctl_fail_memory(...) tctl_as_failure(tctl_fail_memory(__VA_ARGS__))

/* Adds context; ignored once the notes are full. */
void tctl_note(tctl_error *err, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(2, 3);
void tctl_note_at(tctl_error *err, tctl_loc loc, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(3, 4);
void tctl_hint(tctl_error *err, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(2, 3);

/* "out of memory", "bad argument": what a status means in general. */
const char *tctl_status_text(tctl_status code);

/* A programming error: prints file, line and condition to standard error and aborts, in all builds. */
#define TCTL_BUG_IF(cond) ((cond) ? tctl_bug(__FILE__, __LINE__, #cond) : (void)0)
void tctl_bug(const char *file, int line, const char *what) TCTL_COLD TCTL_NORETURN;

#endif
