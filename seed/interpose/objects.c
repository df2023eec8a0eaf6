/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared objects of this process, those included that were closed again. Looked for at each dlopen, before a fork
 * and at the end; the identity (device, inode, size, time) is that of the file when it was found, and the build-id
 * comes from memory, so that the launcher sees whether what lies at the path is what was loaded.
 *
 * A fork's child never asks the loader by itself: another thread of the parent may have held its lock. What it opens
 * goes through dlopen, which asks in any case.
 */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "manifest/elf.h"
#include "seed/interpose/interpose.h"

enum { CHUNK_OBJECTS = 64, CHUNKS = 256, TEXT_CHUNK = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tctl_object *chunks[CHUNKS]; /* of CHUNK_OBJECTS each: they never move */
static _Atomic size_t n_objects;
static size_t n_identified;          /* those whose file has been looked at */
static unsigned long long last_adds; /* the loader's own count, when we last looked */
static char *text;                   /* where the next path goes */
static size_t text_left;
static bool is_child; /* of a fork, and has opened nothing of its own */

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

size_t tctl_objects_number(void)
{
    return atomic_load_explicit(&n_objects, memory_order_acquire);
}

tctl_object *tctl_objects_at(size_t i)
{
    return &chunks[i / CHUNK_OBJECTS][i % CHUNK_OBJECTS];
}

static const char *keep_text(const char *path)
{
    size_t size = strlen(path) + 1;
    if (size > TEXT_CHUNK)
        return NULL;
    if (size > text_left) {
        char *fresh = map(TEXT_CHUNK);
        if (fresh == NULL)
            return NULL;
        text = fresh;
        text_left = TEXT_CHUNK;
    }
    char *kept = text;
    memcpy(kept, path, size);
    text += size;
    text_left -= size;
    return kept;
}

static void mapped_build_id(const struct dl_phdr_info *info, tctl_object *o)
{
    char hex[TCTL_BUILD_ID_HEX];
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const void *notes = (const void *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
        if (p->p_type == PT_NOTE && tctl_elf_notes_build_id(notes, p->p_memsz, p->p_align, false, hex) &&
            strlen(hex) < sizeof o->build_id) {
            memcpy(o->build_id, hex, strlen(hex) + 1);
            return;
        }
    }
}

static bool is_known(uint64_t base, const char *path)
{
    size_t n = tctl_objects_number();
    for (size_t i = 0; i < n; i++) {
        const tctl_object *o = tctl_objects_at(i);
        if (o->base == base && strcmp(o->path, path) == 0)
            return true;
    }
    return false;
}

typedef struct visit {
    unsigned long long adds;
    size_t place;
} visit;

/* The loader holds its lock around this. */
static int add(struct dl_phdr_info *info, size_t size, void *arg)
{
    visit *v = arg;
    size_t n = tctl_objects_number();
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs)) {
        v->adds = info->dlpi_adds;
        if (v->adds == last_adds)
            return 1; /* as it was */
    }
    bool is_program = v->place++ == 0;
    const char *path = is_program ? tctl_this.program : info->dlpi_name;
    if (path == NULL || strchr(path, '/') == NULL) /* the kernel's vdso is no file */
        return 0;
    if (is_known(info->dlpi_addr, path))
        return 0;
    if (n == (size_t)CHUNK_OBJECTS * CHUNKS)
        return 1;
    if (n % CHUNK_OBJECTS == 0 && chunks[n / CHUNK_OBJECTS] == NULL)
        chunks[n / CHUNK_OBJECTS] = map(CHUNK_OBJECTS * sizeof(tctl_object));
    if (chunks[n / CHUNK_OBJECTS] == NULL)
        return 1;
    tctl_object *o = tctl_objects_at(n);
    *o = (tctl_object){.path = keep_text(path), .base = info->dlpi_addr};
    if (o->path == NULL)
        return 1;
    mapped_build_id(info, o);
    atomic_store_explicit(&n_objects, n + 1, memory_order_release);
    return 0;
}

/* Relative paths (a program's own "./libx.so") are good while the working directory is the one of the loading. */
static void identify(tctl_object *o)
{
    struct stat st;
    char absolute[PATH_MAX + 2];
    if (stat(o->path, &st) != 0)
        return;
    o->device = st.st_dev;
    o->inode = st.st_ino;
    o->size = (uint64_t)st.st_size;
    o->seconds = st.st_mtim.tv_sec;
    o->nanoseconds = st.st_mtim.tv_nsec;
    if (o->path[0] == '/' || getcwd(absolute, PATH_MAX) == NULL)
        return;
    size_t length = strlen(absolute), more = strlen(o->path);
    if (length + more + 2 > sizeof absolute)
        return;
    absolute[length] = '/';
    memcpy(absolute + length + 1, o->path, more + 1);
    const char *kept = keep_text(absolute);
    o->path = kept == NULL ? o->path : kept;
}

bool tctl_objects_update(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return false;
    int saved = errno;
    visit v = {.adds = 0};
    dl_iterate_phdr(add, &v);
    last_adds = v.adds;
    is_child = false;
    while (n_identified < tctl_objects_number())
        identify(tctl_objects_at(n_identified++));
    errno = saved;
    pthread_mutex_unlock(&lock);
    return true;
}

bool tctl_objects_update_at_end(void)
{
    return is_child || tctl_objects_update();
}

void tctl_objects_fork(bool prepare, bool child)
{
    if (prepare) {
        if (!is_child)
            tctl_objects_update();
        pthread_mutex_lock(&lock);
        return;
    }
    if (child) {
        is_child = true;
        for (size_t i = 0; i < tctl_objects_number(); i++)
            tctl_objects_at(i)->told = true;
    }
    pthread_mutex_unlock(&lock);
}
