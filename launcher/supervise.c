/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watching the child, and what it says. See supervise.h; guard.h for who starts and ends it.
 *
 * Signals are blocked and read from a signalfd, so that there is no handler and no race with poll. After the child's
 * end its pipes are drained without waiting for end-of-file.
 */
#include "launcher/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "host/worker.h"
#include "launcher/guard.h"

#define MAX_EVENT_LINE ((size_t)64 << 10)
#define GROUP_GONE_MS  2000

enum { OUTPUT, EVENTS, SIGNALS, GUARD, N_POLLED };

typedef struct watch {
    const tctl_child *child;
    tctl_arena *arena;
    tctl_child_end *end;
    pid_t guard;
    int log_fd;
    int fds[N_POLLED];
    tctl_buf line; /* of events, not yet whole */
    bool ended;
    int wait_status;
    int asked;      /* how often we were asked to stop */
    double kill_at; /* monotonic seconds; 0: not set */
} watch;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- starting ------------------------------------------------------------------------------------------- */

/* A pipe whose ends are above the descriptors that the child is given, so that dup2 never overwrites one. */
static bool make_pipe(int ends[2])
{
    int low[2];
    if (pipe2(low, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        ends[i] = fcntl(low[i], F_DUPFD_CLOEXEC, TCTL_WORKER_EVENTS_FD + 1);
        close(low[i]);
    }
    return ends[0] >= 0 && ends[1] >= 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static tctl_status start(watch *w, const sigset_t *old_mask, tctl_error *err)
{
    int output[2] = {-1, -1}, events[2] = {-1, -1}, null = -1;
    tctl_guard_fds fds;
    tctl_status st;
    int opened = open("/dev/null", O_RDONLY | O_CLOEXEC);
    null = opened < 0 ? -1 : fcntl(opened, F_DUPFD_CLOEXEC, TCTL_WORKER_EVENTS_FD + 1);
    close_fd(&opened);
    if (null < 0 || !make_pipe(output) || !make_pipe(events)) {
        st = tctl_fail_errno(err, errno, "cannot make the pipes of a child");
        goto out;
    }
    fds = (tctl_guard_fds){.null = null, .output = output[1], .events = events[1]};
    st = tctl_guard_start(w->child, &fds, old_mask, &w->guard, &w->fds[GUARD], err);
    if (st != TCTL_OK)
        goto out;
    w->fds[OUTPUT] = output[0];
    w->fds[EVENTS] = events[0];
    output[0] = events[0] = -1;
    fcntl(w->fds[OUTPUT], F_SETFL, O_NONBLOCK);
    fcntl(w->fds[EVENTS], F_SETFL, O_NONBLOCK);
out:
    for (int i = 0; i < 2; i++) {
        close_fd(&output[i]);
        close_fd(&events[i]);
    }
    close_fd(&null);
    return st;
}

/* ---- what it says --------------------------------------------------------------------------------------- */

static void log_output(watch *w, const char *data, size_t size)
{
    tctl_error err = {0};
    tctl_view_output(w->child->view, data, size);
    if (w->log_fd < 0)
        return;
    if (tctl_write_all(w->log_fd, data, size, w->child->log_path, &err) == TCTL_ENOSPC)
        w->end->log_disk_full = true;
}

static const char *copy_text(tctl_arena *arena, const json_t *value)
{
    const char *text = json_string_value(value);
    return text == NULL ? NULL : tctl_arena_copy(arena, text, strlen(text));
}

static void take_event(watch *w, const char *line, size_t size)
{
    json_t *event = json_loadb(line, size, 0, NULL);
    if (json_is_object(event)) {
        const json_t *phase = json_object_get(event, "phase");
        if (json_is_string(phase)) {
            w->end->phase = copy_text(w->arena, phase);
            w->end->plugin = copy_text(w->arena, json_object_get(event, "plugin"));
        }
        json_t *metrics = json_object_get(event, "metrics");
        if (json_is_object(metrics)) {
            json_decref(w->end->last_metrics);
            w->end->last_metrics = json_incref(metrics);
        }
        tctl_view_event(w->child->view, event);
    }
    json_decref(event);
}

static void take_event_bytes(watch *w, const char *data, size_t size)
{
    while (size > 0) {
        const char *newline = memchr(data, '\n', size);
        size_t n = newline == NULL ? size : (size_t)(newline - data);
        if (w->line.size + n <= MAX_EVENT_LINE)
            tctl_buf_add(&w->line, data, n);
        if (newline == NULL)
            return;
        if (w->line.size > 0)
            take_event(w, w->line.data, w->line.size);
        tctl_buf_clear(&w->line);
        data += n + 1;
        size -= n + 1;
    }
}

/* Reads what is there; closes the pipe at its end. */
static void drain(watch *w, int which)
{
    char block[16384];
    for (int turn = 0; w->fds[which] >= 0 && turn < 64; turn++) {
        ssize_t n = read(w->fds[which], block, sizeof block);
        if (n > 0 && which == OUTPUT)
            log_output(w, block, (size_t)n);
        else if (n > 0)
            take_event_bytes(w, block, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_fd(&w->fds[which]);
        else if (errno == EAGAIN)
            return;
    }
}

/* ---- signals -------------------------------------------------------------------------------------------- */

static void tell_guard(const watch *w, char order)
{
    (void)!send(w->fds[GUARD], &order, 1, MSG_NOSIGNAL); /* it is gone if this fails: seen elsewhere */
}

static void ask_to_stop(watch *w, int signal)
{
    w->asked++;
    if (w->end->stopped_by == 0)
        w->end->stopped_by = signal;
    if (w->asked == 1) {
        tell_guard(w, TCTL_GUARD_ASK);
        w->kill_at = now_seconds() + w->child->grace_seconds;
        tctl_view_say(w->child->view, "trainctl: stopping; press Ctrl-C again to kill");
    } else {
        tell_guard(w, TCTL_GUARD_KILL);
    }
}

static void take_signals(watch *w)
{
    struct signalfd_siginfo info;
    while (read(w->fds[SIGNALS], &info, sizeof info) == (ssize_t)sizeof info)
        ask_to_stop(w, (int)info.ssi_signo);
}

/* ---- the guardian's words --------------------------------------------------------------------------------- */

static void take_left(watch *w, const char *name)
{
    json_t *text = json_string(name); /* NULL if it is no UTF-8 */
    if (w->end->left == NULL)
        w->end->left = json_array();
    json_array_append_new(w->end->left, text != NULL ? text : json_string("?"));
}

static tctl_status take_messages(watch *w, tctl_error *err)
{
    tctl_guard_message m;
    ssize_t n;
    while ((n = recv(w->fds[GUARD], &m, sizeof m, 0)) == (ssize_t)sizeof m) {
        m.name[sizeof m.name - 1] = '\0';
        if (m.kind == TCTL_GUARD_FAILED)
            return tctl_fail_errno(err, m.value, "cannot run '%s' in '%s'", w->child->argv[0],
                                   w->child->folder);
        if (m.kind == TCTL_GUARD_LEFT)
            take_left(w, m.name);
        if (m.kind == TCTL_GUARD_ENDED) {
            w->ended = true;
            w->wait_status = m.value;
            w->end->peak_bytes = m.peak_bytes;
        }
    }
    if (!w->ended && n >= 0) { /* its end of the socket is closed: somebody killed it, and so the child */
        w->ended = w->end->unguarded = true;
        w->wait_status = SIGKILL;
    }
    return TCTL_OK;
}

static tctl_status watch_until_end(watch *w, tctl_error *err)
{
    while (!w->ended) {
        struct pollfd polled[N_POLLED];
        for (int i = 0; i < N_POLLED; i++)
            polled[i] = (struct pollfd){.fd = w->fds[i], .events = POLLIN};
        int wait_ms = -1;
        if (w->kill_at > 0) {
            double left = w->kill_at - now_seconds();
            wait_ms = left > 0 ? (int)(left * 1000) + 1 : 0;
        }
        if (poll(polled, N_POLLED, wait_ms) < 0 && errno != EINTR)
            return tctl_fail_errno(err, errno, "cannot wait for the child");
        if (w->kill_at > 0 && now_seconds() >= w->kill_at) {
            tell_guard(w, TCTL_GUARD_KILL);
            w->kill_at = 0;
            w->end->over_limit = w->asked == 0;
        }
        drain(w, OUTPUT);
        drain(w, EVENTS);
        take_signals(w);
        tctl_status st = take_messages(w, err);
        if (st != TCTL_OK)
            return st;
    }
    return TCTL_OK;
}

/* The guardian ends when its work is done; what it could not do, because it was killed, we do. */
static void finish(watch *w)
{
    close_fd(&w->fds[GUARD]);
    while (w->guard > 0 && waitpid(w->guard, NULL, 0) < 0 && errno == EINTR) {
    }
    tctl_guard_kill_children();
    drain(w, OUTPUT);
    drain(w, EVENTS);
}

/* Names, each once, in the order in which they came. */
static void say_left(const watch *w)
{
    tctl_buf names = TCTL_BUF_INIT;
    size_t n = json_array_size(w->end->left);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(w->end->left, i));
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = strcmp(name, json_string_value(json_array_get(w->end->left, k))) == 0;
        if (!again)
            tctl_buf_add_format(&names, "%s'%s'", names.size > 0 ? ", " : "", name);
    }
    if (n > 0 && tctl_buf_text(&names) != NULL)
        tctl_view_say(w->child->view,
                      "trainctl: note: %zu process%s that the child left running %s ended: %s", n,
                      n == 1 ? "" : "es", n == 1 ? "was" : "were", tctl_buf_text(&names));
    tctl_buf_release(&names);
}

tctl_status tctl_supervise(tctl_arena *arena, const tctl_child *child, tctl_child_end *ret, tctl_error *err)
{
    tctl_child_end end = {0};
    watch w = {.child = child, .arena = arena, .end = &end, .log_fd = -1, .fds = {-1, -1, -1, -1}};
    w.line = (tctl_buf)TCTL_BUF_INIT;
    sigset_t watched, old_mask;
    sigemptyset(&watched);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaddset(&watched, signals[i]);
    sigprocmask(SIG_BLOCK, &watched, &old_mask);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, children end without a status */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    double began = now_seconds();
    w.kill_at = child->limit_seconds > 0 ? began + child->limit_seconds : 0;
    tctl_status st = TCTL_OK;
    w.log_fd = open(child->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    w.fds[SIGNALS] = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (w.fds[SIGNALS] < 0)
        st = tctl_fail_errno(err, errno, "cannot watch signals");
    if (st == TCTL_OK)
        st = start(&w, &old_mask, err);
    if (st == TCTL_OK) {
        st = watch_until_end(&w, err);
        finish(&w);
        say_left(&w);
        end.seconds = now_seconds() - began;
        end.signal = WIFSIGNALED(w.wait_status) ? WTERMSIG(w.wait_status) : 0;
        end.exit_code = end.signal != 0 ? TCTL_EXIT_SIGNAL + end.signal : WEXITSTATUS(w.wait_status);
    }
    for (int i = 0; i < N_POLLED; i++)
        close_fd(&w.fds[i]);
    close_fd(&w.log_fd);
    tctl_buf_release(&w.line);
    sigprocmask(SIG_SETMASK, &old_mask, NULL);
    if (st == TCTL_OK)
        *ret = end;
    else
        tctl_child_release(&end);
    return st;
}

void tctl_child_release(tctl_child_end *end)
{
    json_decref(end->last_metrics);
    json_decref(end->left);
    end->last_metrics = end->left = NULL;
}

const char *tctl_child_reason(tctl_arena *arena, const tctl_child_end *end)
{
    if (end->signal == 0 && end->exit_code == 0)
        return NULL;
    if (end->signal == 0)
        return tctl_arena_format(arena, "exit status %d", end->exit_code);
    const char *name = sigabbrev_np(end->signal);
    const char *guess = "";
    if (end->unguarded)
        return "its guardian was killed, and so was the child";
    if (end->over_limit)
        guess = " (it took too long)";
    else if (end->signal == SIGKILL && end->stopped_by == 0)
        guess = " (out of memory?)";
    else if (end->signal == SIGXFSZ)
        guess = " (file size limit)";
    else if (end->signal == SIGXCPU)
        guess = " (CPU time limit)";
    return tctl_arena_format(arena, "killed by SIG%s%s", name == NULL ? "?" : name, guess);
}
