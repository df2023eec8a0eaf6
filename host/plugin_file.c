/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_file.h. The order matters: everything that can be learned from the bytes comes before dlopen. */
#include "host/plugin_file.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "host/lint.h"
#include "host/surroundings.h"

#define SYMBOL      "trainctl_plugin_v1"
#define SYMBOL_STEM "trainctl_plugin_v"
#define MAX_MAPS    ((size_t)64 << 20)

typedef struct job {
    const tctl_plugin_file_request *request;
    tctl_loaded *loaded;
    int fd;
    struct stat st; /* before hashing */
    void *bytes;    /* the file, mapped; also the reference for the device and inode of a mapping */
    size_t size;
    char who[320]; /* "plugin './x.so'" */
} job;

/* ---- before any code runs ---------------------------------------------------------------------------- */

static tctl_status open_and_hash(job *j, tctl_error *err)
{
    uint64_t size = 0;
    /* Non-blocking, so that a FIFO does not wait for a writer. */
    j->fd = open(j->request->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (j->fd < 0 || fstat(j->fd, &j->st) != 0)
        return tctl_fail_errno(err, errno, "cannot open plugin '%s'", j->request->use);
    if (!S_ISREG(j->st.st_mode) || j->st.st_size == 0)
        return tctl_fail(err, TCTL_EPLUGIN, "'%s' is not a plugin: it is %s", j->request->use,
                         S_ISREG(j->st.st_mode) ? "empty" : "not a regular file");
    j->size = (size_t)j->st.st_size;
    tctl_status status = tctl_sha256_fd(j->fd, j->request->path, &j->loaded->digest, &size, err);
    if (status)
        return status;
    void *bytes = mmap(NULL, j->size, PROT_READ, MAP_PRIVATE, j->fd, 0);
    if (bytes == MAP_FAILED)
        return tctl_fail_errno(err, errno, "cannot map plugin '%s'", j->request->use);
    j->bytes = bytes;
    return TCTL_OK;
}

static tctl_status read_symbols(job *j, tctl_error *err)
{
    tctl_elf *elf = NULL;
    tctl_status status = tctl_elf_read(j->request->arena, j->request->use, j->bytes, j->size, &elf, err);
    if (status)
        return status;
    j->loaded->elf = elf;
    if (!elf->has_symbols || tctl_elf_exports(elf, SYMBOL))
        return TCTL_OK;
    for (int version = 2; version <= 9; version++) {
        char symbol[32];
        snprintf(symbol, sizeof symbol, SYMBOL_STEM "%d", version);
        if (tctl_elf_exports(elf, symbol))
            return tctl_fail(err, TCTL_EPLUGIN, "%s is built for ABI %d; this trainctl offers %d.%d", j->who,
                             version, TCTL_ABI_MAJOR, TCTL_ABI_MINOR);
    }
    return tctl_fail(err, TCTL_EPLUGIN, "'%s' is not a trainctl ABI 1 plugin: symbol '" SYMBOL "' not found",
                     j->request->use);
}

/* ---- loading ----------------------------------------------------------------------------------------- */

/* dlerror without the path in front, which the message has already. */
static const char *load_error(const job *j)
{
    const char *text = dlerror();
    size_t length = strlen(j->request->path);
    if (!text)
        return "the dynamic linker does not say why";
    if (strncmp(text, j->request->path, length) == 0 && strncmp(text + length, ": ", 2) == 0)
        text += length + 2;
    return text;
}

typedef struct object_list {
    tctl_buf names; /* each with a NUL behind it */
    uint32_t n;
} object_list;

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    object_list *list = arg;
    (void)size;
    tctl_buf_add(&list->names, info->dlpi_name, strlen(info->dlpi_name) + 1);
    list->n++;
    return 0;
}

static bool has_object(const object_list *list, const char *name)
{
    for (size_t at = 0; at < list->names.size; at += strlen(list->names.data + at) + 1) {
        if (strcmp(list->names.data + at, name) == 0)
            return true;
    }
    return false;
}

/* A note on what else came in with the plugin: its code ran too, and may be what is to blame. */
static void note_dependencies(const job *j, const object_list *before, tctl_error *err)
{
    object_list after = {TCTL_BUF_INIT, 0};
    tctl_buf text = TCTL_BUF_INIT;
    (void)dl_iterate_phdr(add_object, &after);
    for (size_t at = 0; at < after.names.size; at += strlen(after.names.data + at) + 1) {
        const char *name = after.names.data + at;
        if (!has_object(before, name) && strcmp(name, j->request->path) != 0)
            tctl_buf_add_format(&text, "%s'%s'", text.size ? ", " : "", tctl_path_base(name));
    }
    if (text.size && tctl_buf_text(&text))
        tctl_note(err, "loading it loaded %s too; one of them may have done it", tctl_buf_text(&text));
    tctl_buf_release(&text);
    tctl_buf_release(&after.names);
}

static tctl_status load(const job *j, void **ret_symbol, tctl_error *err)
{
    tctl_surroundings before;
    object_list objects = {TCTL_BUF_INIT, 0};
    tctl_status status = tctl_surroundings_capture(&before, err);
    if (status)
        return status;
    (void)dl_iterate_phdr(add_object, &objects);
    if (j->request->watch)
        j->request->watch(j->request->watch_arg, j->request->path);
    void *handle = dlopen(j->request->path, RTLD_NOW | RTLD_LOCAL);
    const char *reason = handle ? NULL : load_error(j);
    status = tctl_surroundings_check(&before, j->who, err);
    tctl_surroundings_release(&before);
    if (status)
        note_dependencies(j, &objects, err);
    else if (!handle)
        status = tctl_fail(err, TCTL_EPLUGIN, "cannot load plugin '%s': %s", j->request->use, reason);
    else if (!(*ret_symbol = dlsym(handle, SYMBOL)))
        status =
            tctl_fail(err, TCTL_EPLUGIN, "'%s' is not a trainctl ABI 1 plugin: symbol '" SYMBOL "' not found",
                      j->request->use);
    tctl_buf_release(&objects.names);
    return status; /* the handle is kept on purpose: nothing is ever unloaded */
}

/* ---- is it the file that was hashed? ----------------------------------------------------------------- */

/* Hexadecimal digits without a prefix, as /proc/self/maps has them; *at moves past them. */
static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else
            return value;
    }
}

/* The fields "device inode" of the mapping that holds `address`, as the kernel writes them. */
static bool find_mapping(const char *maps, const void *address, char out[64])
{
    for (const char *line = maps; *line;) {
        size_t length = strcspn(line, "\n");
        const char *at = line;
        uintptr_t from = read_hex(&at), to = 0;
        if (*at == '-') {
            at++;
            to = read_hex(&at);
        }
        if ((uintptr_t)address >= from && (uintptr_t)address < to) {
            for (int skipped = 0; skipped < 3 && *at; skipped++) /* " perms offset " */
                at += 1 + strcspn(at + 1, " \n");
            size_t device = strcspn(at + 1, " \n"), inode = strcspn(at + 1 + device + 1, " \n");
            snprintf(out, 64, "%.*s", (int)(device + 1 + inode), at + 1);
            return true;
        }
        line += length + (line[length] == '\n');
    }
    return false;
}

/* /proc/self/maps grows while it is read in pieces, so it is read at once into memory. */
static tctl_status read_maps(tctl_buf *maps, tctl_error *err)
{
    char chunk[16384];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tctl_fail_errno(err, errno, "cannot open '/proc/self/maps'");
    ssize_t n;
    while ((n = read(fd, chunk, sizeof chunk)) > 0 && maps->size < MAX_MAPS)
        tctl_buf_add(maps, chunk, (size_t)n);
    int errnum = errno;
    (void)close(fd);
    if (n < 0)
        return tctl_fail_errno(err, errnum, "cannot read '/proc/self/maps'");
    return maps->broken ? tctl_fail_memory(err, maps->size) : TCTL_OK;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static tctl_status check_identity(const job *j, const void *symbol, tctl_error *err)
{
    tctl_buf maps = TCTL_BUF_INIT;
    char hashed[64], loaded[64];
    struct stat now;
    tctl_status status = read_maps(&maps, err);
    if (status)
        goto out;
    if (!find_mapping(tctl_buf_text(&maps), j->bytes, hashed) ||
        !find_mapping(tctl_buf_text(&maps), symbol, loaded)) {
        status = tctl_fail(err, TCTL_EPLUGIN, "%s: its mapping is not in '/proc/self/maps'", j->who);
        goto out;
    }
    if (strcmp(hashed, loaded) != 0) {
        status = tctl_fail(
            err, TCTL_EPLUGIN,
            "%s was replaced while it was loaded: hashed was file %s, loaded is file %s (device and "
            "inode)",
            j->who, hashed, loaded);
        goto out;
    }
    if (fstat(j->fd, &now) != 0)
        status = tctl_fail_errno(err, errno, "cannot look at plugin '%s' again", j->request->use);
    else if (now.st_size != j->st.st_size || !same_time(&now.st_ctim, &j->st.st_ctim) ||
             !same_time(&now.st_mtim, &j->st.st_mtim))
        status = tctl_fail(err, TCTL_EPLUGIN, "%s was written to while it was loaded", j->who);
out:
    tctl_buf_release(&maps);
    return status;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

static tctl_status fill(job *j, const void *symbol, tctl_error *err)
{
    tctl_loaded *loaded = j->loaded;
    tctl_arena *arena = j->request->arena;
    loaded->plugin = symbol;
    loaded->use = tctl_arena_copy(arena, j->request->use, strlen(j->request->use));
    loaded->path = tctl_arena_copy(arena, j->request->path, strlen(j->request->path));
    loaded->build_id = loaded->elf->build_id;
    if (!loaded->use || !loaded->path)
        return tctl_fail_memory(err, strlen(j->request->path));
    return TCTL_OK;
}

tctl_status tctl_plugin_file_load(const tctl_plugin_file_request *request, tctl_loaded **ret, tctl_error *err)
{
    job j = {.request = request, .fd = -1};
    void *symbol = NULL;
    snprintf(j.who, sizeof j.who, "plugin '%.300s'", request->use);
    j.loaded = tctl_arena_take(request->arena, sizeof *j.loaded);
    tctl_status status = j.loaded ? TCTL_OK : tctl_fail_memory(err, sizeof *j.loaded);
    if (!status)
        status = open_and_hash(&j, err);
    if (!status)
        status = read_symbols(&j, err);
    if (!status)
        status = load(&j, &symbol, err);
    if (!status)
        status = check_identity(&j, symbol, err);
    if (!status)
        status = tctl_plugin_lint(symbol, j.who, err);
    if (!status)
        status = fill(&j, symbol, err);
    if (!status)
        *ret = j.loaded;
    if (j.bytes)
        (void)munmap(j.bytes, j.size);
    if (j.fd >= 0)
        (void)close(j.fd);
    return status;
}
