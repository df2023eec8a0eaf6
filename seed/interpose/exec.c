/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec, posix_spawn, system and popen: the next program gets an id, a report of this one is written before it is gone,
 * and a program that will not load the interposer is named. The program's own environment is passed on as it is, but
 * for TRAINCTL_PROCESS, and for LD_PRELOAD where the next program's loader would stumble over our library.
 *
 * After vfork the child runs in its parent's memory: nothing here allocates but by mmap, and nothing of the parent's
 * is reported. What a list of arguments or variables needs beyond a page of stack is mapped, and stays mapped in a
 * vfork's parent; such lists are rare.
 */
#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

TCTL_REAL(execve)
TCTL_REAL(execvpe)
TCTL_REAL(fexecve)
TCTL_REAL(execveat)
TCTL_REAL(posix_spawn)
TCTL_REAL(posix_spawnp)
TCTL_REAL(system)
TCTL_REAL(popen)

#define OUR_NAME "libtrainctl-det.so"
#define PRELOAD  "LD_PRELOAD="

enum { ON_STACK = 256 };

/* ---- the environment of the next program ---------------------------------------------------------------- */

typedef struct block {
    char *fixed[ON_STACK];
    char **list;
    size_t mapped; /* bytes, if not `fixed` */
    char id[sizeof TCTL_PROCESS_VARIABLE + TCTL_PROCESS_DIGITS];
    char preload[PATH_MAX];
} block;

static size_t length_of(char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* LD_PRELOAD without our library; false if that is too long to be written. */
static bool without_us(const char *entry, char *ret, size_t room)
{
    size_t at = strlen(PRELOAD);
    memcpy(ret, PRELOAD, at + 1);
    for (const char *item = entry + at; *item != '\0';) {
        size_t n = strcspn(item, ": "), us = strlen(OUR_NAME);
        bool is_us = n >= us && strncmp(item + n - us, OUR_NAME, us) == 0;
        if (!is_us && n > 0) {
            if (at + n + 2 > room)
                return false;
            if (ret[at - 1] != '=')
                ret[at++] = ':';
            memcpy(ret + at, item, n);
            at += n;
            ret[at] = '\0';
        }
        item += n + (item[n] != '\0');
    }
    return true;
}

static bool carries_us(char *const *envp)
{
    for (; envp != NULL && *envp != NULL; envp++) {
        if (starts_with(*envp, PRELOAD))
            return strstr(*envp, OUR_NAME) != NULL;
    }
    return false;
}

/* `envp` with the next program's id; `envp` itself if it does not carry us or there is no room. */
static char *const *make_block(block *b, char *const *envp, uint64_t id, bool drop_preload)
{
    size_t n = length_of(envp), at = 0;
    char digits[TCTL_PROCESS_DIGITS + 1];
    b->list = b->fixed;
    b->mapped = 0;
    if (n + 2 > ON_STACK) {
        b->mapped = (n + 2) * sizeof *b->list;
        b->list = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->list == MAP_FAILED) {
            b->mapped = 0;
            return envp;
        }
    }
    tctl_process_print_id(id, digits);
    memcpy(b->id, TCTL_PROCESS_VARIABLE, sizeof TCTL_PROCESS_VARIABLE);
    memcpy(b->id + sizeof TCTL_PROCESS_VARIABLE - 1, digits, sizeof digits);
    for (size_t i = 0; i < n; i++) {
        if (starts_with(envp[i], TCTL_PROCESS_VARIABLE))
            continue;
        bool changed = drop_preload && starts_with(envp[i], PRELOAD) &&
                       without_us(envp[i], b->preload, sizeof b->preload);
        b->list[at++] = changed ? b->preload : envp[i];
    }
    b->list[at++] = b->id;
    b->list[at] = NULL;
    return b->list;
}

static void release(const block *b)
{
    int saved = errno;
    if (b->mapped > 0)
        munmap(b->list, b->mapped);
    errno = saved;
}

/* ---- what is said of it --------------------------------------------------------------------------------- */

/* Finds a program as execvp does: `ret` has the path, or is empty. */
static void search(const char *file, char ret[PATH_MAX])
{
    const char *folders = getenv("PATH");
    size_t length = strlen(file);
    ret[0] = '\0';
    if (length >= PATH_MAX || length == 0)
        return;
    if (strchr(file, '/') != NULL) {
        memcpy(ret, file, length + 1);
        return;
    }
    for (const char *item = folders == NULL ? "/bin:/usr/bin" : folders;;) {
        size_t n = strcspn(item, ":");
        if (n + length + 2 < PATH_MAX) {
            memcpy(ret, item, n);
            ret[n] = '/';
            memcpy(ret + n + (n > 0), file, length + 1);
            if (access(ret, X_OK) == 0)
                return;
        }
        if (item[n] == '\0')
            break;
        item += n + 1;
    }
    ret[0] = '\0';
}

/* Names a program that will be outside. */
static tctl_target announce(const char *path, char *const *envp)
{
    tctl_target target = {0};
    int saved = errno;
    if (path != NULL && *path != '\0')
        target = tctl_target_examine(path, 0);
    if (target.found && target.what != NULL)
        tctl_report_event(target.what, path, target.detail);
    else if (target.found && !carries_us(envp))
        tctl_report_event("without-preload", path, "it was given an environment without our LD_PRELOAD");
    errno = saved;
    return target;
}

/* ---- exec ----------------------------------------------------------------------------------------------- */

/* `call` may use `env`. A failed exec comes back, and the process goes on as if nothing had been. */
#define EXEC_BODY(path, envp, call)                                                                          \
    block b;                                                                                                 \
    if (tctl_this.pid == 0)                                                                                  \
        return call(envp);                                                                                   \
    tctl_target target = announce(path, envp);                                                               \
    char *const *env = envp;                                                                                 \
    b.mapped = 0;                                                                                            \
    if (carries_us(envp))                                                                                    \
        env = make_block(&b, envp, tctl_process_next_id(), target.drop_preload);                             \
    if (target.found && tctl_process_is_ours())                                                              \
        tctl_report_end("exec");                                                                             \
    int status = call(env);                                                                                  \
    release(&b);                                                                                             \
    return status

static int exec_path(const char *path, char *const *argv, char *const *envp)
{
#define CALL(env) real_execve()(path, argv, env)
    EXEC_BODY(path, envp, CALL);
#undef CALL
}

static int exec_file(const char *file, char *const *argv, char *const *envp)
{
    char found[PATH_MAX];
    search(file, found);
#define CALL(env) real_execvpe()(file, argv, env)
    EXEC_BODY(found, envp, CALL);
#undef CALL
}

TCTL_EXPORT int execve(const char *path, char *const *argv, char *const *envp)
{
    return exec_path(path, argv, envp);
}

TCTL_EXPORT int execv(const char *path, char *const *argv)
{
    return exec_path(path, argv, environ);
}

TCTL_EXPORT int execvpe(const char *file, char *const *argv, char *const *envp)
{
    return exec_file(file, argv, envp);
}

TCTL_EXPORT int execvp(const char *file, char *const *argv)
{
    return exec_file(file, argv, environ);
}

static void path_of_descriptor(int fd, char ret[32])
{
    snprintf(ret, 32, "/proc/self/fd/%d", fd);
}

TCTL_EXPORT int fexecve(int fd, char *const *argv, char *const *envp)
{
    char path[32];
    path_of_descriptor(fd, path);
#define CALL(env) real_fexecve()(fd, argv, env)
    EXEC_BODY(path, envp, CALL);
#undef CALL
}

TCTL_EXPORT int execveat(int folder, const char *path, char *const *argv, char *const *envp, int flags)
{
    char descriptor[32] = "";
    const char *shown = path;
    if (*path == '\0') {
        path_of_descriptor(folder, descriptor);
        shown = descriptor;
    }
#define CALL(env) real_execveat()(folder, path, argv, env, flags)
    EXEC_BODY(shown, envp, CALL);
#undef CALL
}

/* ---- execl and its family: the arguments as a list ------------------------------------------------------ */

typedef struct arguments {
    char *fixed[ON_STACK];
    char **list;
    size_t mapped;
} arguments;

/* `ap` stands behind the first argument and, afterwards, behind the NULL. */
static bool collect(arguments *a, const char *first, size_t n, va_list ap)
{
    a->list = a->fixed;
    a->mapped = 0;
    if (n + 1 > ON_STACK) {
        a->mapped = (n + 1) * sizeof *a->list;
        a->list = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (a->list == MAP_FAILED) {
            errno = ENOMEM;
            return false;
        }
    }
    a->list[0] = (char *)(uintptr_t)first;
    for (size_t i = 1; i <= n; i++)
        a->list[i] = first == NULL ? NULL : va_arg(ap, char *);
    return true;
}

/* The arguments before the NULL; 0 if the first is NULL. */
static size_t count(const char *first, va_list ap)
{
    size_t n = 0;
    for (const char *arg = first; arg != NULL; arg = va_arg(ap, const char *))
        n++;
    return n;
}

#define EXECL_BODY(call, envp)                                                                               \
    va_list ap;                                                                                              \
    arguments a;                                                                                             \
    va_start(ap, first);                                                                                     \
    size_t n = count(first, ap);                                                                             \
    va_end(ap);                                                                                              \
    va_start(ap, first);                                                                                     \
    bool good = collect(&a, first, n, ap);                                                                   \
    char *const *env = envp;                                                                                 \
    va_end(ap);                                                                                              \
    int status = good ? call(path, a.list, env) : -1;                                                        \
    int saved = errno;                                                                                       \
    if (good && a.mapped > 0)                                                                                \
        munmap(a.list, a.mapped);                                                                            \
    errno = saved;                                                                                           \
    return status

TCTL_EXPORT int execl(const char *path, const char *first, ...)
{
    EXECL_BODY(exec_path, environ);
}

TCTL_EXPORT int execlp(const char *path, const char *first, ...)
{
    EXECL_BODY(exec_file, environ);
}

TCTL_EXPORT int execle(const char *path, const char *first, ...)
{
    EXECL_BODY(exec_path, va_arg(ap, char *const *));
}

/* ---- posix_spawn, system, popen ------------------------------------------------------------------------- */

TCTL_EXPORT int posix_spawn(pid_t *restrict ret, const char *restrict path,
                            const posix_spawn_file_actions_t *restrict actions,
                            const posix_spawnattr_t *restrict attributes, char *const *restrict argv,
                            char *const *restrict envp)
{
    block b = {.mapped = 0};
    char *const *env = envp;
    if (tctl_this.pid != 0) {
        tctl_target target = announce(path, envp);
        if (carries_us(envp))
            env = make_block(&b, envp, tctl_process_next_id(), target.drop_preload);
    }
    int status = real_posix_spawn()(ret, path, actions, attributes, argv, env);
    release(&b);
    return status;
}

TCTL_EXPORT int posix_spawnp(pid_t *restrict ret, const char *restrict file,
                             const posix_spawn_file_actions_t *restrict actions,
                             const posix_spawnattr_t *restrict attributes, char *const *restrict argv,
                             char *const *restrict envp)
{
    block b = {.mapped = 0};
    char path[PATH_MAX];
    char *const *env = envp;
    if (tctl_this.pid != 0) {
        search(file, path);
        tctl_target target = announce(path, envp);
        if (carries_us(envp))
            env = make_block(&b, envp, tctl_process_next_id(), target.drop_preload);
    }
    int status = real_posix_spawnp()(ret, file, actions, attributes, argv, env);
    release(&b);
    return status;
}

/* These start /bin/sh with our own environment, inside libc. */
TCTL_EXPORT int system(const char *command)
{
    const char *volatile given = command; /* NULL asks whether there is a shell */
    if (given != NULL && tctl_this.pid != 0)
        tctl_process_bequeath(tctl_process_next_id());
    return real_system()(command);
}

TCTL_EXPORT FILE *popen(const char *command, const char *mode)
{
    if (tctl_this.pid != 0)
        tctl_process_bequeath(tctl_process_next_id());
    return real_popen()(command, mode);
}
