/* SPDX-License-Identifier: Apache-2.0 */
/* See error.h. Fixed buffers on purpose: reporting that memory is out must not need memory. */
#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tctl_error_clear(tctl_error *err)
{
    if (err)
        memset(err, 0, sizeof *err);
}

static const char ellipsis[] = "\xe2\x80\xa6";

/* Cuts a text to at most `length` bytes with a "…" at its end, and never within a character. */
static void cut(char *out, size_t length)
{
    size_t at = length - (sizeof ellipsis - 1);
    while (at > 0 && ((unsigned char)out[at] & 0xc0) == 0x80)
        at--;
    memcpy(out + at, ellipsis, sizeof ellipsis);
}

/* Formats into a fixed buffer; a text that does not fit ends in "…". */
TCTL_PRINTF(3, 0)
static void format(char *out, size_t size, const char *fmt, va_list ap)
{
    int n = vsnprintf(out, size, fmt, ap);
    if (n < 0)
        snprintf(out, size, "(message could not be formatted)");
    else if ((size_t)n >= size)
        cut(out, size - 1);
}

tctl_status(tctl_vfail)(tctl_error *err, tctl_status code, const char *fmt, va_list ap)
{
    if (err) {
        tctl_error_clear(err);
        err->code = code;
        format(err->message, sizeof err->message, fmt, ap);
    }
    return code;
}

tctl_status(tctl_fail)(tctl_error *err, tctl_status code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, code, fmt, ap);
    va_end(ap);
    return code;
}

static tctl_status code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        return TCTL_ENOSPC;
    case ENOMEM:
        return TCTL_ENOMEM;
    case ENOENT:
    case ENOTDIR:
        return TCTL_ENOENT;
    default:
        return TCTL_EIO;
    }
}

tctl_status(tctl_fail_errno)(tctl_error *err, int errnum, const char *fmt, ...)
{
    tctl_status code = code_of_errno(errnum);
    if (!err)
        return code;
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, code, fmt, ap);
    va_end(ap);
    char buffer[128], reason[160];
    /* The GNU strerror_r: returns the text, which may or may not be in the buffer. */
    snprintf(reason, sizeof reason, ": %s", strerror_r(errnum, buffer, sizeof buffer));
    size_t used = strlen(err->message), room = sizeof err->message - 1 - strlen(reason);
    if (used > room) {
        /* A long path must not hide the reason. */
        cut(err->message, room);
        used = strlen(err->message);
    }
    memcpy(err->message + used, reason, strlen(reason) + 1);
    return code;
}

tctl_status(tctl_fail_at)(tctl_error *err, tctl_status code, tctl_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    tctl_vfail(err, code, fmt, ap);
    va_end(ap);
    if (err)
        err->loc = loc;
    return code;
}

tctl_status(tctl_fail_memory)(tctl_error *err, size_t size_bytes)
{
    return tctl_fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for", size_bytes);
}

TCTL_PRINTF(3, 0)
static void add_note(tctl_error *err, tctl_loc loc, const char *fmt, va_list ap)
{
    if (!err || err->n_notes == TCTL_ERROR_NOTES)
        return;
    err->note_locs[err->n_notes] = loc;
    format(err->notes[err->n_notes++], TCTL_ERROR_NOTE, fmt, ap);
}

void tctl_note(tctl_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_note(err, (tctl_loc){0}, fmt, ap);
    va_end(ap);
}

void tctl_note_at(tctl_error *err, tctl_loc loc, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_note(err, loc, fmt, ap);
    va_end(ap);
}

void tctl_hint(tctl_error *err, const char *fmt, ...)
{
    if (!err)
        return;
    va_list ap;
    va_start(ap, fmt);
    format(err->hint, sizeof err->hint, fmt, ap);
    va_end(ap);
}

const char *tctl_status_text(tctl_status code)
{
    static const char *const texts[] = {
        "success",
        "bad argument",
        "input or output failed",
        "out of memory",
        "not found",
        "malformed data",
        "wrong spec",
        "plugin failed",
        "changed",
        "disk full",
        "promise cannot be kept",
        "cancelled",
        "not supported",
        "busy",
    };
    size_t i = (size_t)(-(int64_t)code);
    return code <= 0 && i < sizeof texts / sizeof texts[0] ? texts[i] : "unknown status";
}

void tctl_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "trainctl: bug at %s:%d: %s\n", file, line, what);
    abort();
}
