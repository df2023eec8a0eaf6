/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--help`, printed from the tables.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/command.h"

#define MAX_COMMANDS 64
#define WIDTH        100

static size_t by_rank(const tctl_command *sorted[MAX_COMMANDS])
{
    size_t n = 0;
    for (size_t i = 0; tctl_commands[i] != NULL && n < MAX_COMMANDS; i++) {
        if (tctl_commands[i]->rank == 0)
            continue;
        size_t at = n++;
        for (; at > 0 && sorted[at - 1]->rank > tctl_commands[i]->rank; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = tctl_commands[i];
    }
    return n;
}

void tctl_help_overview(void)
{
    const tctl_command *sorted[MAX_COMMANDS];
    size_t n = by_rank(sorted);
    puts("trainctl runs training experiments so that they can be repeated bit for bit.\n\n"
         "Usage: trainctl COMMAND [OPTION...] [ARGUMENT...]\n");
    for (size_t i = 0; i < n; i++)
        printf("  %-9s %s\n", sorted[i]->name, sorted[i]->summary);
    puts("\nRUN is a run's id, a unique prefix of it, 'last', 'last~1' or a path to a run directory.\n"
         "'trainctl COMMAND --help' explains one command, with examples; 'trainctl --version' names this "
         "one.\n\n"
         "Examples:\n"
         "  trainctl run exp.yaml --set train.epochs=1\n"
         "  trainctl verify last");
}

static void print_option(const tctl_cli_option *o)
{
    char left[64];
    int n = o->letter != '\0' ? snprintf(left, sizeof left, "-%c, %s", o->letter, o->name)
                              : snprintf(left, sizeof left, "%s", o->name);
    if (o->value != NULL && n > 0 && (size_t)n < sizeof left)
        snprintf(left + n, sizeof left - (size_t)n, " %s", o->value);
    if (strlen(left) > 24)
        printf("  %s\n  %-24s %s%s\n", left, "", o->doc, o->repeated ? " (may be repeated)" : "");
    else
        printf("  %-24s %s%s\n", left, o->doc, o->repeated ? " (may be repeated)" : "");
}

/* Words in lines of at most WIDTH bytes; line breaks in the text count as blanks, empty lines stay. */
static void print_wrapped(const char *text)
{
    size_t column = 0;
    while (*text != '\0') {
        size_t blanks = strspn(text, " \n"), length = strcspn(text + blanks, " \n");
        bool paragraph = blanks > 1 && text[0] == '\n' && text[1] == '\n';
        if (length == 0)
            break;
        if (paragraph || (column > 0 && column + 1 + length > WIDTH)) {
            fputs(paragraph ? "\n\n" : "\n", stdout);
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column > 0 ? " " : "", (int)length, text + blanks);
        text += blanks + length;
    }
    putchar('\n');
}

void tctl_help_command(const tctl_command *command)
{
    for (size_t i = 0; command->usage[i] != NULL; i++)
        printf("%s trainctl %s%s%s\n", i == 0 ? "Usage:" : "      ", command->name,
               command->usage[i][0] != '\0' ? " " : "", command->usage[i]);
    printf("\n%s.\n", command->summary);
    if (command->details != NULL) {
        putchar('\n');
        print_wrapped(command->details);
    }
    puts("\nOptions:");
    for (const tctl_cli_option *o = command->options; o != NULL && o->name != NULL; o++)
        print_option(o);
    print_option(&(tctl_cli_option){.name = "--help", .doc = "this text", .letter = 'h'});
    size_t length = command->examples == NULL ? 0 : strlen(command->examples);
    while (length > 0 && command->examples[length - 1] == '\n')
        length--;
    if (length > 0)
        printf("\nExamples:\n%.*s\n", (int)length, command->examples);
}
