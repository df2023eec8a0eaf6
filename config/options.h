/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapping of the spec, checked against a table of options and typed by it.
 *
 * Unknown keys are errors with a suggestion; so are wrong types, ranges, choices and missing required keys. The
 * result answers the reading functions of tctl_host and can be printed as canonical JSON.
 */
#ifndef TCTL_CONFIG_OPTIONS_H
#define TCTL_CONFIG_OPTIONS_H

#include <jansson.h>

#include "base/arena.h"
#include "config/diag.h"
#include "config/yaml.h"
#include "trainctl/plugin.h"

/* How `use: NAME` is turned into a plugin. The launcher's and the worker's finder is host/plugins.h; tests have
 * their own. */
typedef struct tctl_plugin_finder {
    void *impl;
    /* `use` as written (a name, or a path if it has a '/'); `folder` is the spec's. On success *ret lives as long
     * as the process. TCTL_ENOENT if there is no such plugin, with a suggestion in the hint. */
    tctl_status (*find)(void *impl, const char *use, const char *folder, const tctl_plugin **ret,
                        tctl_error *err);
} tctl_plugin_finder;

typedef struct tctl_use tctl_use;

typedef struct tctl_value {
    int32_t given;    /* 0: absent, 1: default, 2: written, 3: overridden on the command line */
    tctl_loc loc;     /* of the value; of the mapping if the value is a default */
    int64_t i;        /* BOOL, INT, SIZE, COUNT */
    double r;         /* REAL, DURATION */
    const char *text; /* TEXT, ENUM, PATH (absolute), COUNT's unit; PATH: what was written is in `written` */
    const char *written;
    tctl_use *use; /* PLUGIN */
} tctl_value;

typedef struct tctl_config_entry {
    const tctl_option *option;
    uint32_t n; /* values: 0 or 1, any number if REPEATED */
    tctl_value *values;
} tctl_config_entry;

struct tctl_config {
    const char *what;  /* "plugin 'idx'", "operator 'conv'", "train": for messages */
    const char *where; /* path in the spec: "data.train", "model[3]" */
    tctl_loc loc;
    uint32_t n;
    tctl_config_entry *entries; /* in the order of the table */
};

/* One `use:` of the spec. `part` is filled by the host when it creates the stage. */
struct tctl_use {
    const char *name; /* `name:` if given, else the plugin's name; unique within its list */
    const char *use;  /* as written */
    tctl_loc loc;
    const tctl_plugin *plugin;
    tctl_config *config;
    tctl_part part;
};

/* What all readers of one spec share. */
typedef struct tctl_reader_context {
    tctl_arena *arena;
    tctl_diags *diags;
    const char *folder; /* of the spec: paths are relative to it */
    const tctl_plugin_finder *finder;
} tctl_reader_context;

/*
 * Reads `mapping` by the table; NULL stands for an empty mapping. `extra` names keys that the caller handles
 * itself (NULL-ended, NULL: none); so it does with options of type TCTL_SECTION (spec.h) and later. Problems go to
 * the diags; the result is usable for those options that were right. TCTL_ENOMEM is the only failure.
 */
tctl_status tctl_config_read(const tctl_reader_context *, const tctl_yaml_node *mapping,
                             const tctl_option *options, uint32_t n_options, uint32_t option_size,
                             const char *const *extra, const char *what, const char *where,
                             tctl_config **ret);

/* Reads a mapping with `use:` (or a bare scalar: the name alone) of a plugin that provides `extension`. If `extra`
 * has "name", `name:` names the use. After an error *ret may lack its plugin and config. */
tctl_status tctl_use_read(const tctl_reader_context *, const tctl_yaml_node *node, const char *extension,
                          const char *const *extra, const char *where, tctl_use **ret);

/* The same for a plugin that provides any one of `extensions` (NULL-ended). */
tctl_status tctl_use_read_any(const tctl_reader_context *, const tctl_yaml_node *node,
                              const char *const *extensions, const char *const *extra, const char *where,
                              tctl_use **ret);

/* "a data source" for "trainctl.source/1": what an extension makes of a plugin; the id itself if it is unknown. */
const char *tctl_extension_role(const char *id);

/* A table whose elements have `option_size` bytes, copied to elements of this program's tctl_option: members that
 * an older plugin does not have are zero, those of a newer one are left out. NULL if memory is out. */
tctl_option *tctl_options_copy(tctl_arena *, const tctl_option *options, uint32_t n, uint32_t option_size);

/* NULL if the table has no such option. */
const tctl_config_entry *tctl_config_find(const tctl_config *, const char *option);

/* The configuration with defaults expanded; `semantic_only` leaves out what claims not to change results. Paths
 * appear as written. Secrets never appear. A new reference; NULL if memory is out. */
json_t *tctl_config_json(const tctl_config *, bool semantic_only);

/* The nearest of `n` words (Damerau-Levenshtein, at most a third of the length wrong), or NULL. */
const char *tctl_suggest(const char *word, const char *const *words, size_t n);

#endif
