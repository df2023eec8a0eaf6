/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlopen: what it loads is noted, and the floating-point environment is as before when it returns.
 *
 * libc's dlopen looks at who calls it: a name without a slash is searched in the caller's RUNPATH, and the caller would
 * now be us. So for a caller that has one, its folders are searched here, in libc's order; what we cannot do as libc
 * does ('$' in the name, RPATH, glibc-hwcaps folders) is handed over by a jump, with the caller's return address, and
 * watched at the next call.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "seed/interpose/interpose.h"

TCTL_REAL(dlopen)
TCTL_REAL(dlmopen)

enum { HERE, ELSEWHERE, UNCLEAR };

/* The dynamic section's strings of the object that holds an address; NULL for a static program's. */
static const char *run_path_of(const void *caller, const char **ret_origin, bool *ret_has_rpath)
{
    Dl_info info;
    struct link_map *map = NULL;
    *ret_has_rpath = false;
    *ret_origin = NULL;
    if (dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL || map->l_ld == NULL)
        return NULL;
    const char *strings = NULL;
    uint64_t run_path = 0, rpath = 0;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) /* the loader has made an address of it */
            strings = (const char *)(uintptr_t)d->d_un.d_ptr;
        else if (d->d_tag == DT_RUNPATH)
            run_path = d->d_un.d_val;
        else if (d->d_tag == DT_RPATH)
            rpath = d->d_un.d_val;
    }
    *ret_origin = map->l_name[0] != '\0' ? map->l_name : tctl_this.program;
    *ret_has_rpath = rpath != 0 && run_path == 0;
    return run_path == 0 || strings == NULL ? NULL : strings + run_path;
}

static bool put(char *ret, size_t *at, const char *text, size_t length)
{
    if (*at + length >= PATH_MAX)
        return false;
    memcpy(ret + *at, text, length);
    *at += length;
    ret[*at] = '\0';
    return true;
}

/* One folder of a list, with $ORIGIN filled in. False for what we do not know ($LIB, $PLATFORM, an empty entry). */
static bool expand(const char *item, size_t length, const char *origin, char *ret, size_t *at)
{
    *at = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length;) {
        size_t token = 0;
        if (length - i >= 9 && strncmp(item + i, "${ORIGIN}", 9) == 0)
            token = 9;
        else if (length - i >= 7 && strncmp(item + i, "$ORIGIN", 7) == 0)
            token = 7;
        else if (item[i] == '$')
            return false;
        const char *slash = token == 0 ? NULL : strrchr(origin, '/');
        if (token > 0 && (slash == NULL || !put(ret, at, origin, (size_t)(slash - origin))))
            return false;
        if (token == 0 && !put(ret, at, item + i, 1))
            return false;
        i += token > 0 ? token : 1;
    }
    return true;
}

static bool exists_in(const char *folders, const char *name, const char *origin, char *ret, bool *unclear)
{
    for (const char *item = folders; item != NULL && *item != '\0';) {
        size_t length = strcspn(item, ":;"), at;
        if (!expand(item, length, origin, ret, &at)) {
            *unclear = true;
            return false;
        }
        size_t folder = at;
        if (put(ret, &at, "/glibc-hwcaps", 13) && access(ret, F_OK) == 0) {
            *unclear = true;
            return false;
        }
        at = folder;
        if (put(ret, &at, "/", 1) && put(ret, &at, name, strlen(name)) && access(ret, R_OK) == 0)
            return true;
        item += length + (item[length] != '\0');
    }
    return false;
}

/* What `file` means to the caller: itself, or a path in `ret`, or something that only libc can say. */
static int resolve(const char *file, const void *caller, char ret[PATH_MAX])
{
    const char *origin;
    bool has_rpath, unclear = false;
    if (file == NULL || *file == '\0')
        return HERE;
    if (strchr(file, '/') != NULL)
        return strchr(file, '$') == NULL ? HERE : UNCLEAR;
    const char *run_path = run_path_of(caller, &origin, &has_rpath);
    if (has_rpath)
        return UNCLEAR;
    if (run_path == NULL)
        return HERE;
    void *loaded = real_dlopen()(file, RTLD_LAZY | RTLD_NOLOAD); /* by soname */
    if (loaded != NULL) {
        dlclose(loaded);
        return HERE;
    }
    dlerror();
    const char *first = getenv("LD_LIBRARY_PATH"); /* comes before RUNPATH */
    if (first != NULL && exists_in(first, file, origin, ret, &unclear))
        return HERE;
    if (!unclear && exists_in(run_path, file, origin, ret, &unclear))
        return ELSEWHERE;
    return unclear ? UNCLEAR : HERE;
}

/* ---- the calls ------------------------------------------------------------------------------------------ */

/* Of a load that we handed over: what was there before, to be looked at by the next call on this thread. */
static _Thread_local struct {
    bool waits;
    tctl_fp was;
    size_t first;
} handed_over;

static void check_handed_over(void)
{
    if (!handed_over.waits)
        return;
    handed_over.waits = false;
    tctl_objects_update();
    tctl_fp_restore(&handed_over.was, handed_over.first, "a library that was loaded before");
}

static tctl_fp before(size_t *first)
{
    if (tctl_this.watch_fp)
        check_handed_over();
    tctl_objects_update();
    *first = tctl_objects_number();
    return tctl_fp_get();
}

static void after(const tctl_fp *was, size_t first, const void *handle, const char *file)
{
    int saved = errno;
    if (handle != NULL)
        tctl_objects_update();
    if (tctl_this.watch_fp && file != NULL)
        tctl_fp_restore(was, first, file);
    errno = saved;
}

/* Two registers: no local of dlopen's may have an address, or its last call is none that can be a jump. */
typedef struct outcome {
    void *handle;
    uintptr_t is_done;
} outcome;

__attribute__((noinline)) static outcome load_watched(const char *file, int mode, const void *caller)
{
    char path[PATH_MAX];
    size_t first;
    tctl_fp was = before(&first);
    int how = resolve(file, caller, path);
    if (how == UNCLEAR) {
        handed_over.waits = tctl_this.watch_fp;
        handed_over.was = was;
        handed_over.first = first;
        return (outcome){NULL, false};
    }
    const char *meant = how == ELSEWHERE ? path : file;
    void *handle = real_dlopen()(meant, mode);
    after(&was, first, handle, meant);
    return (outcome){handle, true};
}

TCTL_EXPORT void *dlopen(const char *file, int mode)
{
    outcome done = load_watched(file, mode, __builtin_return_address(0));
    if (done.is_done)
        return done.handle;
    return real_dlopen()(file, mode); /* a jump: CMakeLists.txt asks for it, and a test looks */
}

TCTL_EXPORT void *dlmopen(Lmid_t space, const char *file, int mode)
{
    char path[PATH_MAX];
    size_t first;
    tctl_fp was = before(&first);
    int how = resolve(file, __builtin_return_address(0), path);
    const char *meant = how == ELSEWHERE ? path : file;
    void *handle = real_dlmopen()(space, meant, mode);
    after(&was, first, handle, meant);
    return handle;
}
