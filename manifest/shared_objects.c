/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries of this process, by content.
 *
 * The build-id is read from memory, the SHA-256 from the file: if the file's own build-id is another one, it was
 * replaced after it had been loaded, and its digest would be that of something that never ran.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/digest.h"
#include "manifest/elf.h"
#include "manifest/environment.h"
#include "manifest/path_json.h"

static bool read_file(void *impl, uint64_t offset, void *ret, size_t size)
{
    const int *fd = impl;
    size_t have = 0;
    while (have < size) {
        if (offset + have > INT64_MAX)
            return false;
        ssize_t n = pread(*fd, (char *)ret + have, size - have, (off_t)(offset + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        have += (size_t)n;
    }
    return true;
}

char *tctl_build_id(const char *path)
{
    char hex[TCTL_BUILD_ID_HEX];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    tctl_elf_source source = {.impl = &fd, .read = read_file};
    bool found = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && tctl_elf_build_id(&source, hex);
    close(fd);
    return found ? strdup(hex) : NULL;
}

typedef struct object {
    char *path;
    char build_id[TCTL_BUILD_ID_HEX]; /* of what is mapped; "" if there is none */
} object;

typedef struct objects {
    object *list;
    size_t n, room;
    bool no_memory;
} objects;

static void mapped_build_id(const struct dl_phdr_info *info, char ret[TCTL_BUILD_ID_HEX])
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        /* An address that the loader gave us as a number. */
        const void *notes = (const void *)(uintptr_t)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_NOTE &&
            tctl_elf_notes_build_id(notes, header->p_memsz, header->p_align, false, ret))
            return;
    }
    ret[0] = '\0';
}

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    objects *all = arg;
    char program[PATH_MAX];
    const char *path = info->dlpi_name;
    if (!path || !*path) { /* the program itself; the loader gives it no name */
        ssize_t n = all->n == 0 ? readlink("/proc/self/exe", program, sizeof program - 1) : -1;
        if (n < 0)
            return 0;
        program[n] = '\0';
        path = program;
    }
    if (!strchr(path, '/')) /* the kernel's vdso is no file */
        return 0;
    if (all->n == all->room) {
        size_t room = all->room ? 2 * all->room : 32;
        object *bigger = realloc(all->list, room * sizeof *bigger);
        if (!bigger) {
            all->no_memory = true;
            return 1;
        }
        all->list = bigger;
        all->room = room;
    }
    object found = {.path = strdup(path)};
    if (!found.path) {
        all->no_memory = true;
        return 1;
    }
    mapped_build_id(info, found.build_id);
    all->list[all->n++] = found;
    return 0;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const object *)a)->path, ((const object *)b)->path);
}

/* Digest of the file, or false. */
static bool digest_of(tctl_stat_cache *cache, const char *path, tctl_sha256 *ret)
{
    char real[PATH_MAX];
    struct stat st;
    uint64_t size = 0;
    if (!realpath(path, real) || stat(real, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (cache && tctl_stat_cache_get(cache, real, &st, ret))
        return true;
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fstat(fd, &st) == 0 && tctl_sha256_fd(fd, real, ret, &size, NULL) == TCTL_OK;
    if (fd >= 0)
        close(fd);
    if (good && cache && size == (uint64_t)st.st_size)
        tctl_stat_cache_put(cache, real, &st, ret);
    return good;
}

/* True if a file that was `loaded` is no longer what lies at the path. */
static bool is_another(const char *path, const struct stat *loaded)
{
    struct stat st;
    return stat(path, &st) != 0 || st.st_dev != loaded->st_dev || st.st_ino != loaded->st_ino ||
           st.st_size != loaded->st_size || st.st_mtim.tv_sec != loaded->st_mtim.tv_sec ||
           st.st_mtim.tv_nsec != loaded->st_mtim.tv_nsec;
}

json_t *tctl_shared_object(tctl_stat_cache *cache, const char *path, const char *build_id,
                           const struct stat *loaded)
{
    tctl_sha256 digest;
    char hex[TCTL_SHA256_HEX];
    bool has_id = build_id && build_id[0], replaced = loaded && is_another(path, loaded);
    if (has_id && !replaced) {
        char *now = tctl_build_id(path);
        replaced = !now || strcmp(now, build_id) != 0;
        free(now);
    }
    bool known = !replaced && digest_of(cache, path, &digest);
    if (known)
        tctl_sha256_hex(&digest, hex);
    json_t *entry = json_pack("{s:o, s:s?, s:s?}", "path", tctl_path_to_json(path), "build_id",
                              has_id ? build_id : NULL, "sha256", known ? hex : NULL);
    if (entry && replaced && json_object_set_new(entry, "replaced", json_true()) != 0) {
        json_decref(entry);
        return NULL;
    }
    return entry;
}

tctl_status tctl_shared_objects(tctl_stat_cache *cache, json_t **ret, tctl_error *err)
{
    objects all = {.n = 0};
    json_t *list = json_array();
    dl_iterate_phdr(add_object, &all);
    bool good = list && !all.no_memory;
    if (all.n > 1)
        qsort(all.list, all.n, sizeof *all.list, by_path);
    /* Files are read only now: the loader's lock is held while it iterates. */
    for (size_t i = 0; good && i < all.n; i++)
        good = json_array_append_new(
                   list, tctl_shared_object(cache, all.list[i].path, all.list[i].build_id, NULL)) == 0;
    for (size_t i = 0; i < all.n; i++)
        free(all.list[i].path);
    free(all.list);
    if (!good) {
        json_decref(list);
        return tctl_fail_memory(err, all.n * sizeof *all.list);
    }
    *ret = list;
    return TCTL_OK;
}
