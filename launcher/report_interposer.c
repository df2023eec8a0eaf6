/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the interposer's report. See report_interposer.h.
 *
 * Everything is gathered in JSON objects by key (report_gather.c), so that what many processes say alike is there once,
 * and then put into arrays sorted by that key: the order in which processes happened to write does not show.
 */
#include "launcher/report_interposer.h"

#include <string.h>

#include "base/file.h"
#include "launcher/report_gather.h"

#define FILE_LIMIT ((size_t)40 << 20) /* the interposer itself ends at 32 MiB */
#define FULL_AT    ((size_t)16 << 20) /* and most processes at this */

/* ---- what it comes to ----------------------------------------------------------------------------------- */

/* The entry once, whoever says it. */
static void add_uncontrolled(json_t *map, const char *what, const char *why)
{
    if (what != NULL && json_object_get(map, what) == NULL)
        json_object_set_new(map, what, json_pack("{s:s, s:s}", "what", what, "why", why));
}

static void uncontrolled_event(json_t *map, const json_t *event)
{
    static const struct {
        const char *what, *words;
    } kinds[] = {
        {"static-program", "static program"},     {"privileged-program", "privileged program"},
        {"foreign-program", "foreign program"},   {"sanitizer-program", "program with a sanitizer"},
        {"without-preload", "unwatched program"}, {"unsorted", "order of directories in"},
    };
    const char *what = json_string_value(json_object_get(event, "what")),
               *subject = json_string_value(json_object_get(event, "subject")),
               *detail = json_string_value(json_object_get(event, "detail"));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tctl_buf text = TCTL_BUF_INIT;
        if (strcmp(what, kinds[i].what) == 0) {
            tctl_buf_add_format(&text, "%s '%s'", kinds[i].words, subject);
            add_uncontrolled(map, tctl_buf_text(&text), detail);
        }
        tctl_buf_release(&text);
    }
}

/* Counts the processes that never reported their end, and says whose they were. */
static json_int_t unreported(json_t *map, json_t *open)
{
    json_t *by_program = json_object(), *value;
    json_int_t sum = 0;
    const char *key;
    json_object_foreach(open, key, value)
    {
        json_int_t left = json_integer_value(json_object_get(value, "left"));
        const char *program = json_string_value(json_object_get(value, "program"));
        if (left <= 0 || program == NULL)
            continue;
        sum += left;
        tctl_gather_add(by_program, program, left);
    }
    json_object_foreach(by_program, key, value)
    {
        tctl_buf text = TCTL_BUF_INIT;
        json_int_t n = json_integer_value(value);
        tctl_buf_add_format(&text, "%" JSON_INTEGER_FORMAT " process%s of '%s'", n, n == 1 ? "" : "es", key);
        add_uncontrolled(
            map, tctl_buf_text(&text),
            "ended without a report (killed, or by a system call of its own): its libraries and counts "
            "are not known");
        tctl_buf_release(&text);
    }
    json_decref(by_program);
    return sum;
}

static tctl_status conclude(tctl_gathered *g, bool is_full, tctl_interposer_report *ret, tctl_error *err)
{
    json_t *map = json_object(), *events = tctl_gather_sorted(g->events),
           *programs = tctl_gather_sorted(g->programs), *event;
    size_t i;
    tctl_interposer_report made = {0};
    json_array_foreach(events, i, event)
    {
        uncontrolled_event(map, event);
    }
    json_int_t silent = unreported(map, g->open);
    if (is_full || g->cut)
        add_uncontrolled(map, "processes beyond the report's size",
                         "the report is full: later ones could not be added");
    if (g->malformed > 0)
        add_uncontrolled(map, "processes whose report is damaged", "a line could not be read");
    made.interposer = json_pack("{s:I, s:I, s:I, s:o, s:o}", "processes", g->processes, "unreported", silent,
                                "malformed", g->malformed, "programs", programs, "events", events);
    made.uncontrolled = tctl_gather_sorted(map);
    made.objects = tctl_gather_sorted(g->objects);
    json_decref(map);
    if (made.interposer == NULL || made.uncontrolled == NULL || made.objects == NULL) {
        tctl_interposer_report_release(&made);
        return tctl_fail_memory(err, 0);
    }
    *ret = made;
    return TCTL_OK;
}

tctl_status tctl_interposer_report_parse(const char *text, size_t size, tctl_interposer_report *ret,
                                         tctl_error *err)
{
    tctl_gathered g = {json_object(), json_object(), json_object(), json_object(), 0, 0, false};
    tctl_status st = TCTL_OK;
    if (g.programs == NULL || g.events == NULL || g.objects == NULL || g.open == NULL)
        st = tctl_fail_memory(err, 0);
    for (size_t at = 0; st == TCTL_OK && at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t n = newline == NULL ? size - at : (size_t)(newline - (text + at));
        if (n > 0)
            tctl_gather_line(&g, text + at, n);
        at += n + 1;
    }
    if (st == TCTL_OK)
        st = conclude(&g, size >= FULL_AT, ret, err);
    json_decref(g.programs);
    json_decref(g.events);
    json_decref(g.objects);
    json_decref(g.open);
    return st;
}

tctl_status tctl_interposer_report_read(const char *path, tctl_interposer_report *ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_status read = tctl_file_read(path, FILE_LIMIT, &text, NULL);
    tctl_interposer_report made = {0};
    tctl_status st = tctl_interposer_report_parse(text.data, text.size, &made, err);
    tctl_buf_release(&text);
    if (st != TCTL_OK)
        return st;
    if (json_integer_value(json_object_get(made.interposer, "processes")) == 0) {
        json_t *one = json_pack("{s:s, s:s}", "what", "the whole run", "why",
                                read == TCTL_OK || read == TCTL_ENOENT
                                    ? "no process reported that the interposer was loaded into it"
                                    : "the interposer's report can't be read");
        if (one == NULL || json_array_append_new(made.uncontrolled, one) != 0) {
            tctl_interposer_report_release(&made);
            return tctl_fail_memory(err, 0);
        }
    }
    *ret = made;
    return TCTL_OK;
}

void tctl_interposer_report_release(tctl_interposer_report *report)
{
    json_decref(report->interposer);
    json_decref(report->uncontrolled);
    json_decref(report->objects);
    *report = (tctl_interposer_report){0};
}
