/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding runs in the store, and telling which of them died.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "manifest/store.h"
#include "manifest/supervisor.h"

#define STATE_LIMIT ((size_t)1 << 20)

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* True if somebody still looks after the run. */
static bool is_supervised(tctl_arena *arena, const char *path, const json_t *state)
{
    if (json_is_true(json_object_get(state, "locked"))) {
        const char *name = tctl_path_join(arena, path, "lock");
        int fd = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
        int held = fd < 0 ? -1 : flock(fd, LOCK_SH | LOCK_NB);
        int why = errno;
        if (fd >= 0)
            close(fd);
        if (fd >= 0 && held == 0)
            return false;
        if (fd >= 0 && why == EWOULDBLOCK)
            return true;
    }
    return tctl_supervisor_alive(json_object_get(state, "supervisor"));
}

static void settle(tctl_arena *arena, tctl_run *run)
{
    const char *state = tctl_run_state(run);
    if (tctl_state_is_final(state))
        return;
    if (is_supervised(arena, run->path, run->state))
        return;
    const char *reason = tctl_arena_format(arena, "the launcher ended while the run was %s", state);
    json_object_set_new(run->state, "state", json_string(TCTL_STATE_DIED));
    if (reason != NULL)
        json_object_set_new(run->state, "reason", json_string(reason));
}

/* TCTL_ENOENT if the folder holds no run. */
static tctl_status load_run(tctl_arena *arena, const char *path, tctl_run *ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_run run = TCTL_RUN_NONE;
    const char *name = tctl_path_join(arena, path, "state.json");
    run.path = tctl_arena_copy(arena, path, strlen(path));
    if (name == NULL || run.path == NULL)
        return tctl_fail_memory(err, PATH_MAX);
    run.id = tctl_path_base(run.path);
    tctl_status st = tctl_file_read(name, STATE_LIMIT, &text, err);
    if (st == TCTL_OK)
        st = tctl_json_parse(name, tctl_buf_text(&text), text.size, &run.state, err);
    tctl_buf_release(&text);
    if (st == TCTL_OK && !json_is_string(json_object_get(run.state, "state"))) {
        json_decref(run.state);
        return tctl_fail(err, TCTL_EFORMAT, "'%s' has no 'state'", name);
    }
    if (st != TCTL_OK)
        return st;
    settle(arena, &run);
    *ret = run;
    return TCTL_OK;
}

/* ---- all runs ------------------------------------------------------------------------------------------ */

/* The names in <store>/runs, unsorted; no folder is no names. */
static tctl_status read_names(tctl_arena *arena, const char *store, const char ***ret, uint32_t *ret_n,
                              tctl_error *err)
{
    const char *runs = tctl_path_join(arena, store, "runs");
    if (runs == NULL)
        return tctl_fail_memory(err, PATH_MAX);
    *ret = NULL;
    *ret_n = 0;
    DIR *dir = opendir(runs);
    if (dir == NULL)
        return errno == ENOENT ? TCTL_OK : tctl_fail_errno(err, errno, "cannot read '%s'", runs);
    uint32_t n = 0, room = 0;
    const char **names = NULL;
    tctl_status st = TCTL_OK;
    for (struct dirent *e; st == TCTL_OK && (e = readdir(dir)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        if (n == room) {
            uint32_t grown = room == 0 ? 64 : room * 2;
            const char **more = tctl_arena_take_array(arena, grown, sizeof *more);
            if (more != NULL && n > 0)
                memcpy(more, names, n * sizeof *more);
            names = more;
            room = grown;
        }
        const char *copy = names == NULL ? NULL : tctl_arena_copy(arena, e->d_name, strlen(e->d_name));
        if (copy == NULL)
            st = tctl_fail_memory(err, room * sizeof *names);
        else
            names[n++] = copy;
    }
    closedir(dir);
    if (st == TCTL_OK) {
        *ret = names;
        *ret_n = n;
    }
    return st;
}

static int by_start(const void *a, const void *b)
{
    const tctl_run *x = a, *y = b;
    uint64_t s = tctl_run_started(x), t = tctl_run_started(y);
    return s != t ? (s < t ? -1 : 1) : strcmp(x->id, y->id);
}

tctl_status tctl_run_list(tctl_arena *arena, const char *store, tctl_run **ret, uint32_t *ret_n,
                          tctl_error *err)
{
    const char **names = NULL;
    uint32_t n_names = 0, n = 0;
    tctl_status st = read_names(arena, store, &names, &n_names, err);
    if (st != TCTL_OK)
        return st;
    tctl_run *runs = tctl_arena_take_array(arena, (size_t)n_names + 1, sizeof *runs);
    if (runs == NULL)
        return tctl_fail_memory(err, n_names * sizeof *runs);
    for (uint32_t i = 0; i < n_names; i++) {
        const char *path = tctl_arena_format(arena, "%s/runs/%s", store, names[i]);
        if (path != NULL && load_run(arena, path, &runs[n], NULL) == TCTL_OK)
            n++;
    }
    qsort(runs, n, sizeof *runs, by_start);
    *ret = runs;
    *ret_n = n;
    return TCTL_OK;
}

static tctl_status find_last(tctl_arena *arena, const char *store, uint64_t back, tctl_run *ret,
                             tctl_error *err)
{
    tctl_run *runs = NULL;
    uint32_t n = 0;
    tctl_status st = tctl_run_list(arena, store, &runs, &n, err);
    if (st != TCTL_OK)
        return st;
    if (back < n)
        *ret = runs[n - 1 - back];
    else if (n == 0)
        st = tctl_fail(err, TCTL_ENOENT, "there are no runs in '%s'", store);
    else
        st = tctl_fail(err, TCTL_ENOENT, "there are only %" PRIu32 " runs in '%s'", n, store);
    for (uint32_t i = 0; i < n; i++) {
        if (back >= n || i != n - 1 - back)
            tctl_run_release(&runs[i]);
    }
    return st;
}

static tctl_status find_prefix(tctl_arena *arena, const char *store, const char *prefix, tctl_run *ret,
                               tctl_error *err)
{
    const char **names = NULL;
    const char *matches[TCTL_ERROR_NOTES];
    uint32_t n_names = 0, n = 0;
    tctl_status st = read_names(arena, store, &names, &n_names, err);
    for (uint32_t i = 0; st == TCTL_OK && i < n_names; i++) {
        if (strncmp(names[i], prefix, strlen(prefix)) != 0)
            continue;
        if (n < TCTL_ERROR_NOTES)
            matches[n] = names[i];
        n++;
    }
    if (st != TCTL_OK)
        return st;
    if (n == 1) {
        const char *path = tctl_arena_format(arena, "%s/runs/%s", store, matches[0]);
        return path == NULL ? tctl_fail_memory(err, PATH_MAX) : load_run(arena, path, ret, err);
    }
    if (n == 0) {
        st = tctl_fail(err, TCTL_ENOENT, "there is no run '%s' in '%s'", prefix, store);
        tctl_hint(err, "'trainctl ls' lists the runs");
        return st;
    }
    st =
        tctl_fail(err, TCTL_EINVAL, "'%s' could be any of %" PRIu32 " runs: write more of its id", prefix, n);
    for (uint32_t i = 0; i < n && i < TCTL_ERROR_NOTES; i++)
        tctl_note(err, "%s", matches[i]);
    return st;
}

tctl_status tctl_run_find(tctl_arena *arena, const char *store, const char *which, tctl_run *ret,
                          tctl_error *err)
{
    uint64_t back = 0;
    if (strcmp(which, "last") == 0)
        return find_last(arena, store, 0, ret, err);
    if (strncmp(which, "last~", 5) == 0 && tctl_parse_uint(which + 5, strlen(which + 5), &back))
        return find_last(arena, store, back, ret, err);
    if (strchr(which, '/') != NULL || strcmp(which, ".") == 0 || strcmp(which, "..") == 0) {
        char real[PATH_MAX];
        if (realpath(which, real) == NULL)
            return tctl_fail_errno(err, errno, "cannot find the run directory '%s'", which);
        return load_run(arena, real, ret, err);
    }
    const char *path = tctl_arena_format(arena, "%s/runs/%s", store, which);
    if (path == NULL)
        return tctl_fail_memory(err, PATH_MAX);
    if (which[0] != '\0' && is_folder(path))
        return load_run(arena, path, ret, err);
    return find_prefix(arena, store, which, ret, err);
}
