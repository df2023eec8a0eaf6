/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory that holds the fuzzer's bytes, and a path to it. */
#ifndef TCTL_TESTS_FUZZ_MEMORY_FILE_H
#define TCTL_TESTS_FUZZ_MEMORY_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"

static inline int memory_file(const uint8_t *data, size_t size, char *path, size_t room)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    TCTL_BUG_IF(fd < 0);
    TCTL_BUG_IF(tctl_write_all(fd, data, size, "fuzz", NULL) != TCTL_OK);
    snprintf(path, room, "/proc/self/fd/%d", fd);
    return fd;
}

#endif
