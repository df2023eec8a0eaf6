/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment variables that trainctl knows: what a child finds of each, and why. One table, which makes the
 * envelope, is what `trainctl doctor` explains, and is printed as Markdown into docs/determinism.md.
 */
#ifndef TCTL_LAUNCHER_VARIABLES_H
#define TCTL_LAUNCHER_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* What becomes of a variable. The order is that of the sections in the docs. */
enum {
    TCTL_VARIABLE_FIXED = 1,   /* one value; the user's is replaced: shells have it for people */
    TCTL_VARIABLE_THREADS = 2, /* the count of `resources: {threads}`; the user's is replaced */
    TCTL_VARIABLE_SEED = 3,    /* from the root seed; the user's is replaced. `value` names the stream */
    TCTL_VARIABLE_LIBRARY = 4, /* `value`, or what the user has if it is allowed; anything else is refused */
    TCTL_VARIABLE_CHOICE = 5,  /* not set, or what the user has if it is allowed; anything else is refused */
    TCTL_VARIABLE_PASSED = 6,  /* what the user has, recorded by value; `verify` sets what was recorded */
    TCTL_VARIABLE_PLACE = 7, /* what the user has, recorded by value; `verify` takes it from its own shell */
    TCTL_VARIABLE_NAMED = 8, /* what the user has, recorded by name only: it says who and where */
    TCTL_VARIABLE_DROPPED = 9, /* left outside, though its family would be refused */
    TCTL_VARIABLE_FAMILY = 10, /* a pattern: one of them that is not in the table is refused */
};

typedef struct tctl_variable {
    const char *name; /* a trailing '*' stands for any rest, a leading one for any beginning */
    int32_t kind;     /* TCTL_VARIABLE_… */
    const char *value;
    const char
        *allowed; /* validated values between '|', besides `value`; '#' is any decimal number, '*' anything */
    const char *why; /* a sentence: what depends on it. Begins with a small letter, no full stop */
} tctl_variable;

const tctl_variable *tctl_variables(size_t *ret_n);

/* What is known of a name; NULL: nothing, and it stays outside. */
const tctl_variable *tctl_variable_find(const char *name, size_t length);

/* True if this value repeats. Only for LIBRARY and CHOICE. */
bool tctl_variable_allows(const tctl_variable *, const char *value);

/* The value that a LIBRARY, FIXED or constant SEED variable has on this machine; NULL for the others. */
const char *tctl_variable_value(const tctl_variable *);

/* "':4096:8' or ':16:8'": the values that pass, as a message says it. */
void tctl_variable_say_allowed(const tctl_variable *, tctl_buf *ret);

/* The table as Markdown: what stands in docs/determinism.md. */
void tctl_variables_reference(tctl_buf *ret);

#endif
