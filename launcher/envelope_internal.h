/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the envelope share. */
#ifndef TCTL_LAUNCHER_ENVELOPE_INTERNAL_H
#define TCTL_LAUNCHER_ENVELOPE_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/resource.h>

#include "launcher/envelope.h"

/* The child's limit: at least Linux' default, at most what is permitted; a larger one of the user's stays, for programs
 * that need it. With the record of an earlier envelope, the one that is recorded. */
struct rlimit tctl_envelope_stack_limit(const json_t *recorded);

/* The soft limits of this process, with the child's stack and core dumps: {name: "8388608" or "unlimited"}. */
json_t *tctl_envelope_limits_json(const struct rlimit *stack);

/* ---- the environment that is being made (envelope_build.c) ------------------------------------------------ */

enum { TCTL_ENVELOPE_MAX_VARIABLES = 1024 };

typedef struct tctl_envelope_builder {
    tctl_arena *arena;
    const tctl_envelope_request *request;
    const char **variables;
    size_t n;
    const char **notes;
    size_t n_notes;
    json_t *values, *names, *secrets, *replaced, *kept, *allowed;
    bool failed;
} tctl_envelope_builder;

/* The value of `name` in an environment, or NULL. */
const char *tctl_envelope_lookup(const char *const *from, const char *name);
bool tctl_envelope_is_among(const char *name, const char *const *list);
bool tctl_envelope_is_text_in(const json_t *list, const char *text);
int tctl_envelope_by_text(const void *a, const void *b); /* for qsort of texts */

bool tctl_envelope_has(const tctl_envelope_builder *, const char *name);
/* Adds a variable; of one too many, or if memory is out, the builder has failed. */
void tctl_envelope_add(tctl_envelope_builder *, const char *name, const char *value);
void tctl_envelope_record_value(tctl_envelope_builder *, const char *name, const char *value);
/* Adds it and records its value. */
void tctl_envelope_pin(tctl_envelope_builder *, const char *name, const char *value);

/* ---- the user's variables (envelope_users.c), in the order in which they are to be called -------------------- */

void tctl_envelope_pass_recorded(tctl_envelope_builder *);
void tctl_envelope_pass_users(tctl_envelope_builder *);
void tctl_envelope_pass_secrets(tctl_envelope_builder *);
void tctl_envelope_replace(tctl_envelope_builder *);

#endif
