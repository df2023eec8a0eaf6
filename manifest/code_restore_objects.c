/* SPDX-License-Identifier: Apache-2.0 */
/* Restoring from the run store's objects: a listing, and one object for each file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "manifest/code_restore.h"
#include "manifest/listing.h"
#include "manifest/objects.h"

static const size_t listing_limit = (size_t)256 << 20;

/* Reads an object of at most `limit` bytes and checks it. */
static tctl_status read_object(tctl_restore *r, const tctl_sha256 *digest, const char *what, size_t limit,
                               tctl_buf *ret, tctl_error *err)
{
    int fd;
    tctl_status status = tctl_object_open(r->store, digest, &fd, err);
    if (status != TCTL_OK)
        return status;
    char chunk[16384];
    ssize_t n;
    ret->limit = limit;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            tctl_buf_add(ret, chunk, (size_t)n);
    }
    if (n < 0)
        status = tctl_fail_errno(err, errno, "cannot read what was kept of '%s'", what);
    close(fd);
    if (status != TCTL_OK)
        return status;
    if (!tctl_buf_text(ret))
        return tctl_fail(err, TCTL_ECHANGED, "what was kept of '%s' is too large", what);
    tctl_sha256 is = tctl_sha256_of(tctl_buf_text(ret), ret->size);
    if (!tctl_sha256_equal(&is, digest))
        return tctl_fail(err, TCTL_ECHANGED, "what was kept of '%s' has changed: its digest is another",
                         what);
    return TCTL_OK;
}

/* A descriptor of the folder that holds the path's last component, made where it is missing. */
static tctl_status enter_folders(const char *path, int top, int *ret, const char **ret_name, tctl_error *err)
{
    int at = fcntl(top, F_DUPFD_CLOEXEC, 0);
    if (at < 0)
        return tctl_fail_errno(err, errno, "cannot write '%s'", path);
    const char *slash;
    while ((slash = strchr(path, '/')) != NULL) {
        char name[NAME_MAX + 1];
        size_t n = (size_t)(slash - path);
        int next = -1;
        tctl_status status = TCTL_OK;
        if (n > NAME_MAX) {
            status = tctl_fail(err, TCTL_ECHANGED, "the kept tree has a name that is too long in '%s'", path);
        } else {
            memcpy(name, path, n);
            name[n] = '\0';
            next = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next < 0)
                status = tctl_restore_folder(path, at, name, &next, err);
        }
        close(at);
        if (status != TCTL_OK)
            return status;
        at = next;
        path = slash + 1;
    }
    *ret = at;
    *ret_name = path;
    return TCTL_OK;
}

static tctl_status restore_entry(tctl_restore *r, const tctl_tree_entry *entry, int top, tctl_error *err)
{
    int parent = -1, fd = -1;
    const char *name = NULL;
    tctl_status status = enter_folders(entry->path, top, &parent, &name, err);
    if (status != TCTL_OK)
        return status;
    if (entry->type == 'd') { /* no capture writes one, but the format knows them */
        status = tctl_restore_folder(entry->path, parent, name, &fd, err);
        if (status == TCTL_OK)
            close(fd);
    } else if (entry->type == 'l') {
        tctl_buf target = TCTL_BUF_INIT;
        status = read_object(r, &entry->digest, entry->path, PATH_MAX, &target, err);
        if (status == TCTL_OK)
            status = tctl_restore_bytes(r, parent, name, entry->path, 'l', tctl_buf_text(&target),
                                        target.size, err);
        tctl_buf_release(&target);
    } else {
        status = tctl_object_open(r->store, &entry->digest, &fd, err);
        if (status == TCTL_OK) {
            status = tctl_restore_fd(r, parent, name, entry->path, entry->type, fd, &entry->digest, err);
            close(fd);
        } else {
            tctl_note(err, "it holds '%s'", entry->path);
        }
    }
    close(parent);
    return status;
}

tctl_status tctl_restore_from_objects(tctl_restore *r, const char *hex, int fd, tctl_error *err)
{
    tctl_sha256 digest;
    tctl_buf text = TCTL_BUF_INIT;
    tctl_tree_entry *entries = NULL;
    size_t n = 0;
    if (!tctl_sha256_parse(hex, &digest))
        return tctl_fail(err, TCTL_EFORMAT, "the manifest's 'code' has a malformed digest in 'kept'");
    tctl_status status = read_object(r, &digest, "the listing", listing_limit, &text, err);
    if (status == TCTL_OK)
        status = tctl_listing_parse(r->arena, hex, text.data, text.size, &entries, &n, err);
    for (size_t i = 0; status == TCTL_OK && i < n; i++)
        status = restore_entry(r, &entries[i], fd, err);
    tctl_buf_release(&text);
    return status;
}
