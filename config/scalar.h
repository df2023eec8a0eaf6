/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scalar of the spec, read as the type that an option's table asks for. YAML's own guesses are never used:
 * `1e-3` is a number where a number is wanted and a text where a text is wanted.
 */
#ifndef TCTL_CONFIG_SCALAR_H
#define TCTL_CONFIG_SCALAR_H

#include "config/options.h"

/*
 * Reads a scalar node as `option` says (all types but PLUGIN) into i, r, text and written of *ret. On a mistake
 * *err gets message, place and hint, and TCTL_ESPEC is returned; TCTL_ENOMEM if memory is out. Strings live in
 * the arena; `folder` is what paths are relative to.
 */
tctl_status tctl_scalar_read(tctl_arena *, const char *folder, const tctl_option *option,
                             const tctl_yaml_node *node, tctl_value *ret, tctl_error *err);

/* "an integer from 1 to 65536", "one of exact, machine, off": what the option wants. From the arena. */
const char *tctl_scalar_wanted(tctl_arena *, const tctl_option *option);

/* "64 MiB": the largest unit that divides the size. Room for 32 bytes. */
void tctl_size_text(int64_t bytes, char out[32]);

/* True if two words are the same up to a plural's 's': "step" and "steps". */
bool tctl_same_unit(const char *a, size_t length_a, const char *b);

#endif
