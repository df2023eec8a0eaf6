/* SPDX-License-Identifier: Apache-2.0 */
/* See idx_file.h. The file is read, not mapped: a file that is cut short under a mapping kills the process. */
#include "idx_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A message for errno = `number`; the GNU strerror_r returns the text. */
static tctl_status fail_system(const tctl_host *host, const char *what, const char *path, int number,
                               tctl_error *err)
{
    char room[128];
    return host->fail(err, TCTL_EIO, "cannot %s '%s': %s", what, path, strerror_r(number, room, sizeof room));
}

static tctl_status read_all(const tctl_host *host, int fd, const char *path, unsigned char *out, size_t size,
                            tctl_error *err)
{
    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, out + at, size - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_system(host, "read", path, errno, err);
        if (n == 0)
            return host->fail(err, TCTL_EIO, "'%s' became shorter while it was read: %zu of %zu bytes", path,
                              at, size);
        at += (size_t)n;
    }
    return TCTL_OK;
}

static tctl_status read_open(const tctl_host *host, const tctl_config *config, const tctl_memory *memory,
                             const char *option, const char *path, int fd, unsigned char **ret,
                             size_t *ret_size, tctl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail_system(host, "look at", path, errno, err);
    if (!S_ISREG(st.st_mode))
        return host->fail_option(err, config, option, "'%s' is not a regular file", path);
    size_t size = (size_t)st.st_size;
    unsigned char *bytes = memory->allocate(host, size ? size : 1);
    if (!bytes)
        return host->fail(err, TCTL_ENOMEM, "out of memory: %zu bytes asked for, for '%s'", size, path);
    tctl_status status = read_all(host, fd, path, bytes, size, err);
    if (status != TCTL_OK) {
        memory->release(host, bytes);
        return status;
    }
    *ret = bytes;
    *ret_size = size;
    return TCTL_OK;
}

tctl_status idx_file_read(const tctl_host *host, const tctl_config *config, const tctl_memory *memory,
                          const char *option, const char *path, unsigned char **ret, size_t *ret_size,
                          tctl_error *err)
{
    int fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* O_NONBLOCK: a FIFO must not hang us */
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return host->fail_option(err, config, option, "there is no file '%s'", path);
    if (fd < 0)
        return fail_system(host, "open", path, errno, err);
    tctl_status status = read_open(host, config, memory, option, path, fd, ret, ret_size, err);
    close(fd);
    return status;
}
