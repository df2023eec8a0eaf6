/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An experiment spec: read, checked, resolved.
 */
#ifndef TCTL_CONFIG_SPEC_H
#define TCTL_CONFIG_SPEC_H

#include <jansson.h>
#include <stdbool.h>

#include "config/options.h"
#include "trainctl/ext/trainer.h"

/* Types that only the tables of the spec itself use: keys whose value has a table of its own. */
enum {
    TCTL_SECTION = 100,      /* a mapping with the table of section choices[0] */
    TCTL_SECTION_LIST = 101, /* a list of such mappings */
    TCTL_SECTION_MAP = 102,  /* a mapping of free names to such mappings */
    TCTL_SECTION_TEXTS = 103 /* a text or such a mapping, or a list of both */
};

enum { TCTL_CONTRACT_EXACT = 1, TCTL_CONTRACT_MACHINE = 2, TCTL_CONTRACT_OFF = 3 };

/* One entry of `data:`. */
typedef struct tctl_data_spec {
    const char *name; /* "train" */
    tctl_loc loc;
    tctl_use *source;    /* NULL for a plain path, which only a command can use */
    const char *path;    /* absolute; NULL with a source */
    const char *written; /* the path as written */
    tctl_use **transforms;
    uint32_t n_transforms;
} tctl_data_spec;

/* One entry of `model:`. */
typedef struct tctl_op_spec {
    const char *name; /* `name:`, or the operator and a number: "conv1" */
    const char *op;
    tctl_config *config;
    uint32_t n_inputs;
    int32_t inputs[TCTL_NODE_MAX_INPUTS]; /* `from:`; default: the operator before, or TCTL_MODEL_INPUT */
} tctl_op_spec;

/* `determinism:`: what the envelope and its libraries do for a child; docs/determinism.md explains each. Contract `off`
 * turns off what the spec does not turn on. */
typedef struct tctl_determinism {
    bool variables;       /* pin the variables by which numerical libraries choose kernels */
    bool fixed_addresses; /* no address space randomisation */
    bool interposer, sort_directories, libc_seeds, seeded_entropy, keep_denormals;
    bool python, python_seeds, torch, state_check;
    bool sample_seeds;                /* `data: {seed_scope: sample}`; only with `run:` */
    uint32_t trace;                   /* every so many optimizer steps; 0: no trace */
    const char *const *unpinned;      /* names of variables that are not pinned; NULL-ended */
    const struct tctl_config *config; /* the section with its defaults expanded */
    bool is_default;                  /* nothing in it differs from the contract's defaults */
} tctl_determinism;

/* One entry of `outputs:`. */
typedef struct tctl_output_spec {
    const char *path;                  /* relative to the output folder; patterns are not expanded */
    const char *const *volatile_paths; /* places in JSON that do not count (base/json_path.h); NULL: none */
    bool as_bytes;                     /* `compare: bytes`: the file is not looked into */
} tctl_output_spec;

typedef struct tctl_spec {
    const char *path, *folder; /* as given; absolute folder */
    const char *text;          /* the whole file, for excerpts */
    size_t text_size;
    const char *name;
    uint64_t seed;
    int32_t contract;
    uint32_t n_data, n_ops, n_stages, n_outputs, n_secrets;
    tctl_data_spec *data;
    tctl_op_spec *ops;
    tctl_use *trainer;   /* NULL if the spec has `run:` */
    const char *command; /* NULL if the spec has `train:` */
    tctl_use **stages;
    tctl_output_spec *outputs;  /* with `run:` */
    const char *const *secrets; /* names of variables that are passed to the child and never recorded */
    tctl_resources resources;
    tctl_determinism determinism;
    json_t *recipe;    /* what decides the bits; `resources` is not in it */
    tctl_arena *arena; /* owns all of it but the recipe */
} tctl_spec;

typedef struct tctl_spec_request {
    const char *path;
    /* The worker reads a copy: the text comes from this file, relative paths start in `folder` (absolute), and `path`
     * is for messages only. Both NULL: the text is `path`'s, the folder where it lies. */
    const char *text_path, *folder;
    const char *const *set;     /* "train.lr=0.05", NULL-ended; NULL: none */
    const char *const *without; /* stages left out, NULL-ended; NULL: none */
    const char *seed;           /* of --seed; NULL: the spec's */
    const char *text;           /* the spec's bytes, if they are in memory already; NULL: read the file */
    size_t text_size;
} tctl_spec_request;

/* The table of the top-level keys, of `resources:`, …: the source of docs and schema. An option of type
 * TCTL_PLUGIN named "use" stands for the plugin's name, whose own options stand beside it. */
typedef struct tctl_spec_section {
    const char *name; /* "" for the top level */
    const char *doc;
    const tctl_option *options;
    uint32_t n_options;
} tctl_spec_section;
const tctl_spec_section *tctl_spec_sections(uint32_t *ret_n);

/*
 * Reads a spec. On TCTL_ESPEC (and TCTL_EPLUGIN) everything that is wrong is in `diags` and *ret, for the
 * excerpts, still has path and text; free it in any case. Reading a plugin's tables runs no code of the plugin.
 */
tctl_status tctl_spec_load(const tctl_spec_request *, const tctl_plugin_finder *, tctl_spec **ret,
                           tctl_diags *diags);
void tctl_spec_destroy(tctl_spec *); /* NULL is fine */

/*
 * The recipe, made by tctl_spec_load when nothing was wrong:
 *
 *   {"format": "trainctl-recipe/1", "seed": "1029", "contract": "exact",
 *    "data": {NAME: {"plugin": "idx@0.1.0", "options": {…}, "transforms": [{"name", "plugin", "options"}]}
 *                   or {"path": AS-WRITTEN}},
 *    "model": [{"op", "name", "from": [NAME or "input"], "options": {…}}],
 *    "train": {"plugin", "options"}, "stages": [{"name", "plugin", "options"}]}
 *
 * or "run", "outputs", "seed_scope" ("worker", "sample") and "determinism": {…} instead of "model" and "train"; a
 * trainer's recipe has "determinism" only where a knob is not at its default, because the native engine needs none of
 * them. Defaults are expanded; only options that may change results are in it, and only stages that may
 * (TCTL_BITS_RECIPE). `name`, `resources` and `secrets` are not.
 * A new reference; NULL if memory is out.
 */
json_t *tctl_spec_recipe(const tctl_spec *);

/* The tables as Markdown: what stands in docs/spec.md between its markers. */
void tctl_spec_reference(tctl_buf *ret);

/* JSON Schema (draft 2020-12) of a spec that may use these plugins. A new reference; NULL if memory is out. */
json_t *tctl_spec_schema(const tctl_plugin *const *plugins, uint32_t n);

#endif
