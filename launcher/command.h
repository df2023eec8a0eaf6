/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subcommands, and the command line that they read.
 *
 * One file per subcommand: launcher/cmd_NAME.c defines `const tctl_command tctl_cmd_NAME`, and that is all: the
 * build finds the file and puts it into the table. The option table drives parsing, `--help`, shell completion and the
 * tests that compare the man page with it.
 */
#ifndef TCTL_LAUNCHER_COMMAND_H
#define TCTL_LAUNCHER_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "host/worker.h"

/* One option of a subcommand. `--help` and `-h` are every command's and are not in the tables. */
typedef struct tctl_cli_option {
    const char *name;  /* "--seed" */
    const char *value; /* "N": what stands for its value in the help; NULL: a switch */
    const char *doc;   /* one phrase, lower case, no full stop */
    bool repeated;     /* may be given more than once */
    char letter;       /* 'q' for -q; 0: none */
} tctl_cli_option;

/* What the arguments are, for completion. */
enum {
    TCTL_ARG_NONE = 0,
    TCTL_ARG_RUN = 1,
    TCTL_ARG_SPEC = 2,
    TCTL_ARG_PATH = 3,
    TCTL_ARG_PLUGIN = 4,
    TCTL_ARG_COMMAND = 5
};

typedef struct tctl_command_line tctl_command_line;

typedef struct tctl_command {
    const char *name;
    const char *summary;            /* begins with a capital, no full stop */
    const char *const *usage;       /* what follows "trainctl NAME", one line each, NULL-ended */
    const tctl_cli_option *options; /* ended by a NULL name; NULL: none */
    const char *details;            /* paragraphs for --help; NULL: none */
    const char *examples;           /* lines as typed, each with two blanks in front */
    int rank;                       /* place in `trainctl --help`, ascending; 0: not shown */
    int argument;                   /* TCTL_ARG_… */
    uint32_t min_args, max_args;    /* max_args 0 with a min_args above it: any number */
    /* The exit code. What went wrong was already said, by tctl_cli_fail or tctl_cli_usage. */
    int (*run)(tctl_command_line *);
} tctl_command;

/* The table, by name; NULL-ended. Generated from the files' names. */
extern const tctl_command *const tctl_commands[];

struct tctl_command_line {
    const tctl_command *command;
    tctl_arena *arena; /* lives until the program ends */
    const char *program;
    uint32_t n_args;
    const char **args; /* NULL-ended */
    uint32_t n_given;
    struct {
        const tctl_cli_option *option;
        const char *value; /* NULL for a switch */
    } * given;
    bool colour; /* standard error is a terminal and NO_COLOR is not set */
};

/* Parses argv[2..] by the command's table. Returns false after a usage error was printed. */
bool tctl_cli_parse(tctl_command_line *, int argc, char *const *argv);

/* Asking for an option that the table lacks is a bug and stops the program. */
bool tctl_cli_has(const tctl_command_line *, const char *option);
const char *tctl_cli_value(const tctl_command_line *, const char *option); /* the last one; NULL: not given */
const char *const *tctl_cli_values(const tctl_command_line *,
                                   const char *option); /* NULL-ended, never NULL */
/* An integer in min..max into *ret (left alone if the option is not given); false after a usage error was printed. */
bool tctl_cli_number(const tctl_command_line *, const char *option, int64_t min, int64_t max, int64_t *ret);

/* Prints an error to standard error ("trainctl: …", notes, hint) and returns the exit code for its status. */
int tctl_cli_fail(const tctl_command_line *, const tctl_error *);
/* Prints a usage error and where help is to be had; returns TCTL_EXIT_USAGE. */
int tctl_cli_usage(const tctl_command_line *, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(2, 3);
/* The exit code for a status: see docs/exit-codes.md. */
int tctl_cli_exit_code(tctl_status);
/* A line to standard error, "trainctl: warning: …". */
void tctl_cli_warn(const tctl_command_line *, const char *fmt, ...) TCTL_COLD TCTL_PRINTF(2, 3);

/* Prints `value` as one line of canonical JSON to standard output and releases it. Returns `exit_code`, or
 * TCTL_EXIT_FAILED if it could not be written. NULL: out of memory. */
int tctl_cli_print_json(const tctl_command_line *, json_t *value, int exit_code);

/* Help. */
void tctl_help_overview(void);
void tctl_help_command(const tctl_command *);
/* By name; NULL if there is none. */
const tctl_command *tctl_command_find(const char *name);

#endif
