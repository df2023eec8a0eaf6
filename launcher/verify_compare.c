/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `verify` says once the work was done again: trace first, because it names the step, then outputs, then the exit
 * code. Extra and missing files count.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "launcher/verify.h"
#include "manifest/compare.h"
#include "manifest/manifest.h"

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

/* Reasons of the machine's come first: in contract `machine` nothing was promised elsewhere. */
static bool differs(tctl_verification *v, const char *check, const char *what)
{
    size_t n = json_array_size(v->differences);
    bool exact = strcmp(text_of(v->manifest, "contract"), "exact") == 0;
    if (n == 0 || exact)
        return tctl_verify_failed(v, check, TCTL_VERDICT_DIFFERS, "%s", what);
    return tctl_verify_failed(v, check, TCTL_VERDICT_UNVERIFIABLE,
                              "this is not the machine class that was recorded ('%s' differs%s); there, %s",
                              text_of(json_array_get(v->differences, 0), "field"), n > 1 ? " and more" : "",
                              what);
}

/* True if there are traces and they are the same, or if there are none. */
static bool compare_traces(tctl_verification *v, const char *folder, const tctl_attempt_end *end)
{
    tctl_error err = {0};
    tctl_buf words = TCTL_BUF_INIT;
    bool had = json_is_object(json_object_get(v->manifest, "trace"));
    if (!had && end->trace == NULL)
        return true;
    if (!had || end->trace == NULL)
        return differs(v, "trace",
                       had ? "there is no trace now" : "there is a trace now, where there was none");
    const char *a = tctl_path_join(v->arena, v->run->path, "trace.bin"),
               *b = tctl_path_join(v->arena, folder, "trace.bin");
    if (a == NULL || b == NULL || tctl_compare_traces(v->arena, a, b, &v->first_divergence, &err) != TCTL_OK)
        return tctl_verify_failed(v, "trace", TCTL_VERDICT_UNVERIFIABLE, "%s", err.message);
    if (v->first_divergence == NULL) {
        tctl_verify_passed(
            v, "trace", tctl_arena_format(v->arena, "%s steps, the same bits", text_of(end->trace, "steps")));
        return true;
    }
    tctl_divergence_explain(v->first_divergence, &words);
    differs(v, "trace", tctl_buf_text(&words) == NULL ? "the traces differ" : tctl_buf_text(&words));
    tctl_buf_release(&words);
    return false;
}

static bool compare_outputs(tctl_verification *v, const tctl_attempt_end *end)
{
    json_t *list = tctl_compare_outputs(json_object_get(v->manifest, "outputs"), end->outputs);
    size_t n = json_array_size(list);
    const json_t *one = json_array_get(list, 0);
    const char *change = text_of(one, "change");
    const char *verb = strcmp(change, "new") == 0
                           ? "was not there before"
                           : (strcmp(change, "missing") == 0 ? "was not made" : "has other bytes");
    const char *more = n > 1 ? tctl_arena_format(v->arena, " (and %zu more)", n - 1) : "";
    const char *what =
        tctl_arena_format(v->arena, "output '%s' %s%s", text_of(one, "path"), verb, more == NULL ? "" : more);
    json_decref(list);
    if (n > 0)
        return differs(v, "repeated outputs", what == NULL ? "the outputs differ" : what);
    tctl_verify_passed(v, "repeated outputs",
                       tctl_arena_format(v->arena, "%zu, the same bytes", json_array_size(end->outputs)));
    return true;
}

void tctl_verify_compare(tctl_verification *v, const char *folder, const tctl_attempt_end *end)
{
    bool same = compare_traces(v, folder, end);
    same = compare_outputs(v, end) && same;
    char hex[TCTL_SHA256_HEX];
    tctl_sha256_hex(&end->result, hex);
    if (same && strcmp(hex, text_of(v->manifest, "result_digest")) != 0)
        same = differs(v, "result", "the result digest is another one");
    if (same)
        v->verdict = TCTL_VERDICT_IDENTICAL;
}
