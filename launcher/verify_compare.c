/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `verify` says once the work was done again: trace first, because it names the step, then outputs, then the exit
 * code. Extra and missing files count. classify.h turns what differs into a stage and a reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "launcher/classify.h"
#include "launcher/verify.h"
#include "manifest/compare.h"
#include "manifest/content/content.h"
#include "manifest/manifest.h"
#include "manifest/path_json.h"

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
    if (end->python != NULL)
        json_object_set(side, "python", end->python);
    if (end->envelope != NULL)
        json_object_set(side, "envelope", end->envelope);
    if (end->outputs != NULL)
        json_object_set(side, "outputs", end->outputs);
    json_object_set_new(side, "trace", end->trace == NULL ? json_null() : json_incref(end->trace));
    return side;
}

/* The places that do not count, as the manifest has them with the output's content. NULL-ended; NULL: none. */
static const char *const *volatile_paths(tctl_arena *arena, const json_t *output)
{
    const json_t *list = json_object_get(json_object_get(output, "content"), "volatile");
    size_t n = json_array_size(list);
    const char **paths = n == 0 ? NULL : tctl_arena_take_array(arena, n + 1, sizeof *paths);
    for (size_t i = 0; paths != NULL && i < n; i++)
        paths[i] = json_string_value(json_array_get(list, i));
    return paths;
}

/* NULL if memory is out, or if it is no path. */
static const char *output_path(tctl_arena *arena, const char *attempt, const json_t *output)
{
    char *path = NULL;
    if (tctl_path_from_json(json_object_get(output, "path"), &path, NULL) != TCTL_OK)
        return NULL;
    const char *full = tctl_arena_format(arena, "%s/out/%s", attempt, path);
    free(path);
    return full;
}

/* The first output of both that is another one, looked into; NULL if there is none. */
static tctl_status compare_contents(tctl_arena *arena, const char *a, const char *b,
                                    const json_t *differences, json_t **ret, tctl_error *err)
{
    size_t i;
    const json_t *one;
    json_array_foreach(differences, i, one)
    {
        const json_t *was = json_object_get(one, "a"), *is = json_object_get(one, "b");
        const char *type = text_of(was, "type");
        if (strcmp(text_of(one, "change"), "changed") != 0 || strcmp(type, text_of(is, "type")) != 0 ||
            (strcmp(type, "file") != 0 && strcmp(type, "executable") != 0))
            continue;
        const tctl_content_rules rules = {.volatile_paths = volatile_paths(arena, was)};
        const char *path_a = output_path(arena, a, was), *path_b = output_path(arena, b, is);
        if (path_a == NULL || path_b == NULL)
            return tctl_fail_memory(err, 0);
        if (!tctl_path_exists(path_a) || !tctl_path_exists(path_b))
            return TCTL_OK; /* somebody tidied up: their digests differ, and that is all that is known */
        tctl_status st = tctl_content_compare(arena, path_a, path_b, &rules, ret, err);
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

static void note_same_outputs(tctl_verification *v, const tctl_attempt_end *end)
{
    json_t *list = tctl_repacked_outputs(json_object_get(v->manifest, "outputs"), end->outputs);
    size_t n = json_array_size(list), all = json_array_size(end->outputs);
    const json_t *one = json_array_get(list, 0);
    const char *inside = strcmp(text_of(one, "tensors"), "0") != 0 ? "tensors" : "content";
    const char *what;
    if (n == 0)
        what = tctl_arena_format(v->arena, "%zu, the same bytes", all);
    else if (n == 1)
        what = tctl_arena_format(v->arena, "%zu, output '%s' has the same %s in other container bytes", all,
                                 text_of(one, "path"), inside);
    else
        what = tctl_arena_format(v->arena,
                                 "%zu, output '%s' (and %zu more) has the same %s in other container bytes",
                                 all, text_of(one, "path"), n - 1, inside);
    tctl_verify_passed(v, "repeated outputs", what == NULL ? "the same" : what);
    json_decref(list);
}

static void note_outputs(tctl_verification *v, const tctl_attempt_end *end, int verdict)
{
    json_t *list = tctl_compare_outputs(json_object_get(v->manifest, "outputs"), end->outputs);
    size_t n = json_array_size(list);
    const json_t *one = json_array_get(list, 0);
    const char *change = text_of(one, "change");
    bool looked_into = json_object_get(json_object_get(one, "a"), "content") != NULL;
    const char *verb = strcmp(change, "new") == 0       ? "was not there before"
                       : strcmp(change, "missing") == 0 ? "was not made"
                       : looked_into                    ? "has another content"
                                                        : "has other bytes";
    if (n == 1)
        tctl_verify_failed(v, "repeated outputs", verdict, "output '%s' %s", text_of(one, "path"), verb);
    else if (n > 1)
        tctl_verify_failed(v, "repeated outputs", verdict, "output '%s' %s (and %zu more)",
                           text_of(one, "path"), verb, n - 1);
    else
        note_same_outputs(v, end);
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
