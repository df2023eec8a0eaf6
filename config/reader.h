/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that read the spec's tree share. Private to config/. */
#ifndef TCTL_CONFIG_READER_H
#define TCTL_CONFIG_READER_H

#include "config/options.h"

/* A new error at `loc`, to be filled with tctl_fail_at. */
tctl_error *tctl_reader_error(const tctl_reader_context *);

/* Reports that memory is out; returns TCTL_ENOMEM. */
tctl_status tctl_reader_no_memory(const tctl_reader_context *, size_t size_bytes);

/* The begin of a place: what is wrong with a whole mapping is shown at its first character. */
tctl_loc tctl_loc_start(tctl_loc loc);

/* Gives all nodes of a tree one place. */
void tctl_yaml_relocate(tctl_yaml_node *, tctl_loc loc, bool overridden);

/* True if the node is a name: 1 to 64 letters, digits, '_' and '-'. Complains otherwise ("'name' must be ..."). */
bool tctl_name_check(const tctl_reader_context *, const tctl_yaml_node *, const char *key);

/* "the keys are a, b, c" as a hint. */
void tctl_hint_words(tctl_error *, const char *before, const char *const *words, size_t n);

#endif
