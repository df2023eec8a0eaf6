/* SPDX-License-Identifier: Apache-2.0 */
/* What restoring from git and from objects share: writing files below a new folder, and the digest of what was
 * written. Paths are walked with descriptors of folders that this made itself, so no link is ever followed. */
#ifndef TCTL_MANIFEST_CODE_RESTORE_H
#define TCTL_MANIFEST_CODE_RESTORE_H

#include <jansson.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "manifest/digest.h"
#include "manifest/tree.h"

enum { TCTL_RESTORE_DEPTH = 200 };

typedef struct tctl_restore {
    tctl_arena *arena;
    const json_t *code;
    const char *store, *folder;
    size_t n, room;
    tctl_tree_entry *written;
} tctl_restore;

/* Makes the folder `name` in `parent`; it must not exist yet. Refuses "", ".", "..", ".git" and names with a '/'. */
tctl_status tctl_restore_folder(const char *path, int parent, const char *name, int *ret_fd, tctl_error *err);
/* Writes a file or link. `path` is where it lies below the whole, for the digest; the arena's. */
tctl_status tctl_restore_bytes(tctl_restore *, int parent, const char *name, const char *path, char type,
                               const void *data, size_t size, tctl_error *err);
/* The same from an open file; TCTL_ECHANGED if its bytes are not those of `want`. */
tctl_status tctl_restore_fd(tctl_restore *, int parent, const char *name, const char *path, char type, int fd,
                            const tctl_sha256 *want, tctl_error *err);

/* code_restore_git.c, code_restore_objects.c; `fd` is the new folder. */
tctl_status tctl_restore_from_git(tctl_restore *, const json_t *kept, int fd, tctl_error *err);
tctl_status tctl_restore_from_objects(tctl_restore *, const char *digest, int fd, tctl_error *err);

#endif
