/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof that a piece of code is quiet: it calls no malloc and no free, and makes no system call.
 *
 * The program that includes this has its own malloc and free, which every library in it calls; inside a quiet piece they
 * end the process. System calls are refused by a seccomp filter, which can't be taken off: so the piece runs in a
 * child (quiet_in_child), and the last thing of it is quiet_end. What the child says is on standard error.
 *
 * With a sanitizer, whose library has a malloc and system calls of its own, and where there is no seccomp (an emulator),
 * there is nothing to prove: QUIET_CANNOT.
 */
#ifndef TCTL_TESTS_QUIET_H
#define TCTL_TESTS_QUIET_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define QUIET_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUIET_SANITIZED 1
#endif
#ifndef QUIET_SANITIZED
#define QUIET_SANITIZED 0
#endif

enum { QUIET = 0, QUIET_CANNOT = 77, QUIET_MEMORY = 98, QUIET_SYSTEM_CALL = 99 };

static volatile bool quiet_inside;

static void quiet_fail(int code, const char *words)
{
    quiet_inside = false;
    ssize_t written = write(STDERR_FILENO, words, strlen(words));
    (void)written;
    _exit(code);
}

#if !QUIET_SANITIZED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *p);
void *memalign(size_t alignment, size_t size);

#define QUIET_SEEN __attribute__((visibility("default"))) /* by shared libraries and plugins too */

static void quiet_look(const char *words)
{
    if (quiet_inside)
        quiet_fail(QUIET_MEMORY, words);
}

QUIET_SEEN void *malloc(size_t size)
{
    quiet_look("malloc\n");
    return __libc_malloc(size);
}

QUIET_SEEN void *calloc(size_t n, size_t size)
{
    quiet_look("calloc\n");
    return __libc_calloc(n, size);
}

QUIET_SEEN void *realloc(void *p, size_t size)
{
    quiet_look("realloc\n");
    return __libc_realloc(p, size);
}

QUIET_SEEN void *memalign(size_t alignment, size_t size)
{
    quiet_look("memalign\n");
    return __libc_memalign(alignment, size);
}

QUIET_SEEN void *aligned_alloc(size_t alignment, size_t size)
{
    quiet_look("aligned_alloc\n");
    return __libc_memalign(alignment, size);
}

QUIET_SEEN int posix_memalign(void **ret, size_t alignment, size_t size)
{
    quiet_look("posix_memalign\n");
    void *p = __libc_memalign(alignment, size);
    if (p == NULL)
        return ENOMEM;
    *ret = p;
    return 0;
}

QUIET_SEEN void free(void *p)
{
    quiet_look("free\n");
    __libc_free(p);
}
#endif

static void quiet_caught(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    char words[] = "system call ___\n";
    for (int n = info->si_syscall, i = 14; i > 11; i--, n /= 10)
        words[i] = (char)('0' + n % 10);
    quiet_fail(QUIET_SYSTEM_CALL, words);
}

/* Allowed: `also` (-1: none), and what says that the child failed or ended. For all threads of the process. */
static bool quiet_forbid_system_calls(int also)
{
    const struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)also, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof rules / sizeof rules[0],
                                       .filter = (struct sock_filter *)(uintptr_t)rules};
    struct sigaction action = {.sa_sigaction = quiet_caught, .sa_flags = SA_SIGINFO};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* From here on the process may compute, and make system call `also`. */
static void quiet_begin(int also)
{
    if (QUIET_SANITIZED || !quiet_forbid_system_calls(also))
        _exit(QUIET_CANNOT);
    quiet_inside = true;
}

static void quiet_end(void)
{
    quiet_inside = false;
    _exit(QUIET);
}

/* Runs `body` in a child; what it ended with, 128 + signal of one that was killed. */
static int quiet_in_child(void (*body)(void *), void *arg)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        body(arg);
        _exit(EXIT_FAILURE); /* the body forgot its end */
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
