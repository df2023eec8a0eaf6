/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a plugin says about itself, by reading its tables: versions, sizes, names, option tables, function
 * tables. Runs no code of the plugin. Every message names the plugin and the entry that is wrong, for whoever
 * writes it.
 */
#ifndef TCTL_HOST_LINT_H
#define TCTL_HOST_LINT_H

#include <stdbool.h>

#include "base/error.h"
#include "trainctl/plugin.h"

/* `who` is how messages call the plugin: "plugin './mine.so'". TCTL_EPLUGIN or TCTL_ENOMEM. */
tctl_status tctl_plugin_lint(const tctl_plugin *, const char *who, tctl_error *err);

/* The option table of `who` alone; also for a trainer's operators. */
tctl_status tctl_options_lint(const tctl_option *options, uint32_t n, uint32_t option_size, const char *who,
                              tctl_error *err);

/* Whether a text is UTF-8, as all strings in tables must be. */
bool tctl_lint_is_utf8(const char *text);

#endif
