/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine and the process that a run had.
 */
#ifndef TCTL_MANIFEST_ENVIRONMENT_H
#define TCTL_MANIFEST_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "manifest/stat_cache.h"

/*
 * The object `environment` of the manifest:
 *   cpu {arch, vendor, model, family, stepping, microcode, isa, fma, flags: sorted names}, cores {online, available},
 *   memory_bytes, kernel {name, release}, libc, distribution {id, version, name}, page_size, transparent_hugepage,
 *   gpus: [{model}], nvidia_driver (null without one), variables {name: value}, variable_names: sorted.
 * What is not to be had is null. `isa` is "x86-64-v1" … "-v4" by what the kernel says the CPU can do, "aarch64", or null.
 *
 * `env`: "NAME=value" strings, NULL-ended. By value only what is known to change results (CUDA_*, OMP_*, PATH, …) and
 * neither looks like a secret nor is in `secrets` (names, NULL-ended, or NULL); of all others the name. Nothing of
 * the host's name or the user's.
 */
tctl_status tctl_environment_capture(const char *const *env, const char *const *secrets, json_t **ret,
                                     tctl_error *err);

/* True if a variable of this name is recorded by value, whatever it holds. */
bool tctl_environment_by_value(const char *name);
/* True if a name looks like that of a secret ("…TOKEN…", "…PASSWORD…"). */
bool tctl_environment_looks_secret(const char *name);

/* Every shared object loaded in this process, and the program: [{path, build_id, sha256}] sorted by path, the digest
 * through the cache if given. A file that was replaced since it was loaded has "replaced": true and no sha256. */
tctl_status tctl_shared_objects(tctl_stat_cache *, json_t **ret, tctl_error *err);

/* One entry of that list, for an object that any process had loaded: `build_id` as its memory had it ("" or NULL: none),
 * `loaded` what stat(2) said of the file (device, inode, size, mtime), or NULL. A new reference; NULL: out of memory. */
json_t *tctl_shared_object(tctl_stat_cache *, const char *path, const char *build_id,
                           const struct stat *loaded);

/* GNU build-id of an ELF file as hex, or NULL if it has none. From malloc. */
char *tctl_build_id(const char *path);

/*
 * The fields that the "machine" contract depends on, compared: an array of {"field","was","is"}, empty if none
 * differ; NULL if memory is out. The class is: cpu.arch, cpu.vendor, cpu.model, cpu.isa, cpu.vector_flags (those of
 * the flags that numerical libraries dispatch on), kernel.major, libc, gpus, nvidia_driver; and, where both have a
 * member "shared_objects", libraries by path and content. Memory, core counts, variables and the like are not.
 */
json_t *tctl_environment_differences(const json_t *was, const json_t *is);

#endif
