/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's look at the run store, the cache of digests, the code and the plugins. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "launcher/doctor.h"
#include "manifest/code.h"
#include "manifest/stat_cache.h"
#include "manifest/store.h"

/* Numbers of statfs(2). */
static const struct {
    unsigned long type;
    const char *name;
    const char *warning; /* NULL: as good as any */
} file_systems[] = {
    {0xef53, "ext4", NULL},
    {0x58465342, "xfs", NULL},
    {0x9123683e, "btrfs", NULL},
    {0x2fc12fc1, "zfs", NULL},
    {0xf2f52010, "f2fs", NULL},
    {0x794c7630, "overlay", "a container's own layer: runs are lost with it, unless the folder is a volume"},
    {0x01021994, "tmpfs", "in memory: runs are lost at the next start"},
    {0x6969, "nfs", "on the network: other machines see runs late, and locks need the server's help"},
    {0xff534d42, "cifs", "on the network: other machines see runs late, and locks need the server's help"},
    {0xfe534d42, "smb2", "on the network: other machines see runs late, and locks need the server's help"},
    {0x01021997, "9p", "shared with a host: locks may not reach it"},
    {0x65735546, "fuse", "in user space: whether sync is honoured depends on its program"},
    {0x0bd00bd0, "lustre", NULL},
    {0x47504653, "gpfs", NULL},
};

/* Writes, syncs, locks and renames a file in the folder; what failed, or NULL. *ret_skew: the file system's clock
 * ahead of ours, in seconds. */
static const char *try_file(tctl_arena *arena, const char *folder, double *ret_skew)
{
    char *path = tctl_arena_format(arena, "%s/.trainctl-doctor-XXXXXX", folder);
    char *renamed = tctl_arena_format(arena, "%s/.trainctl-doctor-%ld", folder, (long)getpid());
    const char *failed = NULL;
    struct stat st;
    struct timespec now;
    *ret_skew = 0;
    if (!path || !renamed)
        return "memory is out";
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return errno == ENOSPC ? "it is full" : "no file can be made";
    if (write(fd, "x", 1) != 1)
        failed = "writing";
    else if (fsync(fd) != 0)
        failed = "fsync";
    else if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        failed = "flock";
    else if (fstat(fd, &st) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0)
        *ret_skew =
            (double)(st.st_mtim.tv_sec - now.tv_sec) + 1e-9 * (double)(st.st_mtim.tv_nsec - now.tv_nsec);
    if (!failed && rename(path, renamed) != 0)
        failed = "rename";
    if (!failed && tctl_fsync_parent(renamed, NULL) != TCTL_OK)
        failed = "fsync of the folder";
    close(fd);
    unlink(path);
    unlink(renamed);
    return failed;
}

/* The nearest folder that exists: the store is made by the first run. */
static const char *existing(tctl_arena *arena, const char *path)
{
    while (path && !tctl_path_exists(path) && strcmp(path, "/") != 0 && strcmp(path, ".") != 0)
        path = tctl_path_folder(arena, path);
    return path;
}

static void check_file_system(tctl_doctor *d, const char *at)
{
    struct statfs fs;
    const char *name = "unknown", *warning = NULL;
    if (statfs(at, &fs) != 0)
        return;
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; i++) {
        if (file_systems[i].type == ((unsigned long)fs.f_type & 0xffffffffUL)) {
            name = file_systems[i].name;
            warning = file_systems[i].warning;
        }
    }
    double skew;
    const char *failed = try_file(d->arena, at, &skew);
    if (failed)
        tctl_doctor_add(d, "file system", TCTL_CONTRACT_OFF, false,
                        "make it writable, or point TRAINCTL_STORE at a local disk", "%s: %s fails", name,
                        failed);
    else
        tctl_doctor_add(d, "file system", TCTL_CONTRACT_EXACT, warning != NULL,
                        warning ? "TRAINCTL_STORE can point at another place" : NULL,
                        warning ? "%s, %s; sync, lock and rename work" : "%s%s; sync, lock and rename work",
                        name, warning ? warning : "");
    if (skew > 2 || skew < -2)
        tctl_doctor_add(
            d, "file times", TCTL_CONTRACT_EXACT, true, "bring both clocks together (NTP)",
            "the file system's clock is %.0f s off: digests are not cached, or files are read again", skew);
}

static void check_store(tctl_doctor *d)
{
    static const uint64_t little = (uint64_t)1 << 30;
    const char *store = NULL;
    tctl_error err = {0};
    struct statvfs space;
    if (tctl_store_locate(d->arena, d->folder, false, &store, &err) != TCTL_OK)
        store = tctl_path_join(d->arena, d->folder, ".trainctl");
    const char *at = existing(d->arena, store);
    if (!at || statvfs(at, &space) != 0) {
        tctl_doctor_add(d, "store", TCTL_CONTRACT_OFF, false,
                        "point TRAINCTL_STORE at a folder that can be used", "'%s' can't be looked at",
                        store ? store : d->folder);
        return;
    }
    uint64_t bytes = (uint64_t)space.f_bavail * space.f_frsize;
    bool few = space.f_files > 0 && space.f_favail < 1000;
    tctl_doctor_add(d, "store", TCTL_CONTRACT_EXACT, bytes < little || few,
                    bytes < little || few ? "remove old runs, or point TRAINCTL_STORE at another disk" : NULL,
                    "%s, %.1f GB free%s%s", store, (double)bytes / 1e9, few ? ", hardly any inodes" : "",
                    at == store ? "" : " (made by the first run)");
    check_file_system(d, at);
}

static void check_cache(tctl_doctor *d)
{
    const char *path = tctl_stat_cache_default_path(d->arena);
    tctl_error why = {0};
    if (!path) {
        tctl_doctor_add(d, "cache of digests", TCTL_CONTRACT_EXACT, true, "set HOME or XDG_CACHE_HOME",
                        "none: every run reads all data again");
        return;
    }
    tctl_stat_cache_close(tctl_stat_cache_open(path, &why));
    if (why.code != TCTL_OK)
        tctl_doctor_add(d, "cache of digests", TCTL_CONTRACT_EXACT, true, "make it writable, or remove it",
                        "every run reads all data again: %s", why.message);
    else
        tctl_doctor_add(d, "cache of digests", TCTL_CONTRACT_EXACT, false, NULL, "%s", path);
}

static void check_code(tctl_doctor *d)
{
    json_t *code = NULL;
    tctl_error err = {0};
    if (tctl_code_inspect(d->folder, &code, &err) != TCTL_OK) {
        tctl_doctor_add(d, "code", TCTL_CONTRACT_EXACT, true, NULL, "%s", err.message);
        return;
    }
    size_t i;
    const json_t *note;
    json_array_foreach(json_object_get(code, "notes"), i, note)
    {
        if (i < 3)
            tctl_doctor_add(d, "code", TCTL_CONTRACT_EXACT, true, NULL, "%s", json_string_value(note));
    }
    const char *root = json_string_value(json_object_get(code, "root"));
    bool readable = json_is_true(json_object_get(code, "readable"));
    bool writable = json_is_true(json_object_get(code, "writable"));
    if (!root)
        tctl_doctor_add(d, "code", TCTL_CONTRACT_EXACT, true, "git init gives runs a history",
                        "'%s' is in no git repository: its files are kept in the run store", d->folder);
    else
        tctl_doctor_add(
            d, "code", TCTL_CONTRACT_EXACT, !readable || !writable,
            readable && writable ? NULL : "give yourself the right to write to its .git folder",
            "git repository %s%s%s", root,
            json_is_true(json_object_get(code, "owned")) ? "" : ", of another owner (no obstacle)",
            readable && writable ? "" : ", not writable: files are kept in the run store instead");
    json_decref(code);
}

static void check_plugins(tctl_doctor *d)
{
    tctl_plugins *plugins = NULL;
    const char *const *names = NULL;
    uint32_t n = 0, bad = 0;
    tctl_error err = {0};
    if (tctl_plugins_create(d->program, &plugins, &err) != TCTL_OK ||
        tctl_plugins_names(plugins, d->arena, &names, &n, &err) != TCTL_OK) {
        tctl_doctor_add(d, "plugins", TCTL_CONTRACT_OFF, false, "install trainctl anew", "%s", err.message);
        tctl_plugins_destroy(plugins);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        const tctl_loaded *loaded;
        if (tctl_plugins_load(plugins, names[i], d->folder, &loaded, &err) == TCTL_OK)
            continue;
        if (bad++ < 5)
            tctl_doctor_add(d, "plugins", TCTL_CONTRACT_EXACT, true,
                            "build it against this version, or remove it", "%s", err.message);
    }
    if (n == 0)
        tctl_doctor_add(d, "plugins", TCTL_CONTRACT_MACHINE, false,
                        "install trainctl anew, or set TRAINCTL_PLUGIN_PATH",
                        "none found: only commands can be run");
    else
        tctl_doctor_add(d, "plugins", TCTL_CONTRACT_EXACT, false, NULL, "%u of %u can be loaded", n - bad, n);
    tctl_plugins_destroy(plugins);
}

void tctl_doctor_files(tctl_doctor *d)
{
    check_store(d);
    check_cache(d);
    check_code(d);
    check_plugins(d);
}
