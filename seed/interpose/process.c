/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a process, its forks and its end.
 *
 * Identity: the first process of a run has id 0; the n-th child or program that a process starts has the first 8 bytes
 * of SHA-256("trainctl-process 1", the parent's id, "n"). It passes through fork in memory and through exec in the variable
 * TRAINCTL_PROCESS, whose value always has 16 digits, so that it moves no address on a stack. Threads that fork at
 * the same time race for the numbers; nothing can be done about that here.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

#define DOMAIN_PROCESS "trainctl-process 1"
#define UNSEEN         "unseen" /* a child that started where we do not look */

extern tctl_real __start_tctl_real[], __stop_tctl_real[]; /* made by the linker */

tctl_process tctl_this;

static _Atomic uint64_t n_children;    /* and programs */
static _Thread_local uint64_t fork_id; /* of the child that this thread is making */
static char *inherited_id; /* the digits in our environment, which children of libc's inherit; NULL: none */

/* ---- the functions behind ours -------------------------------------------------------------------------- */

void *tctl_real_find(tctl_real *real)
{
    int saved = errno;
    void *found = dlsym(RTLD_NEXT, real->name);
    atomic_store_explicit(&real->function, found, memory_order_relaxed);
    errno = saved;
    return found;
}

void tctl_real_find_all(void)
{
    for (tctl_real *real = __start_tctl_real; real < __stop_tctl_real; real++)
        tctl_real_find(real);
    dlerror(); /* those that this libc does not have: nobody is to see that message */
}

/* ---- identity ------------------------------------------------------------------------------------------- */

bool tctl_process_is_ours(void)
{
    return (pid_t)syscall(SYS_getpid) == tctl_this.pid;
}

void tctl_process_print_id(uint64_t id, char ret[TCTL_PROCESS_DIGITS + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < TCTL_PROCESS_DIGITS; i++)
        ret[i] = digits[id >> (60 - 4 * i) & 15];
    ret[TCTL_PROCESS_DIGITS] = '\0';
}

uint64_t tctl_process_next_id(void)
{
    char name[24];
    uint64_t n = atomic_fetch_add(&n_children, 1);
    snprintf(name, sizeof name, "%llu", (unsigned long long)n);
    return tctl_name_hash(DOMAIN_PROCESS, tctl_this.id, name);
}

void tctl_process_bequeath(uint64_t id)
{
    char text[TCTL_PROCESS_DIGITS + 1];
    if (inherited_id == NULL)
        return;
    tctl_process_print_id(id, text);
    memcpy(inherited_id, text, TCTL_PROCESS_DIGITS);
}

static void read_id(void)
{
    size_t length = strlen(TCTL_PROCESS_VARIABLE);
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        if (strncmp(*e, TCTL_PROCESS_VARIABLE, length) != 0 || strlen(*e) != length + TCTL_PROCESS_DIGITS)
            continue;
        inherited_id = *e + length;
        for (unsigned i = 0; i < TCTL_PROCESS_DIGITS; i++) {
            char c = inherited_id[i];
            uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                             : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                                                    : 0;
            tctl_this.id = tctl_this.id << 4 | digit;
        }
        return;
    }
}

/* ---- what the launcher said ----------------------------------------------------------------------------- */

/* The value of a knob in TRAINCTL_KNOBS is `value`; `fallback` where it says nothing. */
static bool knob_is(const char *name, const char *value, bool fallback)
{
    const char *knobs = getenv("TRAINCTL_KNOBS");
    size_t length = strlen(name);
    for (const char *at = knobs; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (n > length && strncmp(at, name, length) == 0 && at[length] == '=')
            return n - length - 1 == strlen(value) && strncmp(at + length + 1, value, n - length - 1) == 0;
        at += n + strspn(at + n, " ");
    }
    return fallback;
}

/* A decimal number, the whole text of it; room "base" has a reader of numbers, but it brings strtod with it. */
static bool read_seed(const char *text, uint64_t *ret)
{
    uint64_t value = 0;
    if (text == NULL || *text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        uint64_t digit = (uint64_t)(*text - '0');
        if (*text < '0' || *text > '9' || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

static void read_settings(void)
{
    tctl_process *p = &tctl_this;
    const char *report = getenv("TRAINCTL_REPORT");
    p->has_seed = read_seed(getenv("TRAINCTL_SEED"), &p->seed);
    p->sort = knob_is("sort_directories", "on", true);
    p->seed_libc = p->has_seed && knob_is("libc_seeds", "on", true);
    p->answer_entropy = p->has_seed && knob_is("entropy", "seeded", false);
    p->watch_fp = knob_is("denormals", "keep", true);
    if (report != NULL && report[0] == '/' && strlen(report) < sizeof p->report - sizeof "/interposer.jsonl")
        snprintf(p->report, sizeof p->report, "%s/interposer.jsonl", report);
    ssize_t n = readlink("/proc/self/exe", p->program, sizeof p->program - 1);
    p->program[n > 0 ? n : 0] = '\0';
}

/* ---- fork ----------------------------------------------------------------------------------------------- */

static void before_fork(void)
{
    tctl_directories_fork(true);
    tctl_objects_fork(true, false);
    fork_id = tctl_process_next_id();
}

static void after_fork_in_parent(void)
{
    tctl_objects_fork(false, false);
    tctl_directories_fork(false);
}

static void after_fork_in_child(void)
{
    int saved = errno;
    tctl_this.pid = (pid_t)syscall(SYS_getpid);
    tctl_this.id = fork_id;
    atomic_store(&n_children, 0);
    tctl_process_bequeath(tctl_name_hash(DOMAIN_PROCESS, fork_id, UNSEEN));
    tctl_objects_fork(false, true);
    tctl_directories_fork(false);
    tctl_streams_reset();
    tctl_report_reset();
    tctl_report_begin();
    errno = saved;
}

/* ---- start and end -------------------------------------------------------------------------------------- */

/* The loader runs this when the libraries that the program is linked with have been initialised, before the program's
 * own constructors. */
__attribute__((constructor)) static void start(void)
{
    int saved = errno;
    const tctl_fp fp = tctl_fp_default();
    tctl_real_find_all();
    read_settings();
    read_id();
    tctl_this.pid = (pid_t)syscall(SYS_getpid);
    tctl_process_bequeath(tctl_name_hash(DOMAIN_PROCESS, tctl_this.id, UNSEEN));
    tctl_streams_reset();
    tctl_report_begin();
    if (tctl_this.watch_fp)
        tctl_fp_restore(&fp, 0, tctl_this.program);
    if (tctl_this.seed_libc)
        tctl_seeds_start();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    errno = saved;
}

__attribute__((destructor)) static void finish(void)
{
    tctl_report_end("exit");
}

TCTL_REAL(_exit)
TCTL_REAL(_Exit)
TCTL_REAL(quick_exit)

TCTL_EXPORT void _exit(int status)
{
    if (tctl_process_is_ours())
        tctl_report_end("_exit");
    real__exit()(status);
    __builtin_unreachable();
}

TCTL_EXPORT void _Exit(int status)
{
    if (tctl_process_is_ours())
        tctl_report_end("_exit");
    real__Exit()(status);
    __builtin_unreachable();
}

/* Handlers of at_quick_exit still run; what they do is not in the report. */
TCTL_EXPORT void quick_exit(int status)
{
    tctl_report_end("quick_exit");
    real_quick_exit()(status);
    __builtin_unreachable();
}
