/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of a run: every path that an option table marks as hashed, and every plain path of `data:`.
 *
 * Hashed before the run, and once more behind it: a file that changed meanwhile fails the run.
 */
#ifndef TCTL_LAUNCHER_INPUTS_H
#define TCTL_LAUNCHER_INPUTS_H

#include <jansson.h>

#include "base/arena.h"
#include "config/spec.h"
#include "launcher/view.h"
#include "manifest/stat_cache.h"
#include "manifest/tree.h"

typedef struct tctl_input {
    const char *name;    /* place in the spec: "data.train.images" */
    const char *path;    /* absolute */
    const char *written; /* as the spec has it */
    tctl_tree tree;      /* once hashed */
} tctl_input;

typedef struct tctl_inputs {
    uint32_t n;
    tctl_input *items;
    const char *const *paths; /* the same paths, NULL-ended */
} tctl_inputs;

/* Finds them; each path once. Nothing is opened. */
tctl_status tctl_inputs_collect(tctl_arena *, const tctl_spec *, tctl_inputs *ret, tctl_error *err);
/* The inputs that a manifest recorded (its "data"), with the digests that they had. */
tctl_status tctl_inputs_recorded(tctl_arena *, const json_t *data, tctl_inputs *ret, tctl_error *err);

/* Fills in the trees. `cache` and `view` may be NULL. */
tctl_status tctl_inputs_hash(tctl_arena *, tctl_inputs *, tctl_stat_cache *cache, tctl_view *view,
                             tctl_error *err);

/* How an input changed. */
typedef struct tctl_input_change {
    const char *name; /* of the input; NULL: none changed */
    bool in_list;     /* files came, went or were renamed; else only their content is another */
} tctl_input_change;

/* Hashes again and compares: TCTL_ECHANGED names the input, and the files of a folder if `listings` (a folder written
 * by tctl_inputs_keep, or NULL) knows them. A missing one is TCTL_ENOENT. `when` ends the sentence: "during the run".
 * Stops at the first that differs, and fills `change` in (may be NULL). */
tctl_status tctl_inputs_check(tctl_arena *, const tctl_inputs *, tctl_stat_cache *cache, const char *listings,
                              const char *when, tctl_input_change *change, tctl_error *err);

/* Writes the listing of each folder among the inputs to <folder>/<sha256>, so that a later check can name files. */
tctl_status tctl_inputs_keep(const tctl_inputs *, tctl_arena *, const char *folder, tctl_error *err);

/* For the manifest. NULL if memory is out. */
json_t *tctl_inputs_json(const tctl_inputs *);

#endif
