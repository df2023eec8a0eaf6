/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML text to a tree with positions.
 *
 * libyaml's event API supplies marks and scalars and nothing else: no types, no anchors, no merge keys, no
 * tags. Keys are unique scalars. Limits are checked by a scan of our own before libyaml sees a byte, because libyaml 0.2.5 takes time
 * quadratic in the nesting (200 kB of '[' took 40 s).
 */
#ifndef TCTL_CONFIG_YAML_H
#define TCTL_CONFIG_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "config/diag.h"

#define TCTL_YAML_MAX_BYTES  ((size_t)1 << 20)
#define TCTL_YAML_MAX_DEPTH  64
#define TCTL_YAML_MAX_NODES  100000
#define TCTL_YAML_MAX_SCALAR ((size_t)64 << 10)

enum { TCTL_YAML_SCALAR = 1, TCTL_YAML_SEQUENCE = 2, TCTL_YAML_MAPPING = 3 };

typedef struct tctl_yaml_node tctl_yaml_node;

typedef struct tctl_yaml_pair {
    tctl_yaml_node *key; /* always a scalar */
    tctl_yaml_node *value;
} tctl_yaml_pair;

struct tctl_yaml_node {
    int kind;
    tctl_loc loc;
    const char *text; /* SCALAR: NUL-terminated, without NULs inside */
    size_t length;
    bool quoted;     /* written with quotes or as a block: text whatever it looks like */
    bool broken;     /* an error was reported here already (an alias, a tag): nothing more to say */
    bool overridden; /* comes from the command line; its `loc` has no line then */
    size_t n;        /* SEQUENCE, MAPPING */
    tctl_yaml_node **items;
    tctl_yaml_pair *pairs;
};

/* Parses exactly one document, UTF-8. *ret lives in the arena; NULL for an empty document. Every problem goes
 * to `diags` (positions in `name`); returns TCTL_ESPEC if there was one, TCTL_ENOMEM if memory is out. */
tctl_status tctl_yaml_parse(tctl_arena *, const char *name, const char *text, size_t size,
                            tctl_yaml_node **ret, tctl_diags *diags);

/* A value of the spec as a message shows it, on one line and cut to about 60 characters. NULL if memory is out. */
const char *tctl_yaml_show(tctl_arena *, const char *text, size_t length);

/* "a list", "a mapping", "a value": what a node is in words. */
const char *tctl_yaml_kind(const tctl_yaml_node *);

/* The value of `key` in a mapping, or NULL. */
tctl_yaml_node *tctl_yaml_get(const tctl_yaml_node *mapping, const char *key);

#endif
