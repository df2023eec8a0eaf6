/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `verify` says once the work was done again: trace first, because it names the step, then outputs, then the exit
 * code. Extra and missing files count. classify.h turns what differs into a stage and a reason.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "launcher/classify.h"
#include "launcher/verify.h"
#include "manifest/compare.h"
#include "manifest/content/content.h"
#include "manifest/manifest.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* ---- a pair of attempts --------------------------------------------------------------------------------- */

json_t *tctl_verify_side(const tctl_verification *v, const tctl_attempt_end *end)
{
    static const char *const of_worker[] = {"plugins", "shared_objects"};
    json_t *side = json_object();
    if (v->environment != NULL)
        json_object_set(side, "environment", v->environment);
    for (size_t i = 0; i < sizeof of_worker / sizeof of_worker[0]; i++) {
        json_t *value = json_object_get(end->worker, of_worker[i]);
        if (json_is_array(value))
            json_object_set(side, of_worker[i], value);
    }
    if (end->shared_objects != NULL)
        json_object_set(side, "shared_objects", end->shared_objects);
    if (end->interposer != NULL)
        json_object_set(side, "interposer", end->interposer);
    if (end->uncontrolled != NULL)
        json_object_set(side, "uncontrolled", end->uncontrolled);
    if (end->envelope != NULL)
        json_object_set(side, "envelope", end->envelope);
    if (end->outputs != NULL)
        json_object_set(side, "outputs", end->outputs);
    json_object_set_new(side, "trace", end->trace == NULL ? json_null() : json_incref(end->trace));
    return side;
}

/* The first output of both that has other bytes, looked into; NULL if there is none. */
static tctl_status compare_contents(tctl_arena *arena, const char *a, const char *b,
                                    const json_t *differences, json_t **ret, tctl_error *err)
{
    size_t i;
    const json_t *one;
    json_array_foreach(differences, i, one)
    {
        const char *name = text_of(one, "path"), *type = text_of(json_object_get(one, "a"), "type");
        if (strcmp(text_of(one, "change"), "changed") != 0 ||
            strcmp(type, text_of(json_object_get(one, "b"), "type")) != 0 ||
            (strcmp(type, "file") != 0 && strcmp(type, "executable") != 0))
            continue;
        const char *path_a = tctl_arena_format(arena, "%s/out/%s", a, name),
                   *path_b = tctl_arena_format(arena, "%s/out/%s", b, name);
        if (path_a == NULL || path_b == NULL)
            return tctl_fail_memory(err, strlen(name));
        tctl_status st = tctl_content_compare(arena, path_a, path_b, NULL, ret, err);
        if (st == TCTL_OK && *ret != NULL)
            json_object_set(*ret, "path", json_object_get(one, "path"));
        return st;
    }
    return TCTL_OK;
}

tctl_status tctl_verify_pair(tctl_verification *v, const char *a, const json_t *was, const char *b,
                             const json_t *is, json_t **ret, tctl_error *err)
{
    bool had = json_is_object(json_object_get(was, "trace")),
         has = json_is_object(json_object_get(is, "trace"));
    json_t *divergence = NULL, *content = NULL, *outputs = NULL, *verdict = NULL;
    tctl_status st = TCTL_OK;
    const char *trace_a = tctl_path_join(v->arena, a, "trace.bin"),
               *trace_b = tctl_path_join(v->arena, b, "trace.bin");
    if (trace_a == NULL || trace_b == NULL)
        return tctl_fail_memory(err, 0);
    if (had && has)
        st = tctl_compare_traces(v->arena, trace_a, trace_b, &divergence, err);
    else if (had || has)
        divergence = json_pack("{s:s}", "kind", had ? "gone" : "new");
    outputs = tctl_compare_outputs(json_object_get(was, "outputs"), json_object_get(is, "outputs"));
    if (st == TCTL_OK)
        st = compare_contents(v->arena, a, b, outputs, &content, err);
    if (st == TCTL_OK && (divergence != NULL || json_array_size(outputs) > 0)) {
        const tctl_evidence evidence = {
            .was = was, .is = is, .data = v->data, .divergence = divergence, .content = content};
        verdict = tctl_classify(&evidence);
        if (verdict == NULL)
            st = tctl_fail_memory(err, 0);
    }
    json_decref(divergence);
    json_decref(content);
    json_decref(outputs);
    if (st == TCTL_OK)
        *ret = verdict;
    return st;
}

/* ---- the verdict ---------------------------------------------------------------------------------------- */

/* Where the machine's class, or a library, is not the one recorded, nothing was promised in contract `machine`. */
static int verdict_of(const tctl_verification *v, const json_t *first)
{
    bool exact = strcmp(text_of(v->manifest, "contract"), "exact") == 0;
    bool elsewhere =
        json_array_size(v->differences) > 0 || strcmp(text_of(first, "stage"), "shared objects") == 0;
    return elsewhere && !exact ? TCTL_VERDICT_UNVERIFIABLE : TCTL_VERDICT_DIFFERS;
}

static void note_trace(tctl_verification *v, const json_t *first, const tctl_attempt_end *end, int verdict)
{
    tctl_buf words = TCTL_BUF_INIT;
    if (json_is_string(json_object_get(first, "kind"))) {
        tctl_divergence_explain(first, &words);
        tctl_verify_failed(v, "trace", verdict, "%s",
                           tctl_buf_text(&words) == NULL ? "the traces differ" : tctl_buf_text(&words));
    } else if (end->trace != NULL) {
        tctl_verify_passed(
            v, "trace", tctl_arena_format(v->arena, "%s steps, the same bits", text_of(end->trace, "steps")));
    }
    tctl_buf_release(&words);
}

static void note_outputs(tctl_verification *v, const tctl_attempt_end *end, int verdict)
{
    json_t *list = tctl_compare_outputs(json_object_get(v->manifest, "outputs"), end->outputs);
    size_t n = json_array_size(list);
    const json_t *one = json_array_get(list, 0);
    const char *change = text_of(one, "change");
    const char *verb = strcmp(change, "new") == 0
                           ? "was not there before"
                           : (strcmp(change, "missing") == 0 ? "was not made" : "has other bytes");
    if (n == 1)
        tctl_verify_failed(v, "repeated outputs", verdict, "output '%s' %s", text_of(one, "path"), verb);
    else if (n > 1)
        tctl_verify_failed(v, "repeated outputs", verdict, "output '%s' %s (and %zu more)",
                           text_of(one, "path"), verb, n - 1);
    else
        tctl_verify_passed(v, "repeated outputs",
                           tctl_arena_format(v->arena, "%zu, the same bytes", json_array_size(end->outputs)));
    json_decref(list);
}

void tctl_verify_compare(tctl_verification *v, const char *folder, const tctl_attempt_end *end)
{
    tctl_error err = {0};
    char hex[TCTL_SHA256_HEX];
    json_t *side = tctl_verify_side(v, end), *first = NULL;
    tctl_sha256_hex(&end->result, hex);
    bool same = strcmp(hex, text_of(v->manifest, "result_digest")) == 0;
    int verdict = TCTL_VERDICT_DIFFERS;
    if (tctl_verify_pair(v, v->run->path, v->manifest, folder, side, &first, &err) != TCTL_OK) {
        tctl_verify_failed(v, "trace", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
    } else if (first != NULL) {
        /* The reason first: the checks behind it only tell what they saw. */
        const char *why = text_of(first, "why");
        verdict = verdict_of(v, first);
        v->verdict = verdict;
        v->reason = tctl_arena_copy(v->arena, why, strlen(why));
    }
    if (err.code == TCTL_OK) {
        note_trace(v, first, end, verdict);
        note_outputs(v, end, verdict);
    }
    if (first == NULL && err.code == TCTL_OK && !same)
        tctl_verify_failed(v, "result", verdict, "the result digest is another one");
    else if (first == NULL && err.code == TCTL_OK)
        v->verdict = TCTL_VERDICT_IDENTICAL;
    v->first_divergence = first;
    json_decref(side);
}
