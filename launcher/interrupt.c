/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prepared state and the handler that writes it. The statics are for the handler, which has no arguments.
 */
#include "launcher/interrupt.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "host/worker.h"

static char state_path[PATH_MAX], temporary_path[PATH_MAX];
static tctl_buf state_text = TCTL_BUF_INIT;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void mark_and_end(int signal)
{
    int fd = open(temporary_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd >= 0 && write(fd, state_text.data, state_text.size) == (ssize_t)state_text.size)
        rename(temporary_path, state_path);
    _exit(TCTL_EXIT_SIGNAL + signal);
}

/* A signal that was ignored when the program began (nohup) stays ignored. */
static void set_handler(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, now;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) /* one at a time */
        sigaddset(&action.sa_mask, signals[i]);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

tctl_status tctl_interrupt_arm(const tctl_run *run, tctl_error *err)
{
    tctl_interrupt_disarm();
    int n = snprintf(state_path, sizeof state_path, "%s/state.json", run->path);
    int m = snprintf(temporary_path, sizeof temporary_path, "%s/.state.interrupted", run->path);
    if (n < 0 || m < 0 || (size_t)m >= sizeof temporary_path)
        return tctl_fail(err, TCTL_EINVAL, "the path of the run directory is too long: '%s'", run->path);
    json_t *state = json_copy(run->state);
    json_object_set_new(state, "state", json_string(TCTL_STATE_INTERRUPTED));
    json_object_set_new(state, "reason", json_string("stopped before the work began or after it ended"));
    tctl_buf_clear(&state_text);
    tctl_status st = tctl_json_pretty(state, &state_text, err);
    json_decref(state);
    if (st == TCTL_OK && state_text.broken)
        st = tctl_fail_memory(err, state_text.size);
    if (st == TCTL_OK)
        set_handler(mark_and_end);
    return st;
}

void tctl_interrupt_disarm(void)
{
    set_handler(SIG_DFL);
}
