/* SPDX-License-Identifier: Apache-2.0 */
/* See conform.h: the list of checks, each in a child of its own. */
#include "host/conform.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/conform_options.h"
#include "host/conform_probe.h"
#include "host/surroundings.h"
#include "trainctl/ext/state.h"

#define DEFAULT_SECONDS 60
#define MAX_FAILURES    64 /* allocations that are made to fail, one after the other */

/* What a check leaves in memory that parent and child share. */
typedef struct outcome {
    int32_t finished, result;
    char detail[1024];
} outcome;

typedef struct suite {
    const tctl_conform_request *request;
    const tctl_plugin *plugin;
    const tctl_probe *probe; /* NULL: can only be made and destroyed */
    outcome *shared;
    const char *override;       /* of the check under way */
    tctl_trial *first, *second; /* room for two trials; large, so not on the stack */
    uint32_t n_failed;
} suite;

static void TCTL_PRINTF(3, 4) end(suite *s, int result, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->shared->detail, sizeof s->shared->detail, fmt, ap);
    va_end(ap);
    s->shared->result = result;
    s->shared->finished = 1;
}

/* ---- trials ------------------------------------------------------------------------------------------ */

static tctl_trial *prepare(const suite *s, tctl_trial *t)
{
    memset(t, 0, sizeof *t);
    t->request = s->request;
    return t;
}

/* Runs both and ends the check if one failed or they differ. `claim` 0: equal bits are demanded in any case. */
static void compare(suite *s, uint32_t claim)
{
    tctl_error err;
    if (tctl_trial_run(s->first, s->probe, &err)) {
        end(s, TCTL_CHECK_FAILED, "%s", err.message);
        return;
    }
    if (tctl_trial_run(s->second, s->probe, &err)) {
        /* Another value of an option may be refused, as long as it is refused in words. */
        bool refused =
            s->override && (err.code == TCTL_ESPEC || err.code == TCTL_EINVAL || err.code == TCTL_ENOMEM);
        end(s, refused ? TCTL_CHECK_SKIPPED : TCTL_CHECK_FAILED, "%s%s", refused ? "refused: " : "",
            err.message);
        return;
    }
    uint32_t i = 0;
    while (i < s->first->n &&
           memcmp(&s->first->digests[i], &s->second->digests[i], sizeof s->first->digests[i]) == 0)
        i++;
    if (s->first->n != s->second->n)
        end(s, TCTL_CHECK_FAILED, "%u %ss instead of %u", s->second->n, s->first->unit, s->first->n);
    else if (i == s->first->n)
        end(s, TCTL_CHECK_OK, "%s", "");
    else if (claim && !(s->plugin->claims & claim))
        end(s, TCTL_CHECK_SKIPPED, "%s %u differs, and the plugin does not claim otherwise", s->first->unit,
            i);
    else
        end(s, TCTL_CHECK_FAILED, "%s %u differs", s->first->unit, i);
}

/* ---- checks ------------------------------------------------------------------------------------------ */

static void check_create(suite *s)
{
    tctl_error err;
    tctl_trial *t = prepare(s, s->first);
    if (tctl_trial_run(t, NULL, &err)) {
        end(s, TCTL_CHECK_FAILED, "%s", err.message);
        return;
    }
    s->plugin->destroy(NULL);
    if (t->memory.n_blocks)
        end(s, TCTL_CHECK_FAILED, "destroy leaves %llu blocks with %llu bytes of the host's memory",
            (unsigned long long)t->memory.n_blocks, (unsigned long long)t->memory.bytes);
    else
        end(s, TCTL_CHECK_OK, "%s", "");
}

static void check_surroundings(suite *s)
{
    tctl_surroundings before;
    tctl_error err;
    if (tctl_surroundings_capture(&before, &err) || tctl_trial_run(prepare(s, s->first), s->probe, &err) ||
        tctl_surroundings_check(&before, "it", &err))
        end(s, TCTL_CHECK_FAILED, "%s", err.message);
    else if (s->first->memory.n_blocks)
        end(s, TCTL_CHECK_FAILED, "%llu blocks with %llu bytes of the host's memory are left",
            (unsigned long long)s->first->memory.n_blocks, (unsigned long long)s->first->memory.bytes);
    else
        end(s, TCTL_CHECK_OK, "%s", "");
}

/* Again, with the same stage and with another one, and with other bytes in the memory that is to be written: what
 * stays unwritten shows. */
static void check_again(suite *s)
{
    prepare(s, s->first)->fill = 0xa5;
    s->first->twice = true;
    prepare(s, s->second)->fill = 0x3c;
    compare(s, TCTL_SAME_RUNS);
}

static void check_reversed(suite *s)
{
    prepare(s, s->first);
    prepare(s, s->second)->reversed = true;
    compare(s, TCTL_SAME_THREADS);
}

static void check_two_threads(suite *s)
{
    prepare(s, s->first);
    prepare(s, s->second)->threads = 2;
    compare(s, TCTL_SAME_THREADS);
}

static void check_eight_threads(suite *s)
{
    prepare(s, s->first);
    prepare(s, s->second)->threads = 8;
    s->second->reversed = true;
    compare(s, TCTL_SAME_THREADS);
}

static void check_resume(suite *s)
{
    if (!tctl_plugin_extension(s->plugin, TCTL_STATE_ID)) {
        if (s->plugin->flags & TCTL_PLUGIN_REMEMBERS)
            end(s, TCTL_CHECK_SKIPPED, "it remembers, but has no '%s': no checkpoints with it",
                TCTL_STATE_ID);
        else
            end(s, TCTL_CHECK_SKIPPED, "it remembers nothing");
        return;
    }
    prepare(s, s->first);
    prepare(s, s->second)->resume = true;
    compare(s, TCTL_SAME_RESUME);
}

static void check_option(suite *s)
{
    prepare(s, s->first);
    prepare(s, s->second)->override = s->override;
    compare(s, 0);
}

/* The trial with allocation k failing; false if the check ended. */
static bool fail_one(suite *s, uint64_t k, uint64_t n)
{
    tctl_error err;
    tctl_trial *t = prepare(s, s->second);
    t->fail_allocation = k;
    tctl_status status = tctl_trial_run(t, s->probe, &err);
    unsigned long long which = k, of = n;
    if (status && status != TCTL_ENOMEM)
        end(s, TCTL_CHECK_FAILED, "allocation %llu of %llu failing gives '%s' (%s) instead of out of memory",
            which, of, err.message, tctl_status_text(status));
    else if (status && !err.message[0])
        end(s, TCTL_CHECK_FAILED, "allocation %llu of %llu failing gives no words", which, of);
    else if (t->memory.n_blocks)
        end(s, TCTL_CHECK_FAILED, "allocation %llu of %llu failing leaves %llu blocks behind", which, of,
            (unsigned long long)t->memory.n_blocks);
    else if (!status && memcmp(s->first->digests, t->digests, sizeof t->digests) != 0)
        end(s, TCTL_CHECK_FAILED, "allocation %llu of %llu failing changes the result", which, of);
    else
        return true;
    return false;
}

static void check_allocations(suite *s)
{
    tctl_error err;
    if (tctl_trial_run(prepare(s, s->first), s->probe, &err)) {
        end(s, TCTL_CHECK_FAILED, "%s", err.message);
        return;
    }
    uint64_t n = s->first->memory.n_calls;
    for (uint64_t k = 1; k <= n && k <= MAX_FAILURES; k++) {
        if (!fail_one(s, k, n))
            return;
    }
    if (n == 0)
        end(s, TCTL_CHECK_SKIPPED, "it takes no memory from the host");
    else
        end(s, TCTL_CHECK_OK, "%s", "");
}

/* ---- running them ------------------------------------------------------------------------------------ */

static void describe_death(suite *s, int status, uint32_t seconds)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        end(s, TCTL_CHECK_FAILED, "not done after %u s", seconds);
    else if (WIFSIGNALED(status))
        end(s, TCTL_CHECK_FAILED, "crashed: %s", strsignal(WTERMSIG(status)));
    else
        end(s, TCTL_CHECK_FAILED, "ended the process with exit status %d",
            WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static tctl_status run_check(suite *s, const char *name, void (*check)(suite *), tctl_error *err)
{
    uint32_t seconds = s->request->seconds ? s->request->seconds : DEFAULT_SECONDS;
    int status = 0;
    memset(s->shared, 0, sizeof *s->shared);
    (void)fflush(NULL); /* or the child would write it a second time */
    pid_t child = fork();
    if (child < 0)
        return tctl_fail_errno(err, errno, "cannot start a process for the check '%s'", name);
    if (child == 0) {
        static const int deadly[] = {SIGALRM, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
        for (size_t i = 0; i < TCTL_COUNT_OF(deadly); i++)
            (void)signal(deadly[i], SIG_DFL); /* whatever this process does about them */
        (void)alarm(seconds);
        check(s);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR)
            return tctl_fail_errno(err, errno, "cannot wait for the check '%s'", name);
    }
    if (!s->shared->finished || WIFSIGNALED(status))
        describe_death(s, status, seconds);
    s->n_failed += s->shared->result == TCTL_CHECK_FAILED;
    s->request->report(s->request->report_arg, name, s->shared->result, s->shared->detail);
    return TCTL_OK;
}

static tctl_status run_options(suite *s, tctl_arena *arena, tctl_error *err)
{
    tctl_status status = TCTL_OK;
    for (uint32_t i = 0; i < s->plugin->n_options && !status; i++) {
        const char *const *values = NULL;
        uint32_t n = 0;
        status = tctl_conform_values(arena, s->plugin, i, &values, &n, err);
        for (uint32_t k = 0; k < n && !status; k++) {
            const char *name = tctl_arena_format(arena, "%s, which claims to change nothing", values[k]);
            s->override = values[k];
            status = name ? run_check(s, name, check_option, err) : tctl_fail_memory(err, 0);
            s->override = NULL;
        }
    }
    return status;
}

static tctl_status run_all(suite *s, tctl_arena *arena, tctl_error *err)
{
    static const struct {
        const char *name;
        void (*check)(suite *);
        bool needs_probe;
    } checks[] = {
        {"create and destroy", check_create, false},
        {"each host allocation failing once", check_allocations, false},
        {"surroundings and memory as before", check_surroundings, false},
        {"the same work twice", check_again, true},
        {"in reverse order", check_reversed, true},
        {"with 2 threads", check_two_threads, true},
        {"with 8 threads", check_eight_threads, true},
        {"saved and loaded in the middle", check_resume, true},
    };
    tctl_status status = TCTL_OK;
    for (size_t i = 0; i < TCTL_COUNT_OF(checks) && !status; i++) {
        if (s->probe || !checks[i].needs_probe)
            status = run_check(s, checks[i].name, checks[i].check, err);
        if (i == 0 && s->n_failed)
            return status; /* a stage that cannot be made fails all that follow, for the same reason */
    }
    if (!s->probe)
        s->request->report(s->request->report_arg, TCTL_CHECK_WORK, TCTL_CHECK_SKIPPED,
                           "this suite knows sources, transforms, optimizers, schedules and hooks");
    return status || !s->probe ? status : run_options(s, arena, err);
}

/* Options that cannot be read are the user's matter, not a failed check. */
static tctl_status read_options(const tctl_conform_request *request, tctl_error *err)
{
    tctl_single single;
    const tctl_single_request one = {
        .plugins = request->plugins, .use = request->use, .folder = request->folder, .set = request->set};
    tctl_status status = tctl_single_read(&one, &single, err);
    tctl_single_close(&single);
    if (status == TCTL_ESPEC) { /* there is no file to point into */
        err->loc = (tctl_loc){0};
        err->n_notes = 0;
        tctl_note(err, "options are given with --set NAME=VALUE");
    }
    return status;
}

tctl_status tctl_conform_run(const tctl_conform_request *request, uint32_t *ret_failed, tctl_error *err)
{
    const tctl_loaded *loaded = NULL;
    const size_t room = sizeof(outcome) + 2 * sizeof(tctl_trial);
    tctl_status status = tctl_plugins_load(request->plugins, request->use, request->folder, &loaded, err);
    if (!status)
        status = read_options(request, err);
    if (status)
        return status;
    tctl_arena *arena = tctl_arena_create();
    void *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!arena || memory == MAP_FAILED) {
        tctl_arena_destroy(arena);
        return tctl_fail_memory(err, room);
    }
    suite s = {.request = request, .plugin = loaded->plugin, .probe = tctl_probe_for(loaded->plugin)};
    s.first = memory;
    s.second = s.first + 1;
    s.shared = (outcome *)(void *)(s.second + 1);
    status = run_all(&s, arena, err);
    *ret_failed = s.n_failed;
    (void)munmap(memory, room);
    tctl_arena_destroy(arena);
    return status;
}
