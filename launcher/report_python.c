/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the Python shim's report. See report_python.h.
 */
#include "launcher/report_python.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define REPORT_LIMIT  ((size_t)16 << 20)
#define LINE_LIMIT    16384u
#define MEMBERS_LIMIT 1000u
#define REPORT_NAME   "python.jsonl"

typedef struct reader {
    json_t *settings, *versions, *notes, *uncontrolled;
    uint32_t processes, malformed;
    bool no_memory;
} reader;

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool has(const json_t *list, const json_t *item)
{
    size_t i;
    json_t *one;
    json_array_foreach((json_t *)(uintptr_t)list, i, one)
    {
        if (json_equal(one, item))
            return true;
    }
    return false;
}

/* Takes `item`. A list that is full stays as it is. */
static bool append_once(json_t *list, json_t *item)
{
    if (item == NULL)
        return false;
    if (json_array_size(list) >= MEMBERS_LIMIT || has(list, item)) {
        json_decref(item);
        return true;
    }
    return json_array_append_new(list, item) == 0;
}

/* Unless it is there. False: memory is out. */
static bool add_uncontrolled(json_t *uncontrolled, const char *what, const char *why)
{
    return append_once(uncontrolled, json_pack("{s:s, s:s}", "what", what, "why", why));
}

/* ---- one line ------------------------------------------------------------------------------------------ */

static bool take_setting(reader *r, const json_t *line)
{
    const char *what = text_of(line, "what"), *value = text_of(line, "value");
    if (what == NULL || value == NULL)
        return false;
    if (json_object_size(r->settings) < MEMBERS_LIMIT)
        r->no_memory |= json_object_set_new(r->settings, what, json_string(value)) != 0;
    return true;
}

static bool take_note(reader *r, const json_t *line)
{
    const char *what = text_of(line, "what"), *detail = text_of(line, "detail"),
               *file = text_of(line, "file");
    const json_t *number = json_object_get(line, "line");
    if (what == NULL || detail == NULL || file == NULL || !json_is_integer(number))
        return false;
    r->no_memory |= !append_once(r->notes, json_pack("{s:s, s:s, s:s, s:I}", "what", what, "detail", detail,
                                                     "file", file, "line", json_integer_value(number)));
    return true;
}

static bool take_start(reader *r, const json_t *line)
{
    const char *version = text_of(line, "python");
    if (version == NULL)
        return false;
    r->processes++;
    r->no_memory |= !append_once(r->versions, json_string(version));
    return true;
}

static bool take_uncontrolled(reader *r, const json_t *line)
{
    const char *what = text_of(line, "what"), *why = text_of(line, "why");
    if (what == NULL || why == NULL)
        return false;
    r->no_memory |= !add_uncontrolled(r->uncontrolled, what, why);
    return true;
}

static void take_line(reader *r, const char *text, size_t size)
{
    static const struct {
        const char *event;
        bool (*take)(reader *, const json_t *);
    } events[] = {{"start", take_start},
                  {"set", take_setting},
                  {"note", take_note},
                  {"uncontrolled", take_uncontrolled}};
    json_t *line = NULL;
    bool taken = false;
    if (size <= LINE_LIMIT && tctl_json_parse(REPORT_NAME, text, size, &line, NULL) == TCTL_OK) {
        const char *event = text_of(line, "event");
        for (size_t i = 0; event != NULL && i < sizeof events / sizeof events[0]; i++) {
            if (strcmp(event, events[i].event) == 0)
                taken = events[i].take(r, line);
        }
    }
    json_decref(line);
    r->malformed += !taken;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(json_string_value(*(json_t *const *)a), json_string_value(*(json_t *const *)b));
}

/* The order in which processes reported is nobody's business. */
static json_t *sorted(const json_t *texts)
{
    size_t n = json_array_size(texts);
    json_t *ret = json_array(), **all = calloc(n + 1, sizeof(json_t *));
    for (size_t i = 0; all != NULL && i < n; i++)
        all[i] = json_array_get(texts, i);
    if (all != NULL)
        qsort(all, n, sizeof(json_t *), by_text);
    for (size_t i = 0; all != NULL && i < n; i++)
        json_array_append(ret, all[i]);
    free(all);
    return ret;
}

tctl_status tctl_report_python_parse(const char *text, size_t size, json_t *uncontrolled, json_t **ret,
                                     tctl_error *err)
{
    reader r = {.settings = json_object(),
                .versions = json_array(),
                .notes = json_array(),
                .uncontrolled = uncontrolled};
    const char *end = text + size;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline == NULL ? end : newline;
        take_line(&r, text, (size_t)(stop - text));
        text = stop + 1;
    }
    json_t *made =
        json_pack("{s:i, s:o, s:O, s:O, s:i}", "processes", (int)r.processes, "versions", sorted(r.versions),
                  "settings", r.settings, "notes", r.notes, "malformed", (int)r.malformed);
    json_decref(r.settings);
    json_decref(r.versions);
    json_decref(r.notes);
    if (made == NULL || r.no_memory) {
        json_decref(made);
        return tctl_fail_memory(err, size);
    }
    *ret = made;
    return TCTL_OK;
}

/* ---- of an attempt ------------------------------------------------------------------------------------- */

/* "python3", "/usr/bin/python3.11"; not "python3-config". */
static bool is_python(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    return strncmp(name, "python", 6) == 0 && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

static json_int_t python_programs(const json_t *interposer)
{
    json_int_t n = 0;
    size_t i;
    json_t *program;
    json_array_foreach(json_object_get(interposer, "programs"), i, program)
    {
        const char *path = text_of(program, "path");
        if (path != NULL && is_python(path))
            n += json_integer_value(json_object_get(program, "processes"));
    }
    return n;
}

static bool name_silent(json_int_t programs, json_int_t reported, json_t *uncontrolled)
{
    char why[160];
    if (programs <= reported)
        return true;
    snprintf(why, sizeof why,
             "%lld of %lld Python processes ran without the shim: started with -I, -E or -S, or in another "
             "environment",
             (long long)(programs - reported), (long long)programs);
    return add_uncontrolled(uncontrolled, "python", why);
}

tctl_status tctl_report_python_read(tctl_arena *arena, const char *folder, const json_t *interposer,
                                    json_t *uncontrolled, json_t **ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    json_t *made = NULL;
    tctl_status st = TCTL_OK;
    const char *path = tctl_path_join(arena, folder, "report/" REPORT_NAME);
    if (path == NULL)
        return tctl_fail_memory(err, 0);
    if (tctl_path_exists(path)) {
        if (tctl_file_read(path, REPORT_LIMIT, &text, NULL) == TCTL_OK)
            st = tctl_report_python_parse(text.data, text.size, uncontrolled, &made, err);
        else if (!add_uncontrolled(uncontrolled, "python", "the shim's report can't be read"))
            st = tctl_fail_memory(err, 0);
    }
    json_int_t reported = json_integer_value(json_object_get(made, "processes"));
    if (st == TCTL_OK && !name_silent(python_programs(interposer), reported, uncontrolled))
        st = tctl_fail_memory(err, 0);
    tctl_buf_release(&text);
    if (st == TCTL_OK)
        *ret = made;
    else
        json_decref(made);
    return st;
}
