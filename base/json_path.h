/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns for places in a JSON value: names with '/' between them. '*' stands for one name or index, '**' for any
 * number of them, none included: "time", "epochs/ * /seconds" (without the blanks), "** /seconds".
 */
#ifndef TCTL_BASE_JSON_PATH_H
#define TCTL_BASE_JSON_PATH_H

#include <stdbool.h>
#include <stddef.h>

/* One step on the way to a value: a member's name, or an item's index as text. */
typedef struct tctl_json_step {
    const char *name;
    const struct tctl_json_step *before; /* NULL: at the top */
} tctl_json_step;

/* Whether a pattern of the NULL-ended list fits the whole way. */
bool tctl_json_path_fits(const char *const *patterns, const tctl_json_step *way);

/* Why a text is no pattern ("it is empty"), or NULL. */
const char *tctl_json_path_problem(const char *pattern);

#endif
