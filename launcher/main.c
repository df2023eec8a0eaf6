/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainctl: picks the subcommand and hands it its command line. Everything else is elsewhere.
 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/options.h"
#include "launcher/command.h"

static int unknown_command(const char *word)
{
    const char *names[64];
    size_t n = 0;
    for (; tctl_commands[n] != NULL && n < 64; n++)
        names[n] = tctl_commands[n]->name;
    const char *near = tctl_suggest(word, names, n);
    if (word[0] == '-')
        fprintf(stderr, "trainctl: unknown option '%s'\n", word);
    else if (near != NULL)
        fprintf(stderr, "trainctl: unknown command '%s', did you mean '%s'?\n", word, near);
    else
        fprintf(stderr, "trainctl: unknown command '%s'\n", word);
    fputs("Try 'trainctl --help'.\n", stderr);
    return TCTL_EXIT_USAGE;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    }
    return false;
}

/* A full pipe or disk behind standard output is a failure, not silence. */
static int finish_output(int exit_code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (exit_code == TCTL_EXIT_OK) {
            fputs("trainctl: cannot write to standard output\n", stderr);
            return TCTL_EXIT_FAILED;
        }
    }
    return exit_code;
}

static int run_command(const tctl_command *command, int argc, char **argv)
{
    const char *no_colour = getenv("NO_COLOR");
    tctl_command_line line = {.command = command, .program = argv[0]};
    line.colour = isatty(STDERR_FILENO) == 1 && (no_colour == NULL || no_colour[0] == '\0');
    line.arena = tctl_arena_create();
    if (line.arena == NULL) {
        fputs("trainctl: out of memory\n", stderr);
        return TCTL_EXIT_FAILED;
    }
    int exit_code = TCTL_EXIT_USAGE;
    if (tctl_cli_parse(&line, argc, argv))
        exit_code = command->run(&line);
    tctl_arena_destroy(line.arena);
    return exit_code;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that goes away is a failed write */
    if (argc < 2) {
        tctl_help_overview();
        return finish_output(TCTL_EXIT_USAGE);
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        puts("trainctl " TRAINCTL_VERSION);
        return finish_output(TCTL_EXIT_OK);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        tctl_help_overview();
        return finish_output(TCTL_EXIT_OK);
    }
    const tctl_command *command = tctl_command_find(word);
    if (command == NULL)
        return unknown_command(word);
    if (wants_help(argc, argv)) {
        tctl_help_command(command);
        return finish_output(TCTL_EXIT_OK);
    }
    return finish_output(run_command(command, argc, argv));
}
