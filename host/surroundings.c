/* SPDX-License-Identifier: Apache-2.0 */
/* See surroundings.h. The one file that calls setlocale: to read the locale's name, and to undo a plugin's call. */
#include "host/surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- floating-point mode ---------------------------------------------------------------------------- */

#if defined(__x86_64__)

#define FLUSH_BITS 0x8040u /* FTZ and DAZ */

tctl_fp_mode tctl_fp_mode_get(void)
{
    tctl_fp_mode mode;
    uint32_t mxcsr;
    uint16_t control;
    __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
    __asm__ volatile("fnstcw %0" : "=m"(control));
    mode.sse = mxcsr & ~0x3fu; /* the low six bits are status */
    mode.x87 = control;
    return mode;
}

void tctl_fp_mode_set(tctl_fp_mode mode)
{
    uint32_t mxcsr = mode.sse;
    uint16_t control = (uint16_t)mode.x87;
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    __asm__ volatile("fldcw %0" : : "m"(control));
}

tctl_fp_mode tctl_fp_mode_default(void)
{
    return (tctl_fp_mode){.sse = 0x1f80u, .x87 = 0x37fu};
}

static const char sse_name[] = "MXCSR";

#elif defined(__aarch64__)

#define FLUSH_BITS 0x01000000u /* FZ */

tctl_fp_mode tctl_fp_mode_get(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (tctl_fp_mode){.sse = (uint32_t)fpcr, .x87 = 0};
}

void tctl_fp_mode_set(tctl_fp_mode mode)
{
    uint64_t fpcr = mode.sse;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}

tctl_fp_mode tctl_fp_mode_default(void)
{
    return (tctl_fp_mode){0, 0};
}

static const char sse_name[] = "FPCR";

#else

#define FLUSH_BITS 0u

tctl_fp_mode tctl_fp_mode_get(void)
{
    return (tctl_fp_mode){.sse = (uint32_t)fegetround(), .x87 = 0};
}

void tctl_fp_mode_set(tctl_fp_mode mode)
{
    (void)fesetround((int)mode.sse);
}

tctl_fp_mode tctl_fp_mode_default(void)
{
    return (tctl_fp_mode){.sse = FE_TONEAREST, .x87 = 0};
}

static const char sse_name[] = "rounding direction";

#endif

tctl_status tctl_fp_mode_check(tctl_fp_mode before, const char *who, tctl_error *err)
{
    tctl_fp_mode after = tctl_fp_mode_get();
    if (after.sse == before.sse && after.x87 == before.x87)
        return TCTL_OK;
    tctl_fp_mode_set(before);
    if (after.sse == before.sse)
        return tctl_fail(err, TCTL_EPLUGIN,
                         "%s changed the floating-point mode (x87 control word 0x%x -> 0x%x); a plugin must "
                         "leave it alone",
                         who, before.x87, after.x87);
    bool flushes = (after.sse & ~before.sse & FLUSH_BITS) != 0;
    return tctl_fail(err, TCTL_EPLUGIN, "%s changed the floating-point mode (%s 0x%x -> 0x%x); %s", who,
                     sse_name, before.sse, after.sse,
                     flushes ? "rebuild it without -ffast-math" : "a plugin must leave it alone");
}

/* ---- the rest ---------------------------------------------------------------------------------------- */

static void name_of_locale(char *out, size_t size)
{
    const char *name = setlocale(LC_ALL, NULL);
    snprintf(out, size, "%s", name ? name : "?");
}

static void name_of_folder(char *out, size_t size)
{
    if (!getcwd(out, size))
        snprintf(out, size, "(unreachable)");
}

tctl_status tctl_surroundings_capture(tctl_surroundings *ret, tctl_error *err)
{
    memset(ret, 0, sizeof *ret);
    ret->folder_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (ret->folder_fd < 0)
        return tctl_fail_errno(err, errno, "cannot open the working directory");
    name_of_folder(ret->folder, sizeof ret->folder);
    ret->fp = tctl_fp_mode_get();
    name_of_locale(ret->locale, sizeof ret->locale);
    ret->thread_locale = uselocale((locale_t)0);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &ret->mask);
    for (int i = 1; i < TCTL_SIGNAL_COUNT; i++)
        (void)sigaction(i, NULL, &ret->handlers[i]); /* fails for the two that libc keeps: they stay zero */
    return TCTL_OK;
}

void tctl_surroundings_release(tctl_surroundings *surroundings)
{
    if (surroundings->folder_fd >= 0)
        (void)close(surroundings->folder_fd);
    surroundings->folder_fd = -1;
}

static tctl_status check_locale(const tctl_surroundings *before, const char *who, tctl_error *err)
{
    char now[sizeof before->locale];
    name_of_locale(now, sizeof now);
    if (strcmp(now, before->locale) != 0) {
        (void)setlocale(LC_ALL, before->locale);
        return tctl_fail(err, TCTL_EPLUGIN,
                         "%s changed the locale ('%s' -> '%s'); a plugin must not call setlocale", who,
                         before->locale, now);
    }
    if (uselocale((locale_t)0) != before->thread_locale) {
        (void)uselocale(before->thread_locale);
        return tctl_fail(err, TCTL_EPLUGIN,
                         "%s changed the thread's locale; a plugin must not call uselocale", who);
    }
    return TCTL_OK;
}

static void describe_handler(const struct sigaction *action, char out[32])
{
    if (action->sa_flags & SA_SIGINFO)
        snprintf(out, 32, "a handler");
    else if (action->sa_handler == SIG_DFL)
        snprintf(out, 32, "default");
    else
        snprintf(out, 32, "%s", action->sa_handler == SIG_IGN ? "ignored" : "a handler");
}

static tctl_status check_signals(const tctl_surroundings *before, const char *who, tctl_error *err)
{
    sigset_t mask;
    tctl_status status = TCTL_OK;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int i = 1; i < TCTL_SIGNAL_COUNT; i++) {
        int was = sigismember(&before->mask, i), is = sigismember(&mask, i);
        if (was != is && !status)
            status =
                tctl_fail(err, TCTL_EPLUGIN,
                          "%s changed the signal mask (SIG%s %s -> %s); a plugin must leave signals alone",
                          who, sigabbrev_np(i) ? sigabbrev_np(i) : "RT", was > 0 ? "blocked" : "let through",
                          is > 0 ? "blocked" : "let through");
        struct sigaction action;
        memset(&action, 0, sizeof action);
        (void)sigaction(i, NULL, &action);
        if (action.sa_handler == before->handlers[i].sa_handler)
            continue;
        (void)sigaction(i, &before->handlers[i], NULL);
        char from[32], to[32];
        describe_handler(&before->handlers[i], from);
        describe_handler(&action, to);
        if (!status)
            status = tctl_fail(err, TCTL_EPLUGIN,
                               "%s changed what SIG%s does (%s -> %s); a plugin must leave signals alone",
                               who, sigabbrev_np(i) ? sigabbrev_np(i) : "RT", from, to);
    }
    if (status)
        (void)pthread_sigmask(SIG_SETMASK, &before->mask, NULL);
    return status;
}

static tctl_status check_folder(const tctl_surroundings *before, const char *who, tctl_error *err)
{
    struct stat was, is;
    if (fstat(before->folder_fd, &was) == 0 && stat(".", &is) == 0 && was.st_dev == is.st_dev &&
        was.st_ino == is.st_ino)
        return TCTL_OK;
    char now[PATH_MAX];
    name_of_folder(now, sizeof now);
    if (fchdir(before->folder_fd) != 0)
        return tctl_fail_errno(err, errno, "%s left the working directory '%s', which is gone", who,
                               before->folder);
    return tctl_fail(err, TCTL_EPLUGIN,
                     "%s changed the working directory ('%s' -> '%s'); a plugin must not call chdir", who,
                     before->folder, now);
}

tctl_status tctl_surroundings_check(const tctl_surroundings *before, const char *who, tctl_error *err)
{
    /* All four, so that all are put back; the first that changed is the one that is told. */
    tctl_error scratch[3];
    tctl_status fp = tctl_fp_mode_check(before->fp, who, err);
    tctl_status locale = check_locale(before, who, fp ? &scratch[0] : err);
    tctl_status signals = check_signals(before, who, fp || locale ? &scratch[1] : err);
    tctl_status folder = check_folder(before, who, fp || locale || signals ? &scratch[2] : err);
    return fp ? fp : locale ? locale : signals ? signals : folder;
}
