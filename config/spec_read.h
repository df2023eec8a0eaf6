/* SPDX-License-Identifier: Apache-2.0 */
/* The files that read a spec, one per part of it. Private to config/. */
#ifndef TCTL_CONFIG_SPEC_READ_H
#define TCTL_CONFIG_SPEC_READ_H

#include "config/reader.h"
#include "config/spec.h"

enum { TCTL_MAX_OPS = 4096, TCTL_MAX_LIST = 256 };

typedef struct tctl_spec_reader {
    tctl_reader_context ctx;
    tctl_spec *spec;
    tctl_yaml_node *root;
} tctl_spec_reader;

/* Each reads one key of the root into the spec; a missing key is fine. TCTL_ENOMEM is the only failure. */
tctl_status tctl_spec_read_data(tctl_spec_reader *);
tctl_status tctl_spec_read_model(tctl_spec_reader *);
tctl_status tctl_spec_read_stages(tctl_spec_reader *);
tctl_status tctl_spec_read_determinism(tctl_spec_reader *);
tctl_status tctl_spec_read_outputs(tctl_spec_reader *);

/* A list of uses at `where`: each with `use` and `name`, names unique. Broken ones are left out. */
tctl_status tctl_spec_read_uses(tctl_spec_reader *, const tctl_yaml_node *list, const char *const *extensions,
                                const char *where, tctl_use ***ret, uint32_t *ret_n);

/* Applies --set, --without and --seed to the tree, in this order. */
tctl_status tctl_spec_override(tctl_spec_reader *, const tctl_spec_request *);

/* The place of a key of the mapping; line 0 if it is not there. */
tctl_loc tctl_spec_key_loc(const tctl_yaml_node *mapping, const char *key);

/* By name; NULL if there is none. */
const tctl_spec_section *tctl_spec_section_find(const char *name);

#endif
