/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See classify.h. The causes are gathered in the order of stages, so the first one is the verdict's; without any, the
 * trace's first differing field names the place, and without a trace the outputs do.
 */
#include "launcher/classify.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "launcher/classify_internal.h"
#include "manifest/compare.h"
#include "manifest/content/content.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* ---- where the work shows it ---------------------------------------------------------------------------- */

const char *tctl_stage_of_field(const char *field, bool is_first, bool is_initial)
{
    static const struct {
        const char *kind, *stage;
    } kinds[] = {
        {"indices", "batch"},        {"batch", "batch"},         {"labels", "batch"},
        {"buffer", "forward"},       {"forward", "forward"},     {"loss", "forward"},
        {"gradient", "gradient"},    {"optimizer", "optimizer"}, {"parameter", "optimizer"},
        {"gradient-of", "gradient"},
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

/* A decimal text as a number, where every reader of JSON takes the number; doubles can lie further apart. */
static json_t *small_count(json_t *text)
{
    const char *digits = json_string_value(text);
    uint64_t n = 0;
    bool is_small = tctl_parse_uint(digits, strlen(digits), &n) && n <= (UINT64_C(1) << 53);
    return is_small ? json_integer((json_int_t)n) : json_incref(text);
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
    json_t *ulps = json_object_get(content, "ulps");
    if (json_is_string(ulps))
        json_object_set_new(verdict, "ulps", small_count(ulps));
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
    json_array_foreach(json_object_get(json_object_get(side, "python"), "notes"), i, one)
    {
        json_int_t line = json_integer_value(json_object_get(one, "line"));
        if (text_of(one, "file")[0] != '\0')
            json_array_append_new(list,
                                  json_sprintf("%s: %s (%s:%" JSON_INTEGER_FORMAT ")", text_of(one, "what"),
                                               text_of(one, "detail"), text_of(one, "file"), line));
        else
            json_array_append_new(list, json_sprintf("%s: %s", text_of(one, "what"), text_of(one, "detail")));
    }
    add_entropy(interposer, list);
    return list;
}

/* "output 'model.txt' has other bytes (and 2 more)"; nothing if none differs. */
static void describe_outputs(const tctl_evidence *e, tctl_buf *why)
{
    const json_t *was, *is;
    if (!tctl_evidence_both(e, "outputs", &was, &is))
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
    json_t *causes = tctl_classify_causes(e), *verdict = NULL;
    tctl_buf why = TCTL_BUF_INIT;
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
