/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks SIGTERM. */
#include <pthread.h>
#include <signal.h>

#include "common.h"

static const tctl_source source = COMMON_SOURCE;
static const tctl_extension extensions[] = {{TCTL_SOURCE_ID, &source}};
static const tctl_option options[] = {COMMON_SCALE, COMMON_BUFFER};

__attribute__((constructor)) static void change(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

COMMON_PLUGIN("mask");
