/* SPDX-License-Identifier: Apache-2.0 */
/* See inspect.h. The child writes one line of JSON into a pipe: the description, or the error. */
#include "launcher/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "host/describe.h"

#define SECONDS 30 /* that loading may take */
#define LIMIT   ((size_t)16 << 20)

tctl_status tctl_inspect_plugins(tctl_plugins **ret, tctl_error *err)
{
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0)
        return tctl_fail_errno(err, errno, "cannot read the link '/proc/self/exe'");
    program[n] = '\0';
    return tctl_plugins_create(program, ret, err);
}

static json_t *error_json(const tctl_error *err)
{
    json_t *notes = json_array();
    for (uint32_t i = 0; notes && i < err->n_notes; i++)
        (void)json_array_append_new(notes, json_string(err->notes[i]));
    return json_pack("{s:{s:i, s:s, s:s, s:o}}", "error", "code", (int)err->code, "message", err->message,
                     "hint", err->hint, "notes", notes);
}

static int TCTL_COLD describe(tctl_plugins *plugins, const char *use, const char *folder, int fd)
{
    const tctl_loaded *loaded = NULL;
    tctl_error err;
    tctl_error_clear(&err);
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(SECONDS);
    tctl_status status = tctl_plugins_load(plugins, use, folder, &loaded, &err);
    json_t *json = status ? error_json(&err) : tctl_plugin_json(loaded);
    tctl_buf text = TCTL_BUF_INIT;
    status = json ? tctl_json_canonical(json, &text, &err) : TCTL_ENOMEM;
    if (!status)
        status = tctl_write_all(fd, text.data, text.size, "pipe", &err);
    return status ? 1 : 0; /* the process ends: nothing to free */
}

static tctl_status read_all(int fd, tctl_buf *text, tctl_error *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n == 0)
            return text->broken ? tctl_fail_memory(err, text->size) : TCTL_OK;
        if (n < 0 && errno != EINTR)
            return tctl_fail_errno(err, errno, "cannot read what the plugin's process says");
        if (n > 0 && text->size < LIMIT)
            tctl_buf_add(text, chunk, (size_t)n);
    }
}

static tctl_status fail_death(const char *use, int status, tctl_error *err)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return tctl_fail(err, TCTL_EPLUGIN, "plugin '%s' was not loaded after %d s", use, SECONDS);
    if (WIFSIGNALED(status))
        return tctl_fail(err, TCTL_EPLUGIN, "plugin '%s' crashed when it was loaded (%s)", use,
                         strsignal(WTERMSIG(status)));
    return tctl_fail(err, TCTL_EPLUGIN, "plugin '%s' ended the process when it was loaded", use);
}

static tctl_status take_error(const json_t *error, tctl_error *err)
{
    size_t i;
    const json_t *note;
    const char *hint = json_string_value(json_object_get(error, "hint"));
    tctl_status code = (tctl_status)json_integer_value(json_object_get(error, "code"));
    tctl_fail(err, code ? code : TCTL_EPLUGIN, "%s", json_string_value(json_object_get(error, "message")));
    json_array_foreach(json_object_get(error, "notes"), i, note)
        tctl_note(err, "%s", json_string_value(note));
    if (hint && *hint)
        tctl_hint(err, "%s", hint);
    return code ? code : TCTL_EPLUGIN;
}

/* The description or the error out of what the child said and how it ended. */
static tctl_status take_answer(const char *use, const tctl_buf *text, int wait_status, json_t **ret,
                               tctl_error *err)
{
    json_t *root = NULL;
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0 || text->size == 0)
        return fail_death(use, wait_status, err);
    tctl_status status = tctl_json_parse(use, text->data, text->size, &root, err);
    if (status)
        return status;
    const json_t *error = json_object_get(root, "error");
    if (error)
        status = take_error(error, err);
    else
        *ret = json_incref(root);
    json_decref(root);
    return status;
}

tctl_status tctl_inspect(tctl_plugins *plugins, const char *use, const char *folder, json_t **ret,
                         tctl_error *err)
{
    int ends[2], wait_status = 0;
    tctl_buf text = TCTL_BUF_INIT;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return tctl_fail_errno(err, errno, "cannot make a pipe");
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(describe(plugins, use, folder, ends[1]));
    int errnum = errno;
    (void)close(ends[1]);
    if (child < 0) {
        (void)close(ends[0]);
        return tctl_fail_errno(err, errnum, "cannot start a process");
    }
    tctl_status status = read_all(ends[0], &text, err);
    (void)close(ends[0]);
    while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR)
        continue;
    if (!status)
        status = take_answer(use, &text, wait_status, ret, err);
    tctl_buf_release(&text);
    return status;
}
