/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Path bytes in JSON, reversibly.
 *
 * A path is bytes, a JSON string is Unicode. Valid UTF-8 stands as it is, but for the backslash, which is
 * doubled; every byte that is not part of a valid UTF-8 sequence becomes "\xHH" (lower-case digits). So two paths
 * have the same text only if they have the same bytes. No Unicode normalisation.
 */
#ifndef TCTL_MANIFEST_PATH_JSON_H
#define TCTL_MANIFEST_PATH_JSON_H

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"

/* A new reference; NULL if memory is out. */
json_t *tctl_path_to_json(const char *path);
/* A message that may have such a path in it: as it is where that is possible, else escaped like one. NULL gives JSON's
 * null. For people; there is no way back. */
json_t *tctl_text_to_json(const char *text);
/* Appends the escaped text, which is valid UTF-8. */
void tctl_path_escape(const char *path, tctl_buf *ret);

/* The bytes again, from malloc. TCTL_EFORMAT if it is no string or has an escape that tctl_path_to_json does not
 * write (also one that stands for a NUL). */
tctl_status tctl_path_from_json(const json_t *value, char **ret, tctl_error *err);

#endif
