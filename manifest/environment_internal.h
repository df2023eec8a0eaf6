/* SPDX-License-Identifier: Apache-2.0 */
/* What the files environment*.c share. */
#ifndef TCTL_MANIFEST_ENVIRONMENT_INTERNAL_H
#define TCTL_MANIFEST_ENVIRONMENT_INTERNAL_H

#include <jansson.h>
#include <stdbool.h>

/* environment_variables.c: a map of what is recorded by value, and the other names, sorted. False: out of memory. */
bool tctl_environment_variables(const char *const *env, const char *const *secrets, json_t **ret_values,
                                json_t **ret_names);

/* environment.c. True if all of the names (NULL-ended) are among the flags. */
bool tctl_cpu_has(const json_t *flags, const char *const *names);
/* "x86-64-v3" and the like, "aarch64", or NULL. `arch` as uname says. */
const char *tctl_isa_level(const char *arch, const json_t *flags);

#endif
