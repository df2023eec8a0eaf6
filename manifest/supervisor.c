/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity of a process: pid, start time (field 22 of /proc/PID/stat, proc(5)) and boot id.
 */
#include "manifest/supervisor.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID_CHARS 36

/* Up to `room - 1` bytes of a small /proc file; "" if it can't be read. */
static void read_small(const char *path, char *out, size_t room)
{
    out[0] = '\0';
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, out, room - 1);
    out[n > 0 ? n : 0] = '\0';
    close(fd);
}

static void boot_id(char out[BOOT_ID_CHARS + 1])
{
    read_small("/proc/sys/kernel/random/boot_id", out, BOOT_ID_CHARS + 1);
}

/* "" if there is no such process. The command's name in field 2 may hold blanks and brackets, so fields are counted
 * from the last ')'. */
static void start_time(long pid, char *out, size_t room)
{
    char path[64], stat[1024];
    out[0] = '\0';
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    read_small(path, stat, sizeof stat);
    const char *at = strrchr(stat, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at, ' ');
        at = at == NULL ? NULL : at + 1;
    }
    if (at == NULL)
        return;
    size_t n = strcspn(at, " \n");
    snprintf(out, room, "%.*s", (int)n, at);
}

json_t *tctl_supervisor_self(void)
{
    char boot[BOOT_ID_CHARS + 1], start[32];
    boot_id(boot);
    start_time((long)getpid(), start, sizeof start);
    return json_pack("{s:I, s:s, s:s}", "pid", (json_int_t)getpid(), "start_time", start, "boot_id", boot);
}

bool tctl_supervisor_alive(const json_t *supervisor)
{
    char boot[BOOT_ID_CHARS + 1], start[32];
    json_int_t pid = json_integer_value(json_object_get(supervisor, "pid"));
    const char *was_boot = json_string_value(json_object_get(supervisor, "boot_id"));
    const char *was_start = json_string_value(json_object_get(supervisor, "start_time"));
    if (pid <= 0 || was_boot == NULL || was_start == NULL)
        return false;
    boot_id(boot);
    start_time((long)pid, start, sizeof start);
    return strcmp(boot, was_boot) == 0 && start[0] != '\0' && strcmp(start, was_start) == 0;
}
