/* SPDX-License-Identifier: Apache-2.0 */
/* Files and paths: whole reads, durable atomic writes, joining. */
#ifndef TCTL_BASE_FILE_H
#define TCTL_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* Reads all of a regular file (TCTL_EINVAL for anything else, or if it is larger than `limit` bytes) and
 * appends it to *ret, which is as before on failure. */
tctl_status tctl_file_read(const char *path, size_t limit, tctl_buf *ret, tctl_error *err);

/* Replaces `path` so that a reader, a crash or a power cut sees the old content or the new, never a mixture:
 * temporary file in the same folder, write, fsync, rename, fsync of the folder. `mode` as in open(2),
 * with the umask taken off. A link at `path` is replaced, not followed. */
tctl_status tctl_file_replace(const char *path, const void *data, size_t size, mode_t mode, tctl_error *err);
/* The same without waiting for the disk: a reader and a crash of ours see the old content or the new, a power cut may
 * leave neither. For what tctl_file_sync makes durable later, or what is worth nothing after a power cut. */
tctl_status tctl_file_put(const char *path, const void *data, size_t size, mode_t mode, tctl_error *err);
/* Makes the content of a file durable that was put. TCTL_ENOENT if there is none. */
tctl_status tctl_file_sync(const char *path, tctl_error *err);

/* Writes all of it, however often write(2) stops short or is interrupted. `name` is for the message. */
tctl_status tctl_write_all(int fd, const void *data, size_t size, const char *name, tctl_error *err);

/* fsync of the folder that holds `path`, so that a rename or a new name in it is durable. */
tctl_status tctl_fsync_parent(const char *path, tctl_error *err);

/* Makes a folder and its missing parents; it is fine if they exist. */
tctl_status tctl_make_folders(const char *path, mode_t mode, tctl_error *err);

/* Removes a tree, not following links; a missing path is fine. However deep it is, it costs a fixed number of
 * descriptors. Stops at the first thing that can't be removed. */
tctl_status tctl_remove_tree(const char *path, tctl_error *err);

bool tctl_path_exists(const char *path);

/* "folder/name", or `name` alone if it is absolute or `folder` is empty. NULL if memory is out. */
char *tctl_path_join(tctl_arena *, const char *folder, const char *name);
/* What stands before the last '/', "." if there is none. */
char *tctl_path_folder(tctl_arena *, const char *path);
/* What stands behind the last '/': borrowed from `path`. */
const char *tctl_path_base(const char *path);

#endif
