/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See classify.h. The causes are gathered in the order of stages, so the first one is the verdict's; without any, the
 * trace's first differing field names the place, and without a trace the outputs do.
 */
#include "launcher/classify.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "base/utf8.h"
#include "manifest/compare.h"
#include "manifest/content/content.h"
#include "manifest/environment.h"

#define VALUE_WIDTH 60
#define MAX_CAUSES  100

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* ---- what went in --------------------------------------------------------------------------------------- */

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

/* Members of both records, under one name; false if one lacks it. */
static bool both(const tctl_evidence *e, const char *key, const json_t **was, const json_t **is)
{
    *was = json_object_get(e->was, key);
    *is = json_object_get(e->is, key);
    return *was != NULL && *is != NULL && !json_is_null(*was) && !json_is_null(*is);
}

static void look_at_code(const tctl_evidence *e, json_t *causes)
{
    const json_t *was, *is;
    if (both(e, "recipe", &was, &is)) {
        json_t *list = tctl_compare_json(was, is, 1);
        if (json_array_size(list) > 0)
            add_cause(causes, "code", "the recipe differs: '%s'", text_of(json_array_get(list, 0), "path"));
        json_decref(list);
    }
    if (both(e, "code", &was, &is)) {
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
    if (!both(e, "environment", &was, &is))
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
    if (both(e, "envelope", &was, &is)) {
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
    if (!both(e, "determinism", &was, &is))
        return;
    json_t *list = tctl_compare_json(was, is, MAX_CAUSES);
    json_array_foreach(list, k, one)
        add_cause(causes, "environment", "'determinism.%s' was %s, is %s", text_of(one, "path"),
                  value_text(json_object_get(one, "a"), a), value_text(json_object_get(one, "b"), b));
    json_decref(list);
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
    if (both(e, "interposer", &was, &is))
        look_at_fp_environment(was, is, causes);
    if (both(e, "plugins", &was, &is))
        look_at_files(was, is, "name", "plugin", causes);
    if (both(e, "shared_objects", &was, &is))
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
    if (e->data == NULL && both(e, "data", &was, &is))
        look_at_recorded_data(was, is, causes);
}

/* ---- where the work shows it ---------------------------------------------------------------------------- */

const char *tctl_stage_of_field(const char *field, bool is_first, bool is_initial)
{
    static const struct {
        const char *kind, *stage;
    } kinds[] = {
        {"indices", "batch"},       {"batch", "batch"},
        {"labels", "batch"},        {"buffer", "forward"},
        {"output", "forward"},      {"loss", "forward"},
        {"gradient", "gradient"},   {"optimizer", "optimizer"},
        {"parameter", "optimizer"}, {"output-gradient", "gradient"},
    };
    size_t n = strcspn(field, "/");
    if (is_initial)
        return "initial weights";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].kind) != n || strncmp(field, kinds[i].kind, n) != 0)
            continue;
        return is_first && strcmp(kinds[i].stage, "batch") == 0 ? "first batch" : kinds[i].stage;
    }
    return "training";
}

static uint64_t step_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    uint64_t step = 0;
    return text != NULL && tctl_parse_uint(text, strlen(text), &step) ? step : 0;
}

typedef struct place {
    const char *stage, *confidence;
    const char *note; /* what the evidence leaves open; NULL */
} place;

/* A field of a record is what differed first only if the record before it is that of the step before. */
static place place_of_divergence(const json_t *d)
{
    uint64_t step = step_of(d, "step"), after = step_of(d, "after");
    bool has_before = json_is_string(json_object_get(d, "after"));
    bool is_first = step <= 1, is_value = strcmp(text_of(d, "kind"), "value") == 0;
    const char *stage = tctl_stage_of_field(text_of(d, "field"), is_first, step == 0);
    if (!is_value)
        return (place){"training", "unknown", "one of them does not record what the other does"};
    if (strcmp(stage, "batch") == 0 || strcmp(stage, "first batch") == 0)
        return (place){stage, step == after + 1 ? "certain" : "likely", NULL};
    if (step > after + 1)
        return (place){"training", "unknown",
                       "the trace is coarser than a step, so what differed first is not in it"};
    if (step == 1 && !has_before && strcmp(stage, "forward") == 0)
        return (place){stage, "likely", "if not in the initial weights, which the trace does not hold"};
    return (place){stage, "certain", NULL};
}

static place describe_divergence(const json_t *divergence, const json_t *element, tctl_buf *why)
{
    place where = place_of_divergence(divergence);
    if (element != NULL) {
        tctl_buf_add_format(why, "step %s, ", text_of(divergence, "step"));
        tctl_content_explain(element, why);
    } else {
        tctl_divergence_explain(divergence, why);
    }
    if (where.note != NULL)
        tctl_buf_add_format(why, " (%s)", where.note);
    return where;
}

/* The members of the trace's divergence, null where there is none, and those of the output's first difference. */
static void add_details(json_t *verdict, const tctl_evidence *e)
{
    static const char *const of_trace[] = {"kind", "step", "after", "field",
                                           "a",    "b",    "ulps",  "fields_differ"};
    static const char *const of_content[][2] = {{"path", "path"}, {"tensor", "name"}, {"element", "element"}};
    static const char *const bits[] = {"a", "b"};
    for (size_t i = 0; i < sizeof of_trace / sizeof of_trace[0]; i++) {
        json_t *value = json_object_get(e->divergence, of_trace[i]);
        json_object_set_new(verdict, of_trace[i], value == NULL ? json_null() : json_incref(value));
    }
    const json_t *content = e->element != NULL ? e->element : e->content;
    for (size_t i = 0; i < sizeof of_content / sizeof of_content[0]; i++) {
        json_t *value = json_object_get(content, of_content[i][1]);
        json_object_set_new(verdict, of_content[i][0], value == NULL ? json_null() : json_incref(value));
    }
    if (content == NULL || (e->element == NULL && json_is_string(json_object_get(e->divergence, "a"))))
        return;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        json_object_set(verdict, bits[i], json_object_get(content, bits[i]));
    if (json_is_string(json_object_get(content, "ulps")))
        json_object_set_new(verdict, "ulps", json_integer((json_int_t)step_of(content, "ulps")));
}

/* "'/usr/bin/od' asked the system for random numbers: urandom 1". */
static void add_entropy(const json_t *interposer, json_t *list)
{
    static const char *const sources[] = {"getrandom", "getentropy", "arc4random",
                                          "urandom",   "random",     "random_device"};
    const json_t *program;
    size_t i;
    json_array_foreach(json_object_get(interposer, "programs"), i, program)
    {
        tctl_buf text = TCTL_BUF_INIT;
        for (size_t s = 0; s < sizeof sources / sizeof sources[0]; s++) {
            json_int_t n =
                json_integer_value(json_object_get(json_object_get(program, "counts"), sources[s]));
            if (n > 0)
                tctl_buf_add_format(&text, "%s%s %" JSON_INTEGER_FORMAT, text.size > 0 ? ", " : "",
                                    sources[s], n);
        }
        if (text.size > 0 && tctl_buf_text(&text) != NULL)
            json_array_append_new(list, json_sprintf("'%s' asked the system for random numbers: %s",
                                                     text_of(program, "path"), tctl_buf_text(&text)));
        tctl_buf_release(&text);
    }
}

/* What the later side did, or says that it did not control, and what is known to make results vary. */
static json_t *suspects_of(const tctl_evidence *e)
{
    const json_t *side = json_object_get(e->is, "uncontrolled") != NULL ? e->is : e->was;
    const json_t *interposer = json_object_get(side, "interposer"), *one;
    json_t *list = json_array();
    size_t i;
    json_array_foreach(json_object_get(side, "uncontrolled"), i, one)
        json_array_append_new(list, json_sprintf("%s: %s", text_of(one, "what"), text_of(one, "why")));
    json_array_foreach(json_object_get(interposer, "events"), i, one)
    {
        if (strcmp(text_of(one, "what"), "time-seeded") == 0 ||
            strcmp(text_of(one, "what"), "fp-environment") == 0)
            json_array_append_new(list, json_sprintf("%s, %s: %s", text_of(one, "what"),
                                                     text_of(one, "subject"), text_of(one, "detail")));
    }
    add_entropy(interposer, list);
    return list;
}

/* "output 'model.txt' has other bytes (and 2 more)"; nothing if none differs. */
static void describe_outputs(const tctl_evidence *e, tctl_buf *why)
{
    const json_t *was, *is;
    if (!both(e, "outputs", &was, &is))
        return;
    json_t *list = tctl_compare_outputs(was, is);
    const json_t *one = json_array_get(list, 0);
    const char *change = text_of(one, "change");
    bool looked_into = json_object_get(json_object_get(one, "a"), "content") != NULL;
    size_t n = json_array_size(list);
    if (n > 0)
        tctl_buf_add_format(why, "output '%s' %s", text_of(one, "path"),
                            strcmp(change, "new") == 0       ? "was not there before"
                            : strcmp(change, "missing") == 0 ? "was not made"
                            : looked_into                    ? "has another content"
                                                             : "has other bytes");
    if (n > 1)
        tctl_buf_add_format(why, " (and %zu more)", n - 1);
    if (n > 0 && e->content != NULL && strcmp(text_of(e->content, "kind"), "bytes") != 0) {
        tctl_buf_add_text(why, ": ");
        tctl_content_explain(e->content, why);
    }
    json_decref(list);
}

static json_t *make(const tctl_evidence *e, place where, const char *why, size_t length, json_t *causes)
{
    json_t *verdict = json_pack("{s:s, s:s%, s:s, s:O, s:o}", "stage", where.stage, "why", why, length,
                                "confidence", where.confidence, "causes", causes, "suspects", suspects_of(e));
    if (verdict != NULL)
        add_details(verdict, e);
    return verdict;
}

json_t *tctl_classify(const tctl_evidence *e)
{
    json_t *causes = json_array(), *verdict = NULL;
    tctl_buf why = TCTL_BUF_INIT;
    look_at_code(e, causes);
    look_at_machine(e, causes);
    look_at_envelope(e, causes);
    look_at_objects(e, causes);
    look_at_data(e, causes);
    const json_t *first = json_array_get(causes, 0);
    place where = {"output", "certain", NULL};
    if (first != NULL)
        tctl_buf_add_format(&why, "%s; first seen: ", text_of(first, "what"));
    size_t without_place = first == NULL ? 0 : strlen(text_of(first, "what")), before = why.size;
    if (e->divergence != NULL)
        where = describe_divergence(e->divergence, e->element, &why);
    else
        describe_outputs(e, &why);
    bool shows = why.size > before;
    if (first != NULL)
        where = (place){text_of(first, "stage"), shows ? "likely" : "certain", NULL};
    if (tctl_buf_text(&why) != NULL && (shows || first != NULL))
        verdict = make(e, where, tctl_buf_text(&why), shows ? why.size : without_place, causes);
    tctl_buf_release(&why);
    json_decref(causes);
    return verdict;
}
