/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The services that write files: artifacts, metrics, trace. See services.h.
 *
 * A full disk shows as TCTL_ENOSPC from the call that met it, and leaves whole files and whole lines behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "host/events.h"
#include "host/npy.h"
#include "host/services_private.h"
#include "manifest/digest.h"

/* ---- artifacts --------------------------------------------------------------------------------------- */

#define NAME_LIMIT 1024
#define PART_LIMIT 255

struct tctl_artifact {
    tctl_services *services;
    char *name, *partial; /* as the stage called it; the file that grows */
    int fd;
    tctl_status failed; /* a write went wrong: the file is not what was meant, so it cannot be committed */
};

static const char *fault_of_name(const char *name)
{
    if (!*name || strlen(name) > NAME_LIMIT)
        return *name ? "it is longer than 1024 bytes" : "it is empty";
    if (*name == '/')
        return "it is not relative to the output folder";
    for (const char *part = name; part;) {
        size_t length = strcspn(part, "/");
        if (length == 0)
            return "it has an empty part";
        if (length > PART_LIMIT)
            return "it has a part longer than 255 bytes";
        if ((length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0))
            return "it has a part '.' or '..'";
        part = part[length] ? part + length + 1 : NULL;
    }
    for (const char *c = name; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || *c == '\\')
            return "it has a control character or a backslash";
    }
    return NULL;
}

/* Takes the name, or fails if somebody has it. */
static tctl_status reserve_name(tctl_services *s, const char *name, tctl_error *err)
{
    for (uint32_t i = 0; i < s->n_artifacts; i++) {
        if (strcmp(s->artifacts[i], name) == 0)
            return tctl_fail(err, TCTL_EINVAL, "artifact '%s' was written already in this run", name);
    }
    if (s->n_artifacts == s->artifacts_room) {
        uint32_t room = s->artifacts_room ? s->artifacts_room * 2 : 16;
        const char **grown = realloc(s->artifacts, room * sizeof *grown);
        if (!grown)
            return tctl_fail_memory(err, room * sizeof *grown);
        s->artifacts = grown;
        s->artifacts_room = room;
    }
    const char *copy = tctl_arena_copy(s->arena, name, strlen(name));
    if (!copy)
        return tctl_fail_memory(err, strlen(name));
    s->artifacts[s->n_artifacts++] = copy;
    return TCTL_OK;
}

static void give_name_back(tctl_services *s, const char *name)
{
    (void)pthread_mutex_lock(&s->lock);
    for (uint32_t i = 0; i < s->n_artifacts; i++) {
        if (strcmp(s->artifacts[i], name) == 0) {
            s->artifacts[i] = s->artifacts[--s->n_artifacts];
            break;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void free_artifact(tctl_artifact *a, bool keep_name)
{
    if (!keep_name)
        give_name_back(a->services, a->name);
    if (a->fd >= 0)
        (void)close(a->fd);
    free(a->name);
    free(a->partial);
    free(a);
}

static tctl_status artifact_begin(const tctl_host *host, const char *name, tctl_artifact **ret,
                                  tctl_error *err)
{
    tctl_services *s = tctl_caller_of(host)->services;
    const char *fault = fault_of_name(name);
    if (fault)
        return tctl_fail(err, TCTL_EINVAL, "bad artifact name '%.200s': %s", name, fault);
    (void)pthread_mutex_lock(&s->lock);
    tctl_status status = reserve_name(s, name, err);
    (void)pthread_mutex_unlock(&s->lock);
    if (status)
        return status;
    tctl_artifact *a = calloc(1, sizeof *a);
    if (!a) {
        give_name_back(s, name);
        return tctl_fail_memory(err, sizeof *a);
    }
    a->services = s;
    a->fd = -1;
    a->name = strdup(name);
    if (!a->name) {
        give_name_back(s, name);
        free(a);
        return tctl_fail_memory(err, strlen(name));
    }
    if (asprintf(&a->partial, "%s/%" PRIuLEAST32, s->request.partial, atomic_fetch_add(&s->n_partial, 1)) <
        0) {
        a->partial = NULL;
        free_artifact(a, false);
        return tctl_fail_memory(err, strlen(name));
    }
    status = tctl_make_folders(s->request.partial, 0777, err);
    if (!status) {
        a->fd = open(a->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (a->fd < 0)
            status = tctl_fail_errno(err, errno, "cannot create artifact '%s' ('%s')", name, a->partial);
    }
    if (status)
        free_artifact(a, false);
    else
        *ret = a;
    return status;
}

static tctl_status artifact_write(tctl_artifact *a, const void *data, size_t size, tctl_error *err)
{
    tctl_status status = tctl_write_all(a->fd, data, size, a->name, err);
    if (status)
        a->failed = status;
    return status;
}

static void artifact_abandon(tctl_artifact *a)
{
    if (!a)
        return;
    (void)unlink(a->partial);
    free_artifact(a, false);
}

/* Durable under its own name: the bytes first, then the name, then the folders that have it. */
static tctl_status publish(tctl_artifact *a, const char *path, tctl_error *err)
{
    if (fsync(a->fd) != 0)
        return tctl_fail_errno(err, errno, "cannot make artifact '%s' durable", a->name);
    int fd = a->fd;
    a->fd = -1;
    if (close(fd) != 0)
        return tctl_fail_errno(err, errno, "cannot close artifact '%s'", a->name);
    char *folder = strdup(path);
    if (!folder)
        return tctl_fail_memory(err, strlen(path));
    *strrchr(folder, '/') = '\0';
    tctl_status status = tctl_make_folders(folder, 0777, err);
    free(folder);
    if (status)
        return status;
    if (renameat2(AT_FDCWD, a->partial, AT_FDCWD, path, RENAME_NOREPLACE) != 0) {
        int errnum = errno;
        /* Some file systems cannot promise not to replace. Nobody else writes here while the run goes. */
        if (errnum == EINVAL && !tctl_path_exists(path))
            errnum = rename(a->partial, path) == 0 ? 0 : errno;
        if (errnum)
            return tctl_fail_errno(err, errnum, "cannot move artifact '%s' into the output folder", a->name);
    }
    return tctl_fsync_parent(path, err);
}

static tctl_status artifact_commit(tctl_artifact *a, tctl_error *err)
{
    char *path = NULL;
    tctl_status status = TCTL_OK;
    if (a->failed)
        status = tctl_fail(err, a->failed, "artifact '%s' was not written whole", a->name);
    else if (asprintf(&path, "%s/%s", a->services->request.out, a->name) < 0)
        path = NULL;
    if (!status && !path)
        status = tctl_fail_memory(err, strlen(a->name));
    if (!status)
        status = publish(a, path, err);
    if (status)
        (void)unlink(a->partial);
    free(path);
    free_artifact(a, !status);
    return status;
}

const tctl_artifacts tctl_artifact_service = {.struct_size = sizeof(tctl_artifacts),
                                              .begin = artifact_begin,
                                              .write = artifact_write,
                                              .commit = artifact_commit,
                                              .abandon = artifact_abandon};

/* ---- metrics ----------------------------------------------------------------------------------------- */

static json_t *number(double value)
{
    if (isfinite(value))
        return json_real(value);
    return json_string(isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

static json_t *numbers(const tctl_metric *metrics, uint32_t n)
{
    json_t *object = json_object();
    for (uint32_t i = 0; object && i < n; i++) {
        if (json_object_set_new(object, metrics[i].name, number(metrics[i].value)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* Appends whole lines only: what a full disk cut off is taken back. */
static tctl_status append_line(tctl_services *s, const tctl_buf *line, tctl_error *err)
{
    if (s->metrics_fd < 0 && !s->closed)
        s->metrics_fd = open(s->request.metrics, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (s->metrics_fd < 0)
        return tctl_fail_errno(err, s->closed ? EBADF : errno, "cannot open '%s'", s->request.metrics);
    struct stat st;
    if (fstat(s->metrics_fd, &st) != 0)
        return tctl_fail_errno(err, errno, "cannot look at '%s'", s->request.metrics);
    tctl_status status = tctl_write_all(s->metrics_fd, line->data, line->size, s->request.metrics, err);
    if (status && ftruncate(s->metrics_fd, st.st_size) != 0)
        tctl_note(err, "the last line of '%s' is incomplete", s->request.metrics);
    return status;
}

static tctl_status metrics_emit(const tctl_host *host, uint64_t epoch, uint64_t step,
                                const tctl_metric *values, uint32_t n_values, const tctl_metric *timings,
                                uint32_t n_timings, tctl_error *err)
{
    tctl_services *s = tctl_caller_of(host)->services;
    tctl_buf line = TCTL_BUF_INIT, event = TCTL_BUF_INIT;
    json_t *root = json_pack("{s:I, s:I, s:o, s:o}", "epoch", (json_int_t)epoch, "step", (json_int_t)step,
                             "values", numbers(values, n_values), "timings", numbers(timings, n_timings));
    tctl_status status = root ? tctl_json_canonical(root, &line, err) : tctl_fail_memory(err, 0);
    if (!status) {
        tctl_buf_add_format(&event, "{\"metrics\":%s}", tctl_buf_text(&line));
        tctl_buf_add_char(&line, '\n');
        if (!tctl_buf_text(&line) || !tctl_buf_text(&event))
            status = tctl_fail_memory(err, line.size);
    }
    if (!status) {
        (void)pthread_mutex_lock(&s->lock);
        status = append_line(s, &line, err);
        (void)pthread_mutex_unlock(&s->lock);
    }
    if (!status)
        tctl_event_send(s->request.events_fd, tctl_buf_text(&event), true);
    json_decref(root);
    tctl_buf_release(&line);
    tctl_buf_release(&event);
    return status;
}

const tctl_metrics tctl_metrics_service = {.struct_size = sizeof(tctl_metrics), .emit = metrics_emit};

/* ---- trace ------------------------------------------------------------------------------------------- */

static tctl_status trace_begin(const tctl_host *host, const tctl_trace_field *fields, uint32_t n,
                               tctl_error *err)
{
    tctl_services *s = tctl_caller_of(host)->services;
    if (s->trace || s->closed)
        return tctl_fail(err, TCTL_EINVAL, "the trace was begun already");
    return tctl_trace_create(s->request.trace, fields, n, &s->trace, err);
}

static tctl_status trace_record(const tctl_host *host, uint64_t step, const tctl_trace_value *values,
                                tctl_error *err)
{
    tctl_services *s = tctl_caller_of(host)->services;
    if (!s->trace)
        return tctl_fail(err, TCTL_EINVAL, "the trace was not begun");
    if (step <= s->trace_step)
        return tctl_fail(err, TCTL_EINVAL, "step %" PRIu64 " in the trace after step %" PRIu64, step,
                         s->trace_step);
    tctl_status status = tctl_trace_append(s->trace, step, values, err);
    if (!status)
        s->trace_step = step;
    return status;
}

static int32_t trace_wanted(const tctl_host *host, uint64_t step)
{
    const tctl_trace_wish *wish = &tctl_caller_of(host)->services->request.wish;
    bool ends = wish->stops && step >= wish->stop, dumps = wish->dumps && step == wish->dump;
    if (step == 0)
        return wish->stops || wish->dumps || wish->every > 0 ? TCTL_TRACE_WANT_RECORD : 0;
    bool records = ends || dumps || (wish->every > 0 && step % wish->every == 0);
    return (records ? TCTL_TRACE_WANT_RECORD : 0) | (dumps ? TCTL_TRACE_WANT_TENSORS : 0) |
           (ends ? TCTL_TRACE_WANT_END : 0);
}

static tctl_status trace_tensor(const tctl_host *host, uint64_t step, const char *field,
                                const tctl_tensor *tensor, tctl_error *err)
{
    const tctl_services *s = tctl_caller_of(host)->services;
    const char *fault = fault_of_name(field);
    if (fault)
        return tctl_fail(err, TCTL_EINVAL, "bad name of a field '%.200s': %s", field, fault);
    if (!s->request.wish.folder)
        return tctl_fail(err, TCTL_EINVAL, "nobody wants the tensor '%s'", field);
    char *path = NULL;
    if (asprintf(&path, "%s/dump-%" PRIu64 "/%s.npy", s->request.wish.folder, step, field) < 0)
        return tctl_fail_memory(err, strlen(field));
    tctl_status status = tctl_npy_write(path, tensor, err);
    free(path);
    return status;
}

const tctl_trace tctl_trace_service = {.struct_size = sizeof(tctl_trace),
                                       .begin = trace_begin,
                                       .record = trace_record,
                                       .digest = tctl_xxh128,
                                       .wanted = trace_wanted,
                                       .tensor = trace_tensor};

/* ---- the end ----------------------------------------------------------------------------------------- */

tctl_status tctl_services_close(tctl_services *s, tctl_error *err)
{
    tctl_status status = tctl_trace_close(s->trace, err);
    s->trace = NULL;
    s->closed = true;
    if (s->metrics_fd >= 0) {
        if (fsync(s->metrics_fd) != 0 && !status)
            status = tctl_fail_errno(err, errno, "cannot make '%s' durable", s->request.metrics);
        (void)close(s->metrics_fd);
        s->metrics_fd = -1;
    }
    if (s->request.partial)
        (void)rmdir(s->request.partial); /* stays if something unfinished is in it */
    return status;
}
