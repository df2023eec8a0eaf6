/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine and the process that a run had.
 */
#ifndef TCTL_MANIFEST_ENVIRONMENT_H
#define TCTL_MANIFEST_ENVIRONMENT_H

#include <jansson.h>

#include "base/error.h"
#include "manifest/stat_cache.h"

/* CPU model and flags, cores, memory, kernel, libc, distribution, GPU and driver where there is one; allow-listed
 * variables by value, other variables by name; nothing of the host's name or the user. */
tctl_status tctl_environment_capture(const char *const *env, const char *const *secrets, json_t **ret,
                                     tctl_error *err);

/* Every shared object loaded in this process: path, GNU build-id, SHA-256 (through the cache if given). */
tctl_status tctl_shared_objects(tctl_stat_cache *, json_t **ret, tctl_error *err);

/* GNU build-id of an ELF file as hex, or NULL if it has none. From malloc. */
char *tctl_build_id(const char *path);

/* The fields that a contract depends on ("machine" class: CPU model, ISA, kernel's major version, libc, shared
 * objects), compared: an array of {"field","was","is"}, empty if none differ. */
json_t *tctl_environment_differences(const json_t *was, const json_t *is);

#endif
