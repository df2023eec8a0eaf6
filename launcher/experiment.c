/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a spec with the plugins of this installation, and showing what is wrong with it.
 */
#include "launcher/experiment.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launcher/envelope.h"
#include "manifest/manifest.h"

tctl_status tctl_program_path(tctl_arena *arena, const char **ret, tctl_error *err)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0)
        return tctl_fail_errno(err, errno, "cannot tell where this program is");
    char *copy = tctl_arena_copy(arena, path, (size_t)n);
    if (copy == NULL)
        return tctl_fail_memory(err, (size_t)n);
    *ret = copy;
    return TCTL_OK;
}

const char *tctl_contract_name(int32_t contract)
{
    static const char *const names[] = {"unknown", "exact", "machine", "off"};
    return contract >= TCTL_CONTRACT_EXACT && contract <= TCTL_CONTRACT_OFF ? names[contract] : names[0];
}

/* The worst of all that was found: a plugin that can't be loaded is not a mistake of the spec's. */
static int exit_code_of(tctl_status st, const tctl_diags *diags)
{
    for (size_t i = 0; i < diags->n; i++) {
        if (diags->errors[i].code == TCTL_EPLUGIN)
            st = TCTL_EPLUGIN;
    }
    return tctl_cli_exit_code(st);
}

static int show(const tctl_command_line *line, tctl_diags *diags, const tctl_spec *spec, bool json,
                int exit_code)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_diags_render(diags, spec == NULL ? NULL : spec->text, spec == NULL ? 0 : spec->text_size,
                      line->colour, &text);
    if (tctl_buf_text(&text) != NULL)
        fputs(tctl_buf_text(&text), stderr);
    tctl_buf_release(&text);
    if (!json)
        return exit_code;
    json_t *result = tctl_diags_json(diags);
    if (result != NULL) {
        json_object_set_new(result, "state", json_string("failed"));
        json_object_set_new(result, "exit_code", json_integer(exit_code));
    }
    return tctl_cli_print_json(line, result, exit_code);
}

/* ---- libraries that crash while they are loaded ---------------------------------------------------------- */

static const int crash_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
static char loading[PATH_MAX]; /* for the handler, which has no arguments */

/* Only what is async-signal-safe. */
static void say_who_crashed(int signal)
{
    static const char before[] = "trainctl: error: plugin '", behind[] = "' crashed while it was loaded\n";
    (void)signal;
    (void)!write(STDERR_FILENO, before, sizeof before - 1);
    (void)!write(STDERR_FILENO, loading, strlen(loading));
    (void)!write(STDERR_FILENO, behind, sizeof behind - 1);
    _exit(TCTL_EXIT_PLUGIN);
}

static void note_loading(void *arg, const char *path)
{
    (void)arg;
    snprintf(loading, sizeof loading, "%s", path);
}

static void handle_crashes(void (*handler)(int))
{
    for (size_t i = 0; i < sizeof crash_signals / sizeof crash_signals[0]; i++)
        signal(crash_signals[i], handler);
}

int tctl_experiment_load(const tctl_command_line *line, const tctl_spec_request *request, bool json,
                         tctl_experiment *ret)
{
    tctl_error err = {0};
    tctl_diags diags = {0};
    const char *program = NULL;
    *ret = (tctl_experiment){0};
    tctl_status st = tctl_program_path(line->arena, &program, &err);
    if (st == TCTL_OK)
        st = tctl_plugins_create(program, &ret->plugins, &err);
    if (st != TCTL_OK)
        return tctl_cli_fail(line, &err);
    tctl_plugin_finder finder = tctl_plugins_finder(ret->plugins);
    tctl_plugins_watch(ret->plugins, note_loading, NULL);
    handle_crashes(say_who_crashed);
    st = tctl_spec_load(request, &finder, &ret->spec, &diags);
    handle_crashes(SIG_DFL);
    int exit_code = TCTL_EXIT_OK;
    if (st != TCTL_OK) {
        exit_code = show(line, &diags, ret->spec, json, exit_code_of(st, &diags));
    } else {
        st = tctl_json_digest(ret->spec->recipe, &ret->recipe_digest, &err);
        if (st == TCTL_OK)
            st = tctl_envelope_check_unpinned(&ret->spec->determinism, &err);
        exit_code = st == TCTL_OK ? TCTL_EXIT_OK : tctl_cli_fail(line, &err);
    }
    tctl_diags_release(&diags);
    return exit_code;
}

void tctl_experiment_release(tctl_experiment *experiment)
{
    tctl_spec_destroy(experiment->spec);
    tctl_plugins_destroy(experiment->plugins);
    *experiment = (tctl_experiment){0};
}
