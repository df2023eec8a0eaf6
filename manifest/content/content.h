/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file says, apart from how its container is written.
 *
 * torch.save, safetensors, .npz, gzip and zip may write other bytes for the same tensors. A content digest covers what
 * a reader of the format gets: names, dtypes, shapes, values. docs/outputs.md describes every format and the digest
 * exactly. Formats are recognised by their first bytes, never by name. No code in a file is ever run: a pickle is read
 * by a small machine that builds values (pickle.h).
 *
 * All input is foreign bytes. What a file asks for in memory, depth and work is limited; a file that asks for more is
 * "not looked into", which is no error: its bytes are compared then. A file that contradicts itself (a wrong CRC, an end
 * cut off, a tensor outside its storage) is damaged, and that is TCTL_EFORMAT with path, place and reason.
 *
 * Any thread; no state between calls.
 */
#ifndef TCTL_MANIFEST_CONTENT_CONTENT_H
#define TCTL_MANIFEST_CONTENT_CONTENT_H

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "manifest/digest.h"

/* What the caller knows of a file and its bytes do not say. NULL: nothing. */
typedef struct tctl_content_rules {
    const char *const
        *volatile_paths; /* JSON values that do not count; NULL-ended; their presence makes it JSON */
} tctl_content_rules;

typedef struct tctl_content {
    const char *format; /* "torch", "safetensors", "npy", "npz", "zip", "gzip", "tensorboard", "json": static.
                           NULL: no container that is known, or one that is not looked into */
    tctl_sha256 sha256; /* of the content, if there is a format */
    uint64_t n_tensors;
    const char *why_not; /* why a known container is not looked into, in the arena; NULL */
} tctl_content;

/*
 * The content of a regular file. TCTL_EFORMAT: damaged; the message names path, place and reason. TCTL_EIO, TCTL_ENOENT,
 * TCTL_ENOMEM as usual. Memory is bounded, whatever the file says of itself (docs/outputs.md has the limits).
 */
tctl_status tctl_content_of(tctl_arena *, const char *path, const tctl_content_rules *, tctl_content *ret,
                            tctl_error *err);

/*
 * Where the content of two files parts. *ret is NULL if nowhere, else a new reference to
 *
 *   {"kind": "tensor" | "value" | "structure" | "format" | "bytes",
 *    "format":   of file a, as in tctl_content; null for bytes of a whole file,
 *    "name":     of the tensor, value or member: "model/conv1.weight"; "" for the only one; null for a whole file,
 *    "dtype":    "f32"; null unless a tensor,
 *    "element":  [2, 0, 5]: index of the first element that differs; for bytes its offset as one number; else null,
 *    "a", "b":   tensor: bits of that element as hex, most significant digit first; bytes: two hex digits, null behind
 *                the end of a file; else what stands there, as text, null if it is in one file only,
 *    "value_a", "value_b": the element's value as text ("0.25"); null where there is none,
 *    "ulps":     distance of two finite floats of equal type (f16, bf16, f32, f64), as decimal text; else null,
 *    "n_differ": elements of this tensor (bytes of the file) that differ, as decimal text; else null,
 *    "n_elements": of this tensor (bytes of file a), as decimal text; else null,
 *    "others":   further tensors and values that differ, as an integer}
 *
 * Only the first in the order of file a is described. A file that is damaged or not looked into is compared as bytes.
 */
tctl_status tctl_content_compare(tctl_arena *, const char *path_a, const char *path_b,
                                 const tctl_content_rules *, json_t **ret, tctl_error *err);

/* That object in words: "tensor 'conv1.weight' [2, 0, 5]: 0.25 (3e800000) became 0.5 (3f000000), 8388608 ULPs apart;
 * 12 of 640 elements differ, and 3 other tensors or values". */
void tctl_content_explain(const json_t *difference, tctl_buf *ret);

#endif
