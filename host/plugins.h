/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding and loading plugins.
 *
 * A name is looked for in $TRAINCTL_PLUGIN_PATH (a ':'-list) and then in ../lib/trainctl/plugins or plugins beside
 * the program; a `use:` with a '/' is a path relative to the spec. The file is opened, hashed and read as ELF before
 * any of its code runs: a library that is no plugin is never loaded. Around dlopen the floating-point mode, locale,
 * signals and working directory are compared (host/surroundings.h): a library that changed one is refused by name.
 * What was loaded is what was hashed: the mapping of the plugin's symbol must show the same device and inode as a
 * mapping of the hashed descriptor. (Not the same as fstat's: file systems made of others show different ones.)
 * Nothing is ever unloaded. [main]
 */
#ifndef TCTL_HOST_PLUGINS_H
#define TCTL_HOST_PLUGINS_H

#include "base/arena.h"
#include "base/error.h"
#include "config/options.h"
#include "host/elf.h"
#include "manifest/digest.h"
#include "trainctl/plugin.h"

/* Lives as long as the tctl_plugins; the plugin itself as long as the process. */
typedef struct tctl_loaded {
    const tctl_plugin *plugin;
    const char *use;      /* as it was first asked for */
    const char *path;     /* real path */
    const char *build_id; /* hex, or NULL */
    const tctl_elf *elf;  /* symbols */
    tctl_sha256 digest;
} tctl_loaded;

typedef struct tctl_plugins tctl_plugins;

/* `program` is the path of the running program (/proc/self/exe). */
tctl_status tctl_plugins_create(const char *program, tctl_plugins **ret, tctl_error *err);
void tctl_plugins_destroy(tctl_plugins *); /* forgets; the libraries stay loaded. NULL is fine */

/* `fn` is called with the real path before code of a library runs for the first time. NULL: nobody. */
void tctl_plugins_watch(tctl_plugins *, void (*fn)(void *arg, const char *path), void *arg);

/* Loads `use` or finds it loaded. TCTL_ENOENT (with a suggestion), TCTL_EPLUGIN, TCTL_EIO, TCTL_ENOMEM. */
tctl_status tctl_plugins_load(tctl_plugins *, const char *use, const char *folder, const tctl_loaded **ret,
                              tctl_error *err);
/* For tctl_spec_load. */
tctl_plugin_finder tctl_plugins_finder(tctl_plugins *);
/* What was loaded so far, in order: entry i, or NULL if there are not so many. *ret_n (may be NULL) is their number. */
const tctl_loaded *tctl_plugins_loaded(const tctl_plugins *, uint32_t i, uint32_t *ret_n);
/* The entry of a plugin that was loaded here; NULL for a stranger. */
const tctl_loaded *tctl_plugins_entry(const tctl_plugins *, const tctl_plugin *);
/* Names of the plugins that could be loaded, sorted, without loading any. From the arena. */
tctl_status tctl_plugins_names(const tctl_plugins *, tctl_arena *, const char *const **ret, uint32_t *ret_n,
                               tctl_error *err);

#endif
