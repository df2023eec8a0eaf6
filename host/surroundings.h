/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What foreign code must leave as it found it: floating-point mode, locale, signal mask and handlers, working
 * directory. Captured before a library is loaded or a stage made, compared afterwards, put back if changed.
 *
 * The floating-point status flags ("inexact was seen") are no mode and are not compared. Not thread-safe: locale,
 * handlers and working directory belong to the process.
 */
#ifndef TCTL_HOST_SURROUNDINGS_H
#define TCTL_HOST_SURROUNDINGS_H

#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

typedef struct tctl_fp_mode {
    uint32_t sse; /* x86-64: control bits of MXCSR; AArch64: FPCR */
    uint32_t x87; /* x86-64: the control word */
} tctl_fp_mode;

#define TCTL_SIGNAL_COUNT 65

typedef struct tctl_surroundings {
    tctl_fp_mode fp;
    char locale[512]; /* setlocale(LC_ALL, NULL) */
    locale_t thread_locale;
    sigset_t mask;
    struct sigaction handlers[TCTL_SIGNAL_COUNT];
    int folder_fd;
    char folder[PATH_MAX];
} tctl_surroundings;

tctl_fp_mode tctl_fp_mode_get(void);
void tctl_fp_mode_set(tctl_fp_mode);
/* The mode that every C program starts with: round to nearest, denormals kept, nothing trapped. */
tctl_fp_mode tctl_fp_mode_default(void);

/* TCTL_EIO if the working directory cannot be opened. Release it in any case. */
tctl_status tctl_surroundings_capture(tctl_surroundings *ret, tctl_error *err);
void tctl_surroundings_release(tctl_surroundings *);

/* TCTL_EPLUGIN naming `who` ("plugin './fast.so'"), what changed and both values; everything is put back first.
 * TCTL_OK if nothing changed. */
tctl_status tctl_surroundings_check(const tctl_surroundings *before, const char *who, tctl_error *err);

/* The floating-point mode alone: cheap enough for after every call. TCTL_EPLUGIN, and put back. */
tctl_status tctl_fp_mode_check(tctl_fp_mode before, const char *who, tctl_error *err);

#endif
