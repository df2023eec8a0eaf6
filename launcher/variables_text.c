/* SPDX-License-Identifier: Apache-2.0 */
/* The table of variables in words: for messages, and as Markdown for docs/determinism.md, which a test compares. */
#include <string.h>

#include "launcher/variables.h"

/* "'a' or 'b'" of "a|b". */
static void say_words(const char *words, bool first, tctl_buf *ret)
{
    while (words != NULL) {
        size_t length = strcspn(words, "|");
        tctl_buf_add_text(ret, first ? "" : " or ");
        if (length == 1 && *words == '#')
            tctl_buf_add_text(ret, "a number");
        else
            tctl_buf_add_format(ret, "'%.*s'", (int)length, words);
        first = false;
        words = words[length] == '|' ? words + length + 1 : NULL;
    }
}

void tctl_variable_say_allowed(const tctl_variable *v, tctl_buf *ret)
{
    const char *own = tctl_variable_value(v);
    if (own != NULL)
        tctl_buf_add_format(ret, "'%s'", own);
    say_words(v->allowed, own == NULL, ret);
}

/* ---- Markdown ------------------------------------------------------------------------------------------ */

static const struct {
    int32_t kind;
    const char *title, *words, *head;
} sections[] = {
    {TCTL_VARIABLE_FIXED, "Surroundings",
     "One value for every run. Shells have these for people, so what yours has is replaced; the manifest "
     "names it under\n"
     "`replaced`.",
     "value"},
    {TCTL_VARIABLE_THREADS, "Threads",
     "All of them are `resources: {threads}`: the count decides how sums are split. A count of your shell's "
     "is replaced\n"
     "and named on the terminal and in the manifest: the spec says how many.",
     NULL},
    {TCTL_VARIABLE_SEED, "Seeds",
     "32 bits each, derived from the spec's `seed`; what your shell has is replaced, and named.", NULL},
    {TCTL_VARIABLE_LIBRARY, "Libraries, pinned",
     "Set to the value here. If your shell has another value that is known to repeat, that one is kept, "
     "recorded, and\n"
     "used by `verify`; any other is refused (exit code 6), unless `--allow-env NAME` lets it pass. Not set "
     "at all with\n"
     "`determinism: {variables: false}`, nor with `unpin: [NAME]`: then your shell's value passes, whatever "
     "it is.",
     "value | also kept"},
    {TCTL_VARIABLE_CHOICE, "Libraries, not set",
     "Not set: the library chooses by the machine, which is what contract `machine` speaks of. A value of "
     "your shell's\n"
     "that is known to repeat is kept, recorded, and used by `verify`; any other is refused as above.",
     "kept"},
    {TCTL_VARIABLE_PASSED, "Passed",
     "As your shell has them, recorded by value; `verify` sets what was recorded.", NULL},
    {TCTL_VARIABLE_PLACE, "Places",
     "As your shell has them, recorded by value; `verify` takes them from its own shell, because they say "
     "where things\n"
     "lie on this machine.",
     NULL},
    {TCTL_VARIABLE_NAMED, "Named", "As your shell has them, recorded by name only: they say who and where.",
     NULL},
    {TCTL_VARIABLE_FAMILY, "Families",
     "A variable of these families that is in none of the tables above may change results, and nobody has "
     "looked: it is\n"
     "refused, unless `--allow-env NAME` lets it pass. Names that end in `_VERSION` are left outside "
     "instead, for\n"
     "container images set them.",
     NULL},
};

static void add_code_words(const char *words, tctl_buf *ret)
{
    const char *between = "";
    while (words != NULL) {
        size_t length = strcspn(words, "|");
        if (length == 1 && *words == '#')
            tctl_buf_add_format(ret, "%sany number", between);
        else
            tctl_buf_add_format(ret, "%s`%.*s`", between, (int)length, words);
        between = ", ";
        words = words[length] == '|' ? words + length + 1 : NULL;
    }
}

static void add_row(const tctl_variable *v, tctl_buf *ret)
{
    tctl_buf_add_format(ret, "| `%s` | ", v->name);
    if (v->kind == TCTL_VARIABLE_FIXED || v->kind == TCTL_VARIABLE_LIBRARY)
        tctl_buf_add_format(ret, "`%s` | ", v->value);
    if (v->kind == TCTL_VARIABLE_LIBRARY || v->kind == TCTL_VARIABLE_CHOICE) {
        add_code_words(v->allowed, ret);
        tctl_buf_add_text(ret, " | ");
    }
    tctl_buf_add_format(ret, "%s |\n", v->why);
}

void tctl_variables_reference(tctl_buf *ret)
{
    size_t n;
    const tctl_variable *table = tctl_variables(&n);
    for (size_t s = 0; s < sizeof sections / sizeof sections[0]; s++) {
        const char *head = sections[s].head;
        tctl_buf_add_format(ret, "%s### %s\n\n%s\n\n", s == 0 ? "" : "\n", sections[s].title,
                            sections[s].words);
        tctl_buf_add_format(ret, "| variable |%s%s%s why |\n|---|%s---|\n", head == NULL ? "" : " ",
                            head == NULL ? "" : head, head == NULL ? "" : " |",
                            head == NULL ? "" : (strchr(head, '|') != NULL ? "---|---|" : "---|"));
        for (size_t i = 0; i < n; i++) {
            if (table[i].kind == sections[s].kind)
                add_row(&table[i], ret);
        }
    }
}
