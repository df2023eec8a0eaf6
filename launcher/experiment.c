/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a spec with the plugins of this installation, and showing what is wrong with it.
 */
#include "launcher/experiment.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

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
    tctl_plugins_exit_on_crash(ret->plugins, TCTL_EXIT_PLUGIN);
    tctl_plugin_finder finder = tctl_plugins_finder(ret->plugins);
    st = tctl_spec_load(request, &finder, &ret->spec, &diags);
    int exit_code = TCTL_EXIT_OK;
    if (st != TCTL_OK) {
        exit_code = show(line, &diags, ret->spec, json, exit_code_of(st, &diags));
    } else {
        st = tctl_json_digest(ret->spec->recipe, &ret->recipe_digest, &err);
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
