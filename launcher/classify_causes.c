/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What went in that differs, for classify.h: code, machine, envelope, libraries, data, in that order.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "launcher/classify_internal.h"
#include "manifest/compare.h"
#include "manifest/environment.h"

#define VALUE_WIDTH 60
#define MAX_CAUSES  100

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

bool tctl_evidence_both(const tctl_evidence *e, const char *key, const json_t **was, const json_t **is)
{
    *was = json_object_get(e->was, key);
    *is = json_object_get(e->is, key);
    return *was != NULL && *is != NULL && !json_is_null(*was) && !json_is_null(*is);
}

static void TCTL_PRINTF(3, 4) add_cause(json_t *causes, const char *stage, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    json_t *sentence = json_vsprintf(fmt, ap);
    va_end(ap);
    if (json_array_size(causes) < MAX_CAUSES)
        json_array_append_new(causes, json_pack("{s:s, s:o}", "stage", stage, "what", sentence));
    else
        json_decref(sentence);
}

/* How much of a text, in whole characters, fits. */
static size_t prefix(const char *text, size_t room)
{
    size_t n = 0, size = strlen(text), length;
    uint32_t character;
    while (n < size && (length = tctl_utf8_decode(text + n, size - n, &character)) > 0 && n + length <= room)
        n += length;
    return n;
}

/* A value as a sentence has it, cut where it is long. */
static const char *value_text(const json_t *value, char block[static VALUE_WIDTH + 8])
{
    tctl_buf text = TCTL_BUF_INIT;
    if (value == NULL || json_is_null(value))
        tctl_buf_add_text(&text, "absent");
    else if (json_is_string(value))
        tctl_buf_add_format(&text, "'%s'", json_string_value(value));
    else
        tctl_json_canonical(value, &text, NULL);
    const char *whole = tctl_buf_text(&text) == NULL ? "?" : tctl_buf_text(&text);
    snprintf(block, VALUE_WIDTH + 8, "%.*s%s", (int)prefix(whole, VALUE_WIDTH), whole,
             strlen(whole) > VALUE_WIDTH ? "…" : "");
    tctl_buf_release(&text);
    return block;
}

static void look_at_code(const tctl_evidence *e, json_t *causes)
{
    const json_t *was, *is;
    if (tctl_evidence_both(e, "recipe", &was, &is)) {
        json_t *list = tctl_compare_json(was, is, 1);
        if (json_array_size(list) > 0)
            add_cause(causes, "code", "the recipe differs: '%s'", text_of(json_array_get(list, 0), "path"));
        json_decref(list);
    }
    if (tctl_evidence_both(e, "code", &was, &is)) {
        was = json_object_get(was, "digest");
        is = json_object_get(is, "digest");
        if (json_is_string(was) && json_is_string(is) && !json_equal(was, is))
            add_cause(causes, "code", "the code differs");
    }
}

static void look_at_machine(const tctl_evidence *e, json_t *causes)
{
    const json_t *was, *is, *one;
    size_t i;
    if (!tctl_evidence_both(e, "environment", &was, &is))
        return;
    json_t *list = tctl_environment_differences(was, is);
    json_array_foreach(list, i, one)
    {
        char a[VALUE_WIDTH + 8], b[VALUE_WIDTH + 8];
        add_cause(causes, "environment", "another machine class: '%s' was %s, is %s", text_of(one, "field"),
                  value_text(json_object_get(one, "was"), a), value_text(json_object_get(one, "is"), b));
    }
    json_decref(list);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* One cause for all thread counts, since one number of the spec sets them all; one for each other variable. */
static void look_at_variables(const json_t *was, const json_t *is, json_t *causes)
{
    json_t *list = tctl_compare_json(was, is, MAX_CAUSES);
    const json_t *one, *threads = NULL;
    char a[VALUE_WIDTH + 8], b[VALUE_WIDTH + 8];
    size_t i, n_threads = 0;
    json_array_foreach(list, i, one)
    {
        if (!ends_with(text_of(one, "path"), "_NUM_THREADS"))
            continue;
        threads = threads == NULL ? one : threads;
        n_threads++;
    }
    if (threads != NULL)
        add_cause(causes, "environment", "thread counts: %s was %s, is %s%s", text_of(threads, "path"),
                  value_text(json_object_get(threads, "a"), a), value_text(json_object_get(threads, "b"), b),
                  n_threads > 1 ? ", and so are others" : "");
    json_array_foreach(list, i, one)
    {
        if (!ends_with(text_of(one, "path"), "_NUM_THREADS"))
            add_cause(causes, "environment", "variable '%s' was %s, is %s", text_of(one, "path"),
                      value_text(json_object_get(one, "a"), a), value_text(json_object_get(one, "b"), b));
    }
    json_decref(list);
}

static void look_at_envelope(const tctl_evidence *e, json_t *causes)
{
    static const char *const members[] = {"aslr", "umask", "core_limit"};
    const json_t *was, *is, *one;
    char a[VALUE_WIDTH + 8], b[VALUE_WIDTH + 8];
    size_t k;
    if (tctl_evidence_both(e, "envelope", &was, &is)) {
        const json_t *then = json_object_get(was, "variables"), *now = json_object_get(is, "variables");
        if (then != NULL && now != NULL)
            look_at_variables(then, now, causes);
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            then = json_object_get(was, members[i]);
            now = json_object_get(is, members[i]);
            if (then != NULL && now != NULL && !json_equal(then, now))
                add_cause(causes, "environment", "the envelope's '%s' was %s, is %s", members[i],
                          value_text(then, a), value_text(now, b));
        }
    }
    if (!tctl_evidence_both(e, "determinism", &was, &is))
        return;
    json_t *list = tctl_compare_json(was, is, MAX_CAUSES);
    json_array_foreach(list, k, one)
        add_cause(causes, "environment", "'determinism.%s' was %s, is %s", text_of(one, "path"),
                  value_text(json_object_get(one, "a"), a), value_text(json_object_get(one, "b"), b));
    json_decref(list);
}

/* What Python libraries there are, and what the shim set in them: {"versions": […], "settings": {…}} of both. */
static void look_at_python(const tctl_evidence *e, json_t *causes)
{
    static const char *const members[] = {"versions", "settings"};
    const json_t *was, *is, *one;
    char a[VALUE_WIDTH + 8], b[VALUE_WIDTH + 8];
    if (!tctl_evidence_both(e, "python", &was, &is))
        return;
    for (size_t m = 0; m < 2; m++) {
        size_t i;
        json_t *list =
            tctl_compare_json(json_object_get(was, members[m]), json_object_get(is, members[m]), MAX_CAUSES);
        json_array_foreach(list, i, one)
        {
            const char *path = text_of(one, "path"), *then = value_text(json_object_get(one, "a"), a),
                       *now = value_text(json_object_get(one, "b"), b);
            if (m == 0)
                add_cause(causes, "environment", "what Python imported differs: it was %s, is %s", then, now);
            else
                add_cause(causes, "environment", "Python's setting '%s' was %s, is %s", path, then, now);
        }
        json_decref(list);
    }
}

/* ---- libraries ------------------------------------------------------------------------------------------ */

static const json_t *find_by(const json_t *list, const char *key, const char *value)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
    {
        if (strcmp(text_of(item, key), value) == 0)
            return item;
    }
    return NULL;
}

/* Lists of {key, "sha256"}: other bytes first, as they say more than one that is there once only. */
static void look_at_files(const json_t *was, const json_t *is, const char *key, const char *noun,
                          json_t *causes)
{
    size_t i;
    const json_t *item;
    json_array_foreach(was, i, item)
    {
        const json_t *now = find_by(is, key, text_of(item, key));
        if (now != NULL && !json_equal(json_object_get(item, "sha256"), json_object_get(now, "sha256")))
            add_cause(causes, "shared objects", "%s '%s' has other bytes", noun, text_of(item, key));
    }
    json_array_foreach(was, i, item)
    {
        if (find_by(is, key, text_of(item, key)) == NULL)
            add_cause(causes, "shared objects", "%s '%s' was loaded, and is not now", noun,
                      text_of(item, key));
    }
    json_array_foreach(is, i, item)
    {
        if (find_by(was, key, text_of(item, key)) == NULL)
            add_cause(causes, "shared objects", "%s '%s' is loaded, and was not before", noun,
                      text_of(item, key));
    }
}

/* What the interposer saw a library do to rounding or denormals, now and not then: more exact than that it differs. */
static void look_at_fp_environment(const json_t *was, const json_t *is, json_t *causes)
{
    size_t i;
    const json_t *event;
    json_array_foreach(json_object_get(is, "events"), i, event)
    {
        const char *library = text_of(event, "subject");
        bool is_new = true;
        size_t k;
        const json_t *old;
        if (strcmp(text_of(event, "what"), "fp-environment") != 0)
            continue;
        json_array_foreach(json_object_get(was, "events"), k, old)
        {
            if (strcmp(text_of(old, "what"), "fp-environment") == 0 &&
                strcmp(text_of(old, "subject"), library) == 0)
                is_new = false;
        }
        if (is_new)
            add_cause(causes, "shared objects",
                      "library '%s' changes the floating-point environment, and none did "
                      "before: %s",
                      library, text_of(event, "detail"));
    }
}

static void look_at_objects(const tctl_evidence *e, json_t *causes)
{
    const json_t *was, *is;
    if (tctl_evidence_both(e, "interposer", &was, &is))
        look_at_fp_environment(was, is, causes);
    if (tctl_evidence_both(e, "plugins", &was, &is))
        look_at_files(was, is, "name", "plugin", causes);
    if (tctl_evidence_both(e, "shared_objects", &was, &is))
        look_at_files(was, is, "path", "library", causes);
}

/* ---- data ----------------------------------------------------------------------------------------------- */

static void look_at_recorded_data(const json_t *was, const json_t *is, json_t *causes)
{
    size_t i;
    const json_t *item;
    json_array_foreach(was, i, item)
    {
        const char *name = text_of(item, "name");
        const json_t *now = find_by(is, "name", name);
        if (now == NULL)
            add_cause(causes, "data list", "input '%s' is not there any more", name);
        else if (!json_equal(json_object_get(item, "files"), json_object_get(now, "files")))
            add_cause(causes, "data list", "input '%s' had %s files, has %s", name, text_of(item, "files"),
                      text_of(now, "files"));
    }
    json_array_foreach(is, i, item)
    {
        if (find_by(was, "name", text_of(item, "name")) == NULL)
            add_cause(causes, "data list", "input '%s' was not there before", text_of(item, "name"));
    }
    json_array_foreach(was, i, item)
    {
        const json_t *now = find_by(is, "name", text_of(item, "name"));
        if (now != NULL && json_equal(json_object_get(item, "files"), json_object_get(now, "files")) &&
            !json_equal(json_object_get(item, "sha256"), json_object_get(now, "sha256")))
            add_cause(causes, "data bytes", "input '%s' has other content", text_of(item, "name"));
    }
}

static void look_at_data(const tctl_evidence *e, json_t *causes)
{
    static const char *const kinds[][2] = {{"list", "data list"}, {"bytes", "data bytes"}};
    const json_t *was, *is, *one;
    size_t i;
    for (size_t k = 0; k < 2; k++) {
        json_array_foreach(e->data, i, one)
        {
            if (strcmp(text_of(one, "change"), kinds[k][0]) == 0)
                add_cause(causes, kinds[k][1], "%s", text_of(one, "what"));
        }
    }
    if (e->data == NULL && tctl_evidence_both(e, "data", &was, &is))
        look_at_recorded_data(was, is, causes);
}

json_t *tctl_classify_causes(const tctl_evidence *e)
{
    json_t *causes = json_array();
    look_at_code(e, causes);
    look_at_machine(e, causes);
    look_at_envelope(e, causes);
    look_at_python(e, causes);
    look_at_objects(e, causes);
    look_at_data(e, causes);
    return causes;
}
