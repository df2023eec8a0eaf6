/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guardian's life. See guard.h. After the fork there are two programs in this file: guard() never returns.
 */
#include "launcher/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "host/worker.h"

#define ENDS_BY_ITSELF_MS 200  /* helpers that see the end of a pipe: Python's resource tracker */
#define ASKED_MS          500  /* from the child's end to the kill */
#define GIVEN_UP_MS       5000 /* a process in uninterruptible sleep can't be waited for */

/* ---- the child ------------------------------------------------------------------------------------------ */

/* Descriptors that we were started with and know nothing about: the child would read what nobody recorded. */
static void close_at_exec_from(int first)
{
    if (close_range((unsigned)first, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = first; fd < 1024; fd++) /* an old kernel */
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Runs between fork and exec: system calls only. */
static void become_child(const tctl_child *child, const tctl_guard_fds *fds, pid_t parent, int failure,
                         const sigset_t *mask)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(TCTL_EXIT_FAILED); /* it ended before the death signal was set */
    tctl_envelope_enter(child->envelope);
    bool ok = dup2(fds->null, STDIN_FILENO) >= 0 && dup2(fds->output, STDOUT_FILENO) >= 0 &&
              dup2(fds->output, STDERR_FILENO) >= 0;
    close_at_exec_from(STDERR_FILENO + 1);
    if (ok && child->events)
        ok = dup2(fds->events, TCTL_WORKER_EVENTS_FD) >= 0;
    if (ok)
        ok = chdir(child->folder) == 0;
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (ok)
        execve(child->argv[0], (char *const *)(uintptr_t)child->argv,
               (char *const *)(uintptr_t)child->envelope->variables);
    int why = errno;
    ssize_t n = write(failure, &why, sizeof why);
    _exit(n == (ssize_t)sizeof why ? 127 : 126);
}

/* ---- the guardian --------------------------------------------------------------------------------------- */

typedef struct guardian {
    int control, signals;
    pid_t child;
    bool ended, hurry, alone; /* hurry: kill, do not ask; alone: whoever started us is gone */
    int status;
    uint64_t peak_bytes;
} guardian;

static void say(const guardian *g, int kind, int value, const char *name)
{
    tctl_guard_message m = {.kind = kind, .value = value, .peak_bytes = g->peak_bytes};
    snprintf(m.name, sizeof m.name, "%s", name);
    while (!g->alone && send(g->control, &m, sizeof m, MSG_NOSIGNAL) < 0 && errno == EINTR) {
    }
}

/* The parent of a process, and its name; 0 if it is gone. From /proc/PID/stat: "PID (NAME) STATE PPID …", where NAME
 * may hold anything. */
static pid_t parent_of(const char *pid, char name[24])
{
    char path[64], text[512];
    uint64_t parent = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n < 0 ? 0 : n] = '\0';
    char *open_paren = strchr(text, '('), *close_paren = strrchr(text, ')');
    if (open_paren == NULL || close_paren == NULL || strlen(close_paren) < 5)
        return 0;
    *close_paren = '\0';
    snprintf(name, 24, "%s", open_paren + 1);
    const char *number = close_paren + 4;
    return tctl_parse_uint(number, strspn(number, "0123456789"), &parent) ? (pid_t)parent : 0;
}

/* Sends a signal to each child, and to the group that it leads. If `g`, says who they are. */
static void signal_children(const guardian *g, int signal)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    pid_t self = getpid();
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        char name[24];
        uint64_t pid;
        if (!tctl_parse_uint(entry->d_name, strlen(entry->d_name), &pid) ||
            parent_of(entry->d_name, name) != self)
            continue;
        if (g != NULL)
            say(g, TCTL_GUARD_LEFT, (int)pid, name);
        if (getpgid((pid_t)pid) == (pid_t)pid)
            kill(-(pid_t)pid, signal);
        kill((pid_t)pid, signal);
        if (signal == SIGTERM)
            kill((pid_t)pid, SIGCONT);
    }
    if (proc != NULL)
        closedir(proc);
}

/* Collects who has ended. False if there is no child any more. */
static bool reap(guardian *g)
{
    struct rusage usage;
    int status;
    pid_t pid;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
        if (g == NULL || pid != g->child)
            continue;
        g->ended = true;
        g->status = status;
        g->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    }
    return pid == 0;
}

static void take_orders(guardian *g)
{
    char order;
    ssize_t n;
    while ((n = recv(g->control, &order, 1, MSG_DONTWAIT)) > 0) {
        if (order == TCTL_GUARD_ASK && !g->ended) {
            kill(-g->child, SIGTERM);
            kill(-g->child, SIGCONT);
        } else if (order == TCTL_GUARD_KILL) {
            g->hurry = true;
        }
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        g->alone = g->hurry = true;
    if (g->hurry && !g->ended)
        kill(-g->child, SIGKILL);
}

/* Waits for an order or a death, at most so long. */
static void wait_for_something(guardian *g, int milliseconds)
{
    struct signalfd_siginfo info;
    struct pollfd polled[] = {{.fd = g->alone ? -1 : g->control, .events = POLLIN},
                              {.fd = g->signals, .events = POLLIN}};
    poll(polled, 2, milliseconds);
    while (read(g->signals, &info, sizeof info) == (ssize_t)sizeof info) {
    }
    if (polled[0].revents != 0)
        take_orders(g);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What the child left behind: it may end by itself, is asked, is killed. Whoever dies hands its own children to us. */
static void end_the_rest(guardian *g)
{
    int64_t began = now_ms(), spent;
    bool asked = false;
    kill(-g->child, g->hurry ? SIGKILL : SIGCONT); /* a stopped one could not end */
    while (reap(g) && (spent = now_ms() - began) < GIVEN_UP_MS) {
        if (g->hurry || spent >= ASKED_MS) {
            signal_children(asked || g->hurry ? NULL : g, SIGKILL);
            asked = true;
        } else if (spent >= ENDS_BY_ITSELF_MS && !asked) {
            signal_children(g, SIGTERM);
            asked = true;
        }
        int64_t until = asked ? ASKED_MS : ENDS_BY_ITSELF_MS;
        wait_for_something(g, spent >= until || g->hurry ? 1 : (int)(until - spent));
    }
}

static TCTL_NORETURN void guard(guardian *g, const tctl_child *child, const tctl_guard_fds *fds,
                                const sigset_t *child_mask)
{
    sigset_t all, deaths;
    int failure[2], why = 0;
    setsid();
    prctl(PR_SET_NAME, "trainctl-guard");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    sigemptyset(&deaths);
    sigaddset(&deaths, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, children end without a status */
    g->signals = signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
    pid_t self = getpid();
    if (g->signals < 0 || pipe2(failure, O_CLOEXEC) != 0 || (g->child = fork()) < 0) {
        say(g, TCTL_GUARD_FAILED, errno, "");
        _exit(1);
    }
    if (g->child == 0) {
        /* Above what the child is given, so that dup2 never overwrites it. */
        int high = fcntl(failure[1], F_DUPFD_CLOEXEC, TCTL_WORKER_EVENTS_FD + 1);
        become_child(child, fds, self, high, child_mask);
    }
    setpgid(g->child, g->child); /* whoever of the two is first: a signal right now must find the group */
    const int not_ours[] = {failure[1], fds->output, fds->events};
    for (size_t i = 0; i < sizeof not_ours / sizeof not_ours[0]; i++)
        close(not_ours[i]);
    ssize_t n;
    do
        n = read(failure[0], &why, sizeof why);
    while (n < 0 && errno == EINTR);
    close(failure[0]);
    if (n == (ssize_t)sizeof why) {
        waitpid(g->child, NULL, 0);
        say(g, TCTL_GUARD_FAILED, why, "");
        _exit(1);
    }
    say(g, TCTL_GUARD_STARTED, 0, "");
    while (!g->ended && reap(g))
        if (!g->ended)
            wait_for_something(g, -1);
    end_the_rest(g);
    say(g, TCTL_GUARD_ENDED, g->status, "");
    _exit(0);
}

tctl_status tctl_guard_start(const tctl_child *child, const tctl_guard_fds *fds, const sigset_t *child_mask,
                             pid_t *ret_pid, int *ret_fd, tctl_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return tctl_fail_errno(err, errno, "cannot make a socket to the child's guardian");
    pid_t pid = fork();
    if (pid < 0) {
        int why = errno;
        close(ends[0]);
        close(ends[1]);
        return tctl_fail_errno(err, why, "cannot start a process");
    }
    if (pid == 0) {
        close(ends[0]); /* or we would never see that the other side is gone */
        guardian g = {.control = ends[1], .signals = -1};
        guard(&g, child, fds, child_mask);
    }
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    *ret_pid = pid;
    *ret_fd = ends[0];
    return TCTL_OK;
}

void tctl_guard_kill_children(void)
{
    int64_t began = now_ms();
    while (reap(NULL) && now_ms() - began < GIVEN_UP_MS) {
        signal_children(NULL, SIGKILL);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}
