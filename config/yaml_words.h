/* SPDX-License-Identifier: Apache-2.0 */
/* libyaml's complaints in the words of a person who writes specs. */
#ifndef TCTL_CONFIG_YAML_WORDS_H
#define TCTL_CONFIG_YAML_WORDS_H

#include <yaml.h>

#include "config/diag.h"

/* Fills *err from the parser's error. `text` is what was parsed. TCTL_ENOMEM if that was the error. */
tctl_status tctl_yaml_explain(const yaml_parser_t *, const char *name, const char *text, size_t size,
                              tctl_error *err);

#endif
