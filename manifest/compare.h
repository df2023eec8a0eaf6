/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between two runs: their traces, their outputs, and all that went in.
 */
#ifndef TCTL_MANIFEST_COMPARE_H
#define TCTL_MANIFEST_COMPARE_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/*
 * Where two trace files part: {"kind","step","after","field","a","b","ulps","fields_differ"} (kind: "value", "fields",
 * "length", "steps"; after: the last record before it, in which all is the same, null if it is the first; a and b: bits
 * in hex; ulps: null unless both are floats), or NULL in *ret if nowhere. Fails if one can't be read.
 */
tctl_status tctl_compare_traces(tctl_arena *, const char *path_a, const char *path_b, json_t **ret,
                                tctl_error *err);
/* That object in words: "step 12, field 'loss': 0.25 (3e800000) became 0.5 (3f000000), 8388608 ULPs apart". */
void tctl_divergence_explain(const json_t *divergence, tctl_buf *ret);

/* Two lists of outputs: [{"path","change":"changed"|"missing"|"new","a","b"}], empty if they are the same. Outputs belong
 * together by path, else by what they are known by ("as"). Where both have a content of one format that is what counts,
 * else the bytes. */
json_t *tctl_compare_outputs(const json_t *was, const json_t *is);
/* Those that are the same by their content and have other bytes: [{"path","format","tensors"}]. */
json_t *tctl_repacked_outputs(const json_t *was, const json_t *is);

/* Two JSON values: [{"path","a","b"}] for each leaf that differs; a missing one is null. Lists of objects that have a
 * "name" or "path" are matched by it. At most `limit` entries. */
json_t *tctl_compare_json(const json_t *a, const json_t *b, size_t limit);

#endif
