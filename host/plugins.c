/* SPDX-License-Identifier: Apache-2.0 */
/* See plugins.h: where plugins are, and which are loaded. plugin_file.c opens and loads one file. */
#include "host/plugins.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "host/plugin_file.h"

#define MAX_FOLDERS 64
#define SUFFIX      ".so"

struct tctl_plugins {
    tctl_arena *arena;
    const char *folders[MAX_FOLDERS]; /* searched in order */
    uint32_t n_folders;
    const tctl_loaded **loaded;
    uint32_t n_loaded, room;
    void (*watch)(void *arg, const char *path);
    void *watch_arg;
};

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static tctl_status add_folder(tctl_plugins *plugins, const char *path, size_t length, tctl_error *err)
{
    if (length == 0)
        return TCTL_OK;
    if (plugins->n_folders == MAX_FOLDERS)
        return tctl_fail(err, TCTL_EINVAL, "TRAINCTL_PLUGIN_PATH has more than %d folders", MAX_FOLDERS - 1);
    const char *copy = tctl_arena_copy(plugins->arena, path, length);
    if (!copy)
        return tctl_fail_memory(err, length);
    plugins->folders[plugins->n_folders++] = copy;
    return TCTL_OK;
}

static tctl_status find_folders(tctl_plugins *plugins, const char *program, tctl_error *err)
{
    tctl_status status = TCTL_OK;
    const char *list = getenv("TRAINCTL_PLUGIN_PATH");
    while (list && *list && !status) {
        size_t length = strcspn(list, ":");
        status = add_folder(plugins, list, length, err);
        list += length + (list[length] == ':');
    }
    if (status)
        return status;
    const char *beside = tctl_path_folder(plugins->arena, program);
    const char *own = beside ? tctl_arena_format(plugins->arena, "%s/../lib/trainctl/plugins", beside) : NULL;
    if (own && !is_folder(own)) /* the worker stands next to them */
        own = tctl_arena_format(plugins->arena, "%s/plugins", beside);
    return own ? add_folder(plugins, own, strlen(own), err) : tctl_fail_memory(err, strlen(program));
}

tctl_status tctl_plugins_create(const char *program, tctl_plugins **ret, tctl_error *err)
{
    tctl_plugins *plugins = calloc(1, sizeof *plugins);
    if (!plugins)
        return tctl_fail_memory(err, sizeof *plugins);
    plugins->arena = tctl_arena_create();
    tctl_status status =
        plugins->arena ? find_folders(plugins, program, err) : tctl_fail_memory(err, sizeof *plugins);
    if (status)
        tctl_plugins_destroy(plugins);
    else
        *ret = plugins;
    return status;
}

void tctl_plugins_destroy(tctl_plugins *plugins)
{
    if (!plugins)
        return;
    tctl_arena_destroy(plugins->arena);
    free(plugins->loaded);
    free(plugins);
}

void tctl_plugins_watch(tctl_plugins *plugins, void (*fn)(void *arg, const char *path), void *arg)
{
    plugins->watch = fn;
    plugins->watch_arg = arg;
}

/* ---- where a name leads ------------------------------------------------------------------------------ */

static tctl_status fail_unknown(const tctl_plugins *plugins, const char *use, tctl_error *err)
{
    tctl_arena *arena = tctl_arena_create();
    const char *const *names = NULL;
    uint32_t n = 0;
    (void)tctl_fail(err, TCTL_ENOENT, "there is no plugin '%s'", use);
    if (arena && !tctl_plugins_names(plugins, arena, &names, &n, NULL)) {
        const char *near = tctl_suggest(use, names, n);
        if (near)
            tctl_hint(err, "did you mean '%s'?", near);
    }
    tctl_buf folders = TCTL_BUF_INIT;
    for (uint32_t i = 0; i < plugins->n_folders; i++)
        tctl_buf_add_format(&folders, "%s'%s'", i ? ", " : "", plugins->folders[i]);
    const char *text = tctl_buf_text(&folders);
    tctl_note(err, "looked for '%s%s' in %s", use, SUFFIX, text ? text : "every folder");
    tctl_buf_release(&folders);
    tctl_arena_destroy(arena);
    return TCTL_ENOENT;
}

/* The real path of `use`; *ret is PATH_MAX bytes. */
static tctl_status locate(tctl_plugins *plugins, const char *use, const char *folder, char *ret,
                          tctl_error *err)
{
    if (strchr(use, '/')) {
        const char *path = tctl_path_join(plugins->arena, folder, use);
        if (!path)
            return tctl_fail_memory(err, strlen(use));
        if (!realpath(path, ret)) {
            int errnum = errno;
            return tctl_fail_errno(err, errnum, "cannot open plugin '%s'", use);
        }
        return TCTL_OK;
    }
    for (uint32_t i = 0; i < plugins->n_folders && *use && *use != '.'; i++) {
        const char *path = tctl_arena_format(plugins->arena, "%s/%s%s", plugins->folders[i], use, SUFFIX);
        if (!path)
            return tctl_fail_memory(err, strlen(use));
        if (realpath(path, ret))
            return TCTL_OK;
        if (errno != ENOENT && errno != ENOTDIR)
            return tctl_fail_errno(err, errno, "cannot open plugin '%s'", path);
    }
    return fail_unknown(plugins, use, err);
}

/* ---- the list of what is loaded ---------------------------------------------------------------------- */

const tctl_loaded *tctl_plugins_loaded(const tctl_plugins *plugins, uint32_t i, uint32_t *ret_n)
{
    if (ret_n)
        *ret_n = plugins->n_loaded;
    return i < plugins->n_loaded ? plugins->loaded[i] : NULL;
}

const tctl_loaded *tctl_plugins_entry(const tctl_plugins *plugins, const tctl_plugin *plugin)
{
    for (uint32_t i = 0; i < plugins->n_loaded; i++) {
        if (plugins->loaded[i]->plugin == plugin)
            return plugins->loaded[i];
    }
    return NULL;
}

static tctl_status remember(tctl_plugins *plugins, const tctl_loaded *loaded, tctl_error *err)
{
    if (plugins->n_loaded == plugins->room) {
        uint32_t room = plugins->room ? plugins->room * 2 : 16;
        const tctl_loaded **grown = realloc(plugins->loaded, room * sizeof *grown);
        if (!grown)
            return tctl_fail_memory(err, room * sizeof *grown);
        plugins->loaded = grown;
        plugins->room = room;
    }
    plugins->loaded[plugins->n_loaded++] = loaded;
    return TCTL_OK;
}

static tctl_status check_name(const tctl_loaded *loaded, const char *use, tctl_error *err)
{
    if (strchr(use, '/') || strcmp(use, loaded->plugin->name) == 0)
        return TCTL_OK;
    return tctl_fail(err, TCTL_EPLUGIN, "plugin '%s' calls itself '%s'; the file must be called '%s%s'", use,
                     loaded->plugin->name, loaded->plugin->name, SUFFIX);
}

tctl_status tctl_plugins_load(tctl_plugins *plugins, const char *use, const char *folder,
                              const tctl_loaded **ret, tctl_error *err)
{
    char path[PATH_MAX];
    tctl_status status = locate(plugins, use, folder, path, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < plugins->n_loaded; i++) {
        if (strcmp(plugins->loaded[i]->path, path) == 0) {
            *ret = plugins->loaded[i];
            return check_name(*ret, use, err);
        }
    }
    tctl_loaded *loaded = NULL;
    const tctl_plugin_file_request request = {.arena = plugins->arena,
                                              .use = use,
                                              .path = path,
                                              .watch = plugins->watch,
                                              .watch_arg = plugins->watch_arg};
    status = tctl_plugin_file_load(&request, &loaded, err);
    if (!status)
        status = check_name(loaded, use, err);
    if (!status)
        status = remember(plugins, loaded, err);
    if (!status)
        *ret = loaded;
    return status;
}

static tctl_status find(void *impl, const char *use, const char *folder, const tctl_plugin **ret,
                        tctl_error *err)
{
    const tctl_loaded *loaded = NULL;
    tctl_status status = tctl_plugins_load(impl, use, folder, &loaded, err);
    if (!status)
        *ret = loaded->plugin;
    return status;
}

tctl_plugin_finder tctl_plugins_finder(tctl_plugins *plugins)
{
    return (tctl_plugin_finder){.impl = plugins, .find = find};
}

/* ---- names without loading --------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

typedef struct name_list {
    tctl_arena *arena;
    const char **names;
    uint32_t n, room;
} name_list;

static tctl_status add_name(name_list *list, const char *file, size_t length, tctl_error *err)
{
    if (list->n == list->room) {
        uint32_t room = list->room ? list->room * 2 : 32;
        const char **grown = tctl_arena_take_array(list->arena, room, sizeof *grown);
        if (!grown)
            return tctl_fail_memory(err, room * sizeof *grown);
        if (list->n)
            memcpy(grown, list->names, list->n * sizeof *grown);
        list->names = grown;
        list->room = room;
    }
    const char *copy = tctl_arena_copy(list->arena, file, length);
    if (!copy)
        return tctl_fail_memory(err, length);
    list->names[list->n++] = copy;
    return TCTL_OK;
}

static tctl_status list_folder(name_list *list, const char *folder, tctl_error *err)
{
    DIR *dir = opendir(folder);
    if (!dir)
        return TCTL_OK; /* a folder of the path that is not there has no plugins */
    tctl_status status = TCTL_OK;
    for (struct dirent *entry; !status && (entry = readdir(dir));) {
        size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);
        if (length > suffix && entry->d_name[0] != '.' &&
            strcmp(entry->d_name + length - suffix, SUFFIX) == 0)
            status = add_name(list, entry->d_name, length - suffix, err);
    }
    (void)closedir(dir);
    return status;
}

tctl_status tctl_plugins_names(const tctl_plugins *plugins, tctl_arena *arena, const char *const **ret,
                               uint32_t *ret_n, tctl_error *err)
{
    name_list list = {.arena = arena};
    for (uint32_t i = 0; i < plugins->n_folders; i++) {
        tctl_status status = list_folder(&list, plugins->folders[i], err);
        if (status)
            return status;
    }
    if (list.n)
        qsort(list.names, list.n, sizeof *list.names, compare_names);
    uint32_t n = 0;
    for (uint32_t i = 0; i < list.n; i++) { /* the same name in two folders is one plugin: the first */
        if (n == 0 || strcmp(list.names[n - 1], list.names[i]) != 0)
            list.names[n++] = list.names[i];
    }
    *ret = list.names;
    *ret_n = n;
    return TCTL_OK;
}
