/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drawing on standard error. Invariant: `drawn` says whether the cursor is behind a progress line, which is cleared
 * before anything else is printed.
 */
#include "launcher/view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REDRAW_NS   50000000
#define MAX_COLUMNS 8

struct tctl_view {
    bool quiet, terminal, colour, drawn, mid_line;
    int64_t last_ns;
    uint32_t n_columns; /* of the curve; 0: no line yet */
    char names[MAX_COLUMNS][32];
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

tctl_view *tctl_view_create(bool quiet, bool colour)
{
    tctl_view *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    v->quiet = quiet;
    v->colour = colour;
    v->terminal = isatty(STDERR_FILENO) == 1;
    return v;
}

static void clear(tctl_view *v)
{
    if (v->drawn)
        fputs("\r\033[K", stderr);
    v->drawn = false;
}

static void fresh_line(tctl_view *v)
{
    clear(v);
    if (v->mid_line)
        fputc('\n', stderr);
    v->mid_line = false;
}

void tctl_view_destroy(tctl_view *v)
{
    if (v == NULL)
        return;
    fresh_line(v);
    free(v);
}

void tctl_view_output(tctl_view *v, const char *data, size_t size)
{
    if (v->quiet || size == 0)
        return;
    clear(v);
    fwrite(data, 1, size, stderr);
    v->mid_line = data[size - 1] != '\n';
}

void tctl_view_say(tctl_view *v, const char *fmt, ...)
{
    va_list ap;
    if (v == NULL)
        return;
    fresh_line(v);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

void tctl_view_progress(tctl_view *v, const char *what, uint64_t done, uint64_t total, const char *unit)
{
    int64_t now = now_ns();
    if (v->quiet || !v->terminal || v->mid_line || (now - v->last_ns < REDRAW_NS && done != total))
        return;
    v->last_ns = now;
    fprintf(stderr, "\r\033[K%s %" PRIu64, what, done);
    if (total > 0)
        fprintf(stderr, "/%" PRIu64 " %s (%u %%)", total, unit,
                (unsigned)(100.0 * (double)done / (double)total));
    else
        fprintf(stderr, " %s", unit);
    fflush(stderr);
    v->drawn = true;
}

/* ---- the curve ------------------------------------------------------------------------------------------ */

static void add_columns(tctl_view *v, const json_t *numbers, const char *prefix)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)numbers, key, value)
    {
        bool there = v->n_columns == MAX_COLUMNS || strncmp(key, prefix, strlen(prefix)) != 0;
        for (uint32_t i = 0; i < v->n_columns; i++)
            there = there || strcmp(v->names[i], key) == 0;
        if (!there)
            snprintf(v->names[v->n_columns++], sizeof v->names[0], "%s", key);
    }
}

/* Once, from the first line: training, then test, then the time. All else is in metrics.jsonl. */
static void curve_heading(tctl_view *v, const json_t *values, const json_t *timings)
{
    static const char *const order[] = {"train_loss", "train_", "test_loss", "test_"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        add_columns(v, values, order[i]);
    add_columns(v, timings, "seconds");
    fprintf(stderr, "%s%6s", v->colour ? "\033[1m" : "", "epoch");
    for (uint32_t i = 0; i < v->n_columns; i++) {
        char shown[sizeof v->names[0]];
        snprintf(shown, sizeof shown, "%s", v->names[i]);
        for (char *c = shown; *c != '\0'; c++)
            *c = *c == '_' ? ' ' : *c;
        fprintf(stderr, "  %14s", shown);
    }
    fprintf(stderr, "%s\n", v->colour ? "\033[0m" : "");
}

static void curve_value(const char *name, const json_t *value)
{
    double x = json_number_value(value);
    if (json_is_string(value))
        fprintf(stderr, "  %14s", json_string_value(value));
    else if (!json_is_number(value))
        fprintf(stderr, "  %14s", "-");
    else if (strstr(name, "accuracy") != NULL)
        fprintf(stderr, "  %12.2f %%", 100 * x);
    else if (strstr(name, "seconds") != NULL)
        fprintf(stderr, "  %12.1f s", x);
    else
        fprintf(stderr, "  %14.5g", x);
}

static void curve_line(tctl_view *v, const json_t *metrics)
{
    const json_t *values = json_object_get(metrics, "values"), *timings = json_object_get(metrics, "timings");
    fresh_line(v);
    if (v->n_columns == 0)
        curve_heading(v, values, timings);
    fprintf(stderr, "%6" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(metrics, "epoch")));
    for (uint32_t i = 0; i < v->n_columns; i++) {
        const json_t *value = json_object_get(values, v->names[i]);
        curve_value(v->names[i], value != NULL ? value : json_object_get(timings, v->names[i]));
    }
    fputc('\n', stderr);
}

void tctl_view_event(tctl_view *v, const json_t *event)
{
    const json_t *progress = json_object_get(event, "progress"), *metrics = json_object_get(event, "metrics");
    if (v->quiet)
        return;
    if (json_is_string(progress)) {
        const char *unit = json_string_value(json_object_get(event, "unit"));
        json_int_t done = json_integer_value(json_object_get(event, "done"));
        json_int_t total = json_integer_value(json_object_get(event, "total"));
        tctl_view_progress(v, json_string_value(progress), done < 0 ? 0 : (uint64_t)done,
                           total < 0 ? 0 : (uint64_t)total, unit == NULL ? "" : unit);
    } else if (json_is_object(metrics)) {
        curve_line(v, metrics);
    }
}
