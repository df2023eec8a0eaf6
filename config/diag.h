/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diagnostics: all that is wrong with a spec, in one go.
 *
 * At most TCTL_DIAGS_MAX are kept, sorted by position when they are shown. Rendered as
 *
 *     exp.yaml:4:8: error: 'width' must be an integer from 1 to 65536, got '70000'
 *         4 | width: 70000
 *           |        ^~~~~
 *       note: …
 *       hint: …
 *
 * with the caret placed by display width, and as JSON for editors. A note that has a position is shown like an
 * error of its own; an error without a line (an override on the command line) has no excerpt.
 */
#ifndef TCTL_CONFIG_DIAG_H
#define TCTL_CONFIG_DIAG_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/error.h"

#define TCTL_DIAGS_MAX 20

typedef struct tctl_diags {
    tctl_error *errors; /* [TCTL_DIAGS_MAX], from malloc */
    size_t n;
    size_t n_dropped;
    tctl_error scratch; /* takes what is only counted */
} tctl_diags;

/* Begin with `tctl_diags d = {0}`. */
void tctl_diags_release(tctl_diags *);
/* All errors so far, kept or dropped. */
size_t tctl_diags_count(const tctl_diags *);
/* A new empty error in the list to be filled by tctl_fail_at and friends; when the list is full, a scratch one
 * that is only counted. Never NULL; valid until the next call. */
tctl_error *tctl_diags_add(tctl_diags *);

/* One error as text, with the excerpt of `source` (the whole text of err->loc.file; NULL: no excerpt). */
void tctl_diag_render(const tctl_error *err, const char *source, size_t source_size, bool colour,
                      tctl_buf *ret);
/* All of them, sorted by position, and "N errors" at the end if there were more than one. */
void tctl_diags_render(tctl_diags *, const char *source, size_t source_size, bool colour, tctl_buf *ret);
/* {"errors":[{file,line,column,end_line,end_column,message,notes,hint}],"dropped":n}; NULL if memory is out. */
json_t *tctl_diags_json(tctl_diags *);

#endif
