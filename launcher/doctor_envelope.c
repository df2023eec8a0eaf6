/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doctor's look at the envelope: what becomes of the variables that are set here, whether the libraries that act
 * inside the child are installed, and which knobs a spec turns off. A variable that is refused leaves no contract at
 * all where there is a command to run with it, and is a warning where there is none.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "launcher/doctor.h"
#include "launcher/envelope.h"

static const tctl_determinism defaults = {.variables = true};

/* ---- variables ------------------------------------------------------------------------------------------- */

static const char *reason_of(tctl_doctor *d, const tctl_variable *v)
{
    tctl_buf words = TCTL_BUF_INIT;
    tctl_variable_say_allowed(v, &words);
    const char *allowed = tctl_buf_text(&words);
    const char *reason =
        allowed != NULL && *allowed != '\0'
            ? tctl_arena_format(d->arena, "%s; results are known to repeat with %s", v->why, allowed)
        : v->kind == TCTL_VARIABLE_FAMILY
            ? tctl_arena_format(d->arena, "%s: it may change results, and nobody has looked", v->why)
            : v->why;
    tctl_buf_release(&words);
    return reason == NULL ? v->why : reason;
}

static void report_variable(tctl_doctor *d, const char *name, const tctl_variable *v, int fate)
{
    const char *fix = NULL;
    bool wanted = d->spec == NULL || d->spec->command != NULL;
    switch (fate) {
    case TCTL_FATE_REFUSED:
        fix = tctl_arena_format(d->arena, "unset %s, or run with --allow-env %s", name, name);
        tctl_doctor_add(d, "environment", d->spec != NULL ? TCTL_CONTRACT_OFF : TCTL_CONTRACT_EXACT, true,
                        fix, "no run starts with this %s: %s", name, reason_of(d, v));
        return;
    case TCTL_FATE_KEPT:
        tctl_doctor_add(d, "environment", TCTL_CONTRACT_EXACT, false, NULL,
                        "%s is kept and recorded: results repeat with it", name);
        return;
    case TCTL_FATE_REPLACED:
        if (!wanted || v->kind == TCTL_VARIABLE_FIXED)
            return; /* shells have it for people */
        fix = v->kind == TCTL_VARIABLE_SEED ? "the spec's 'seed' decides"
                                            : "write 'resources: {threads: N}' into the spec";
        tctl_doctor_add(d, "environment", TCTL_CONTRACT_EXACT, true, fix, "%s is replaced: %s", name, v->why);
        return;
    default:
        return;
    }
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_variables(tctl_doctor *d)
{
    const tctl_envelope_request request = {.determinism = d->spec != NULL ? &d->spec->determinism : &defaults,
                                           .secrets = d->spec != NULL ? d->spec->secrets : NULL};
    size_t n = 0, before = d->n, most = d->n + 64;
    while (environ[n] != NULL)
        n++;
    const char **sorted = tctl_arena_take_array(d->arena, n + 1, sizeof *sorted);
    for (size_t i = 0; sorted != NULL && i < n; i++)
        sorted[i] = environ[i];
    if (sorted != NULL)
        qsort(sorted, n, sizeof *sorted, by_text);
    for (size_t i = 0; sorted != NULL && i < n && d->n < most; i++) {
        size_t length = strcspn(sorted[i], "=");
        const tctl_variable *v;
        if (length == 0 || length > 200 || sorted[i][length] != '=')
            continue;
        const char *name = tctl_arena_copy(d->arena, sorted[i], length);
        int fate = tctl_envelope_fate(&request, sorted[i], length, sorted[i] + length + 1, &v);
        if (name != NULL && v != NULL)
            report_variable(d, name, v, fate);
    }
    if (d->n == before)
        tctl_doctor_add(d, "environment", TCTL_CONTRACT_EXACT, false, NULL,
                        "nothing is set that changes results");
}

/* ---- our libraries --------------------------------------------------------------------------------------- */

static bool is_installed(tctl_doctor *d, const char *name)
{
    char *real = realpath(d->program, NULL);
    const char *bin = real == NULL ? NULL : tctl_path_folder(d->arena, real);
    const char *prefix = bin == NULL ? NULL : tctl_path_folder(d->arena, bin);
    const char *path =
        prefix == NULL ? NULL : tctl_arena_format(d->arena, "%s/lib/trainctl/%s", prefix, name);
    free(real);
    return path != NULL && tctl_path_exists(path);
}

static void check_library(tctl_doctor *d, const char *check, const char *file, bool wanted,
                          const char *without)
{
    if (!wanted)
        tctl_doctor_add(d, check, TCTL_CONTRACT_EXACT, true, "leave it out of the spec's 'determinism'",
                        "the spec turns it off: %s", without);
    else if (is_installed(d, file))
        tctl_doctor_add(d, check, TCTL_CONTRACT_EXACT, false, NULL, "installed");
    else
        tctl_doctor_add(d, check, TCTL_CONTRACT_EXACT, true, "install trainctl anew", "not installed: %s",
                        without);
}

/* ---- knobs ----------------------------------------------------------------------------------------------- */

static void check_knobs(tctl_doctor *d)
{
    const tctl_determinism *k = &d->spec->determinism;
    const struct {
        const char *name;
        bool on, needs; /* the library that it is a knob of is on */
        const char *without;
    } knobs[] = {
        {"variables", k->variables, true, "libraries choose kernels by their own rules"},
        {"addresses", k->fixed_addresses, true, "what is ordered or seeded by addresses may differ"},
        {"sort_directories", k->sort_directories, k->interposer,
         "folders list their files in the disk's order"},
        {"libc_seeds", k->libc_seeds, k->interposer, "C and C++ programs may seed themselves from anything"},
        {"denormals", k->keep_denormals, k->interposer,
         "a library may switch subnormal numbers off unnoticed"},
        {"python_seeds", k->python_seeds, k->python, "Python and NumPy are not seeded before the first line"},
        {"torch", k->torch, k->python, "frameworks are in the modes in which they come"},
        {"state_check", k->state_check, k->python, "flags that are turned back are not noticed"},
        {"trace", k->trace > 0, k->python, "verify can't name the first step that differs"},
    };
    size_t n_off = 0;
    for (size_t i = 0; i < sizeof knobs / sizeof knobs[0]; i++) {
        if (knobs[i].on || !knobs[i].needs)
            continue;
        n_off++;
        tctl_doctor_add(d, "knobs", TCTL_CONTRACT_EXACT, true, "leave it out of the spec's 'determinism'",
                        "'%s' is off: %s", knobs[i].name, knobs[i].without);
    }
    for (const char *const *u = k->unpinned; u != NULL && *u != NULL && n_off < 64; u++, n_off++)
        tctl_doctor_add(d, "knobs", TCTL_CONTRACT_EXACT, true, "take it out of 'unpin'", "'%s' is not pinned",
                        *u);
    if (k->seeded_entropy)
        tctl_doctor_add(d, "knobs", TCTL_CONTRACT_EXACT, true,
                        "write 'entropy: count' where keys or TLS are made",
                        "'entropy: seeded': whatever the program takes for secret can be guessed");
    if (n_off == 0)
        tctl_doctor_add(d, "knobs", TCTL_CONTRACT_EXACT, false, NULL, "all on");
}

void tctl_doctor_envelope(tctl_doctor *d)
{
    const tctl_determinism *k = d->spec != NULL ? &d->spec->determinism : NULL;
    check_variables(d);
    if (d->spec != NULL && d->spec->command == NULL)
        return; /* the native engine needs none of the rest */
    check_library(
        d, "interposer", "libtrainctl-det.so", k == NULL || k->interposer,
        "order of directories, seeds of C programs and libraries' floating-point modes are not controlled");
    check_library(d, "python shim", "python/sitecustomize.py", k == NULL || k->python,
                  "seeds and deterministic modes of Python programs are theirs to set");
    if (k != NULL)
        check_knobs(d);
}
