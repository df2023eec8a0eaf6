/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading plugins.
 *
 * A name is looked for in $TRAINCTL_PLUGIN_PATH (a ':'-list) and then in ../lib/trainctl/plugins beside the
 * program; a `use:` with a '/' is a path relative to the spec. Around dlopen the floating-point environment,
 * locale, signal mask and working directory are compared: a library that changed one is refused by name. What
 * was loaded is what was hashed: device and inode of the mapping are compared with those of the hashed file.
 * Nothing is ever unloaded.
 */
#ifndef TCTL_HOST_PLUGINS_H
#define TCTL_HOST_PLUGINS_H

#include "base/arena.h"
#include "base/error.h"
#include "config/options.h"
#include "manifest/digest.h"
#include "trainctl/plugin.h"

typedef struct tctl_loaded {
    const tctl_plugin *plugin;
    const char *path;     /* real path */
    const char *build_id; /* hex, or NULL */
    tctl_sha256 digest;
} tctl_loaded;

typedef struct tctl_plugins tctl_plugins;

/* `program` is the path of the running program (/proc/self/exe). */
tctl_status tctl_plugins_create(const char *program, tctl_plugins **ret, tctl_error *err);
void tctl_plugins_destroy(tctl_plugins *); /* forgets; the libraries stay loaded */

/* Loads `use` or finds it loaded. TCTL_ENOENT (with a suggestion), TCTL_EPLUGIN. */
tctl_status tctl_plugins_load(tctl_plugins *, const char *use, const char *folder, const tctl_loaded **ret,
                              tctl_error *err);
/* For tctl_spec_load. */
tctl_plugin_finder tctl_plugins_finder(tctl_plugins *);
/* What was loaded so far, in order. */
const tctl_loaded *tctl_plugins_loaded(const tctl_plugins *, uint32_t i, uint32_t *ret_n);
/* Names of the plugins that could be loaded, sorted, without loading any. From the arena. */
tctl_status tctl_plugins_names(const tctl_plugins *, tctl_arena *, const char *const **ret, uint32_t *ret_n,
                               tctl_error *err);

#endif
