/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `trainctl log`: what a run's child said, or its metrics.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "launcher/runs.h"

#define FOLLOW_NS 100000000

/* Copies what is there from the file's current position. */
static tctl_status copy_rest(int fd, const char *path, tctl_error *err)
{
    char block[65536];
    ssize_t n;
    while ((n = read(fd, block, sizeof block)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return tctl_fail_errno(err, errno, "cannot read '%s'", path);
        tctl_status st = tctl_write_all(STDOUT_FILENO, block, (size_t)n, "standard output", err);
        if (st != TCTL_OK)
            return st;
    }
    return TCTL_OK;
}

static int show(const tctl_command_line *line, tctl_run *run, bool follow)
{
    tctl_error err = {0};
    tctl_status st = TCTL_OK;
    int fd = -1;
    const char *path =
        tctl_path_join(line->arena, run->path, tctl_cli_has(line, "--metrics") ? "metrics.jsonl" : "log.txt");
    const char *run_path = run->path;
    if (path == NULL)
        st = tctl_fail_memory(&err, 0);
    for (bool last_turn = false; st == TCTL_OK;) {
        if (fd < 0)
            fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && (errno != ENOENT || !follow))
            st = tctl_fail_errno(&err, errno, "cannot read '%s'", path);
        if (fd >= 0)
            st = copy_rest(fd, path, &err);
        if (!follow || last_turn)
            break;
        nanosleep(&(struct timespec){0, FOLLOW_NS}, NULL);
        tctl_run_release(run); /* what was written before the end is copied behind it */
        if (tctl_run_find(line->arena, "", run_path, run, &err) != TCTL_OK)
            st = err.code;
        last_turn = st == TCTL_OK && tctl_state_is_final(tctl_run_state(run));
    }
    if (fd >= 0)
        close(fd);
    return st == TCTL_OK ? TCTL_EXIT_OK : tctl_cli_fail(line, &err);
}

static int run(tctl_command_line *line)
{
    tctl_run found = TCTL_RUN_NONE;
    int exit_code = tctl_runs_find(line, line->args[0], &found);
    if (exit_code == TCTL_EXIT_OK)
        exit_code = show(line, &found,
                         tctl_cli_has(line, "--follow") && !tctl_state_is_final(tctl_run_state(&found)));
    tctl_run_release(&found);
    return exit_code;
}

static const char *const usage[] = {"RUN [--follow] [--metrics]", NULL};
static const tctl_cli_option options[] = {
    {.name = "--follow", .doc = "wait for more until the run ends", .letter = 'f'},
    {.name = "--metrics", .doc = "metrics.jsonl instead: one JSON object a line"},
    {.name = NULL},
};

extern const tctl_command tctl_cmd_log;
const tctl_command tctl_cmd_log = {
    .name = "log",
    .summary = "Print what a run's child said",
    .usage = usage,
    .options = options,
    .examples = "  trainctl log last --follow\n  trainctl log last --metrics | jq .values.test_accuracy",
    .rank = 60,
    .argument = TCTL_ARG_RUN,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
