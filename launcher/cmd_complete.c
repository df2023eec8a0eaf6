/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl complete WORD...`: what could stand for the last word, one candidate a line. For the shells' completion
 * scripts, which thereby know every option of the tables and can't be out of date.
 */
#include <stdio.h>
#include <string.h>

#include "host/plugins.h"
#include "launcher/experiment.h"
#include "launcher/runs.h"

static void offer(const char *candidate, const char *prefix)
{
    if (strncmp(candidate, prefix, strlen(prefix)) == 0)
        puts(candidate);
}

static void offer_commands(const char *prefix)
{
    for (size_t i = 0; tctl_commands[i] != NULL; i++) {
        if (tctl_commands[i]->rank != 0)
            offer(tctl_commands[i]->name, prefix);
    }
}

static void offer_options(const tctl_command *command, const char *prefix)
{
    for (const tctl_cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        offer(o->name, prefix);
    offer("--help", prefix);
}

static void offer_runs(tctl_command_line *line, const char *prefix)
{
    const char *store = NULL;
    tctl_run *runs = NULL;
    uint32_t n = 0;
    if (tctl_store_locate(line->arena, ".", false, &store, NULL) != TCTL_OK ||
        tctl_run_list(line->arena, store, &runs, &n, NULL) != TCTL_OK)
        return;
    for (uint32_t i = 0; i < n; i++) {
        offer(runs[i].id, prefix);
        tctl_run_release(&runs[i]);
    }
    if (n > 0)
        offer("last", prefix);
}

static void offer_plugins(tctl_command_line *line, const char *prefix)
{
    const char *program = NULL, *const *names = NULL;
    tctl_plugins *plugins = NULL;
    uint32_t n = 0;
    if (tctl_program_path(line->arena, &program, NULL) == TCTL_OK &&
        tctl_plugins_create(program, &plugins, NULL) == TCTL_OK &&
        tctl_plugins_names(plugins, line->arena, &names, &n, NULL) == TCTL_OK) {
        for (uint32_t i = 0; i < n; i++)
            offer(names[i], prefix);
    }
    tctl_plugins_destroy(plugins);
}

/* A line ":files PATTERN" leaves it to the shell. */
static int run(tctl_command_line *line)
{
    const char *last = line->n_args == 0 ? "" : line->args[line->n_args - 1];
    const tctl_command *command = line->n_args < 2 ? NULL : tctl_command_find(line->args[0]);
    if (line->n_args < 2)
        offer_commands(last);
    else if (command == NULL)
        return TCTL_EXIT_OK;
    else if (last[0] == '-')
        offer_options(command, last);
    else if (command->argument == TCTL_ARG_RUN)
        offer_runs(line, last);
    else if (command->argument == TCTL_ARG_PLUGIN)
        offer_plugins(line, last);
    else if (command->argument == TCTL_ARG_COMMAND)
        offer_commands(last);
    else if (command->argument == TCTL_ARG_SPEC)
        puts(":files *.yaml");
    else if (command->argument == TCTL_ARG_PATH)
        puts(":files *");
    return TCTL_EXIT_OK;
}

static const char *const usage[] = {"-- WORD...", NULL};

extern const tctl_command tctl_cmd_complete;
const tctl_command tctl_cmd_complete = {
    .name = "complete",
    .summary = "Print completions of the last word, for shells",
    .usage = usage,
    .examples = "  trainctl complete -- run --s",
    .max_args = 4096,
    .run = run,
};
