/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite of `trainctl plugins test`: does a plugin keep what it claims?
 *
 * The same work again, in reverse, with other numbers of threads, with other values of every option that claims not
 * to change results, saved and loaded in the middle, beside a second stage, with each host allocation failing once:
 * equal bits or a clean error. Each check runs in a process of its own, so that a crash or an endless loop is the
 * result of one check. The work depends on what the plugin provides (host/conform_probe.h).
 */
#ifndef TCTL_HOST_CONFORM_H
#define TCTL_HOST_CONFORM_H

#include "base/error.h"
#include "host/plugins.h"

enum { TCTL_CHECK_OK = 0, TCTL_CHECK_FAILED = 1, TCTL_CHECK_SKIPPED = 2 };

/* The check that is reported as skipped for a plugin that the suite cannot put to work. */
#define TCTL_CHECK_WORK "its work"

typedef struct tctl_conform_request {
    tctl_plugins *plugins;
    const char *use, *folder;
    const char *const *set; /* "option=value", NULL-ended; NULL: none */
    uint32_t seconds;       /* that one check may take; 0: 60 */
    /* Called as each check ends, in order. `detail` says why it failed or was skipped; "" if it passed. */
    void (*report)(void *arg, const char *check, int result, const char *detail);
    void *report_arg;
} tctl_conform_request;

/* *ret_failed is the number of checks that failed. The status is about the suite itself: a plugin that cannot be
 * loaded, options that cannot be read (TCTL_ESPEC, with a hint). [main] */
tctl_status tctl_conform_run(const tctl_conform_request *, uint32_t *ret_failed, tctl_error *err);

#endif
