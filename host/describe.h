/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins in words and JSON, from their tables: for manifests, `trainctl plugins` and reports. */
#ifndef TCTL_HOST_DESCRIBE_H
#define TCTL_HOST_DESCRIBE_H

#include <jansson.h>

#include "base/buf.h"
#include "host/plugins.h"

const char *tctl_type_text(int32_t type);  /* "int", "real", … */
const char *tctl_bits_text(uint32_t bits); /* "same" or "recipe" */
json_t *tctl_claims_json(uint32_t claims); /* ["runs","threads",…]; NULL if memory is out */

/* {use, name, version, license, path, sha256, build_id, abi, bits, claims}. NULL if memory is out. */
json_t *tctl_loaded_json(const tctl_loaded *);

/*
 * Everything that can be known of a plugin without running it: the members of tctl_loaded_json and
 *   summary, remembers (true or false), provides [ID…], exports [SYMBOL…] (others than the descriptor),
 *   forbidden [{symbol, why}…], options [{name, type, range, required, default or null, unit or null, doc,
 *   since or null, changes_results, repeated}…], operators [{name, doc, options}…] of a trainer
 * NULL if memory is out.
 */
json_t *tctl_plugin_json(const tctl_loaded *);

/* The allowed values of an option as a person reads them: "1..65536", "gaussian|uniform", ">= 0", "" for any. */
void tctl_option_range(const tctl_option *, tctl_buf *ret);

#endif
