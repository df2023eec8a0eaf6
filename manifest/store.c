/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run store: reserving and stating. See store.h for the rules, store_find.c for finding, manifest.c for what is
 * sealed.
 */
#include "manifest/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/num.h"
#include "manifest/path_json.h"
#include "manifest/supervisor.h"

#define RANDOM_CHARS  12 /* 60 bits */
#define MAX_NAME      64
#define MAX_ATTEMPTS  16
#define FOLDER_MODE   0777 /* less the umask: a store may be a group's */
#define DEFAULT_STORE ".trainctl"
#define RESERVE       "reserve"
#define RESERVE_BYTES 65536

/* ---- where --------------------------------------------------------------------------------------------- */

/* 200 processes may do this at once: every step is one that may already have been done. */
static tctl_status make_store(tctl_arena *arena, const char *store, tctl_error *err)
{
    const char *runs = tctl_path_join(arena, store, "runs");
    const char *ignore = tctl_path_join(arena, store, ".gitignore");
    if (runs == NULL || ignore == NULL)
        return tctl_fail_memory(err, PATH_MAX);
    tctl_status st = tctl_make_folders(runs, FOLDER_MODE, err);
    if (st != TCTL_OK)
        return st;
    int fd = open(ignore, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno == EEXIST ? TCTL_OK : tctl_fail_errno(err, errno, "cannot create '%s'", ignore);
    st = tctl_write_all(fd, "*\n", 2, ignore, err);
    close(fd);
    return st;
}

/* The folder at or above `start` that has an entry `name`, or NULL. */
static const char *nearest_with(tctl_arena *arena, const char *start, const char *name)
{
    for (const char *at = start; at != NULL;) {
        const char *candidate = tctl_path_join(arena, at, name);
        if (candidate != NULL && tctl_path_exists(candidate))
            return at;
        const char *above = tctl_path_folder(arena, at);
        at = above == NULL || strcmp(above, at) == 0 ? NULL : above;
    }
    return NULL;
}

tctl_status tctl_store_locate(tctl_arena *arena, const char *folder, bool create, const char **ret,
                              tctl_error *err)
{
    const char *given = getenv("TRAINCTL_STORE");
    char cwd[PATH_MAX];
    if (getcwd(cwd, sizeof cwd) == NULL)
        return tctl_fail_errno(err, errno, "cannot tell the working directory");
    const char *start = tctl_path_join(arena, cwd, folder);
    char real[PATH_MAX];
    if (start != NULL && realpath(start, real) != NULL) /* without "." and links in it */
        start = tctl_arena_copy(arena, real, strlen(real));
    const char *store = given != NULL && given[0] != '\0' ? tctl_path_join(arena, cwd, given) : NULL;
    if (store == NULL && start != NULL) {
        const char *home = nearest_with(arena, start, DEFAULT_STORE);
        if (home == NULL)
            home = nearest_with(arena, start, ".git");
        store = tctl_path_join(arena, home != NULL ? home : start, DEFAULT_STORE);
    }
    if (store == NULL)
        return tctl_fail_memory(err, PATH_MAX);
    tctl_status st = create ? make_store(arena, store, err) : TCTL_OK;
    if (st == TCTL_OK)
        *ret = store;
    return st;
}

/* ---- one run ------------------------------------------------------------------------------------------- */

void tctl_run_release(tctl_run *run)
{
    json_decref(run->state);
    run->state = NULL;
    if (run->lock >= 0)
        close(run->lock);
    run->lock = -1;
}

const char *tctl_run_state(const tctl_run *run)
{
    const char *state = json_string_value(json_object_get(run->state, "state"));
    return state != NULL ? state : "unknown";
}

static uint64_t number_of(const json_t *state, const char *key)
{
    const char *text = json_string_value(json_object_get(state, key));
    uint64_t v = 0;
    return text != NULL && tctl_parse_uint(text, strlen(text), &v) ? v : 0;
}

uint64_t tctl_run_started(const tctl_run *run)
{
    return number_of(run->state, "started");
}

static json_t *now_json(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec);
    return json_string(text);
}

/* Space that is given back when the disk is full, so that the state can still say so. */
static void keep_reserve(tctl_arena *arena, const char *path)
{
    const char *name = tctl_path_join(arena, path, RESERVE);
    int fd = name == NULL ? -1 : open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    (void)!posix_fallocate(fd, 0, RESERVE_BYTES); /* none is no reason to fail */
    close(fd);
}

static void drop_reserve(tctl_arena *arena, const char *path)
{
    const char *name = tctl_path_join(arena, path, RESERVE);
    if (name != NULL)
        unlink(name);
}

bool tctl_state_is_final(const char *state)
{
    return strcmp(state, TCTL_STATE_PREPARING) != 0 && strcmp(state, TCTL_STATE_RUNNING) != 0;
}

static tctl_status write_state(const tctl_run *run, tctl_error *err)
{
    tctl_arena *arena = tctl_arena_create();
    tctl_buf text = TCTL_BUF_INIT;
    const char *path = arena == NULL ? NULL : tctl_path_join(arena, run->path, "state.json");
    tctl_status st =
        path == NULL ? tctl_fail_memory(err, PATH_MAX) : tctl_json_pretty(run->state, &text, err);
    if (st == TCTL_OK && text.broken)
        st = tctl_fail_memory(err, text.size);
    if (st == TCTL_OK) {
        bool is_final = tctl_state_is_final(tctl_run_state(run));
        if (is_final)
            drop_reserve(arena, run->path);
        /* After a power cut nobody looks after a run any more, whatever its state was. */
        st = is_final ? tctl_file_replace(path, text.data, text.size, 0666, err)
                      : tctl_file_put(path, text.data, text.size, 0666, err);
    }
    tctl_buf_release(&text);
    tctl_arena_destroy(arena);
    return st;
}

static tctl_status make_id(tctl_arena *arena, const char *name, const char **ret, tctl_error *err)
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
    uint8_t bytes[RANDOM_CHARS];
    char random[RANDOM_CHARS + 1], safe[MAX_NAME + 1];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return tctl_fail_errno(err, errno, "cannot get random bytes for a run id");
    for (size_t i = 0; i < RANDOM_CHARS; i++)
        random[i] = alphabet[bytes[i] & 31];
    random[RANDOM_CHARS] = '\0';
    size_t n = 0;
    for (; name[n] != '\0' && n < MAX_NAME; n++) {
        char c = name[n];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                    (c == '.' && n > 0);
        safe[n] = fine ? c : '-';
    }
    safe[n] = '\0';
    const char *id = tctl_arena_format(arena, "%s-%s", n > 0 && safe[0] != '-' ? safe : "run", random);
    if (id == NULL)
        return tctl_fail_memory(err, MAX_NAME);
    *ret = id;
    return TCTL_OK;
}

/* The fd that holds the lock; -1 where the file system can't lock, which is no reason to fail. */
static int hold(tctl_arena *arena, const char *path)
{
    const char *name = tctl_path_join(arena, path, "lock");
    int fd = name == NULL ? -1 : open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

tctl_status tctl_run_create(tctl_arena *arena, const char *store, const char *name, tctl_run *ret,
                            tctl_error *err)
{
    tctl_run run = TCTL_RUN_NONE;
    tctl_status st = TCTL_OK;
    for (int attempt = 0; run.path == NULL; attempt++) {
        st = make_id(arena, name, &run.id, err);
        if (st != TCTL_OK)
            return st;
        const char *path = tctl_arena_format(arena, "%s/runs/%s", store, run.id);
        if (path == NULL)
            return tctl_fail_memory(err, PATH_MAX);
        if (mkdir(path, FOLDER_MODE) == 0)
            run.path = path;
        else if (errno != EEXIST || attempt >= MAX_ATTEMPTS)
            return tctl_fail_errno(err, errno, "cannot create the run directory '%s'", path);
    }
    run.lock = hold(arena, run.path);
    keep_reserve(arena, run.path);
    run.state = json_pack("{s:i, s:s, s:s, s:o, s:o, s:b}", "format", 1, "id", run.id, "state",
                          TCTL_STATE_PREPARING, "started", now_json(), "supervisor", tctl_supervisor_self(),
                          "locked", (int)(run.lock >= 0));
    st = run.state == NULL ? tctl_fail_memory(err, 0) : write_state(&run, err);
    if (st != TCTL_OK) {
        tctl_run_release(&run);
        return st;
    }
    *ret = run;
    return TCTL_OK;
}

tctl_status tctl_run_set_state(tctl_run *run, const char *state, const char *reason, int exit_code,
                               tctl_error *err)
{
    json_object_set_new(run->state, "state", json_string(state));
    if (reason != NULL)
        json_object_set_new(run->state, "reason", tctl_text_to_json(reason));
    if (exit_code >= 0)
        json_object_set_new(run->state, "exit_code", json_integer(exit_code));
    if (tctl_state_is_final(state))
        json_object_set_new(run->state, "finished", now_json());
    return write_state(run, err);
}
