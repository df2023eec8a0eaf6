/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a step interval to a step, a tensor and an element.
 *
 * Pairs of repetitions with a record of every step, ended behind the step at which the last pair had parted, and with
 * that step's tensors written. If a pair parts at that very step, its tensors are compared; if earlier, the next pair
 * looks there. What is random may part at another step in every pair, or at none: so this is tried some times only.
 */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "launcher/classify.h"
#include "launcher/deep.h"
#include "manifest/compare.h"
#include "manifest/content/content.h"

enum { MAX_PAIRS = 6 };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static bool step_of(const json_t *divergence, uint64_t *ret)
{
    const char *text = text_of(divergence, "step");
    return strcmp(text_of(divergence, "kind"), "value") == 0 && tctl_parse_uint(text, strlen(text), ret);
}

/* ---- a pair --------------------------------------------------------------------------------------------- */

typedef struct pair {
    tctl_repeat a, b;
    json_t *divergence; /* of their traces; NULL: none */
} pair;

static void release(const tctl_deep *d, pair *p)
{
    tctl_repeat_release(&d->repeater, &p->a, true);
    tctl_repeat_release(&d->repeater, &p->b, true);
    json_decref(p->divergence);
}

/* *ret is false if one of the two failed, or left no trace: then there is nothing to learn here. */
static tctl_status make_pair(tctl_deep *d, uint64_t step, pair *p, bool *ret, tctl_error *err)
{
    const tctl_repeat_request request = {
        .trace_every = 1, .stops = true, .stop = step, .dumps = true, .dump = step, .view = d->quiet};
    *ret = false;
    tctl_status st = tctl_repeat_make(&d->repeater, NULL, &request, &p->a, err);
    if (st == TCTL_OK)
        st = tctl_repeat_make(&d->repeater, NULL, &request, &p->b, err);
    if (st != TCTL_OK)
        return st;
    tctl_arena *arena = d->repeater.v->arena;
    const char *a = tctl_path_join(arena, p->a.folder, "trace.bin"),
               *b = tctl_path_join(arena, p->b.folder, "trace.bin");
    if (a == NULL || b == NULL)
        return tctl_fail_memory(err, 0);
    if (p->a.failure != NULL || p->b.failure != NULL || !tctl_path_exists(a) || !tctl_path_exists(b))
        return TCTL_OK;
    *ret = true;
    return tctl_compare_traces(arena, a, b, &p->divergence, err);
}

/* ---- what is in it -------------------------------------------------------------------------------------- */

/* Where the dumped tensors of a field part; NULL in *ret if there are none, or if they are the same. */
static tctl_status compare_dumps(const tctl_deep *d, const pair *p, uint64_t step, const char *field,
                                 json_t **ret, tctl_error *err)
{
    tctl_arena *arena = d->repeater.v->arena;
    const char *a = tctl_arena_format(arena, "%s/dump-%llu/%s.npy", p->a.folder, (unsigned long long)step,
                                      field),
               *b = tctl_arena_format(arena, "%s/dump-%llu/%s.npy", p->b.folder, (unsigned long long)step,
                                      field);
    if (a == NULL || b == NULL)
        return tctl_fail_memory(err, 0);
    if (!tctl_path_exists(a) || !tctl_path_exists(b))
        return TCTL_OK;
    tctl_status st = tctl_content_compare(arena, a, b, NULL, ret, err);
    if (st != TCTL_OK || *ret == NULL)
        return st;
    if (strcmp(text_of(*ret, "kind"), "tensor") == 0) {
        json_object_set_new(*ret, "name", json_string(field));
    } else { /* a byte of a file says nothing about a tensor */
        json_decref(*ret);
        *ret = NULL;
    }
    return TCTL_OK;
}

/* The detailed trace may name the module in whose output or gradient it began. It has nothing on what is before the
 * forward pass or behind the gradients. *ret stays as it is if it has nothing better. */
static tctl_status look_finer(const tctl_deep *d, const pair *p, uint64_t step, json_t **ret, tctl_error *err)
{
    const char *stage = tctl_stage_of_field(text_of(*ret, "field"), false, step == 0);
    tctl_arena *arena = d->repeater.v->arena;
    json_t *finer = NULL;
    uint64_t at = 0;
    const char *a = tctl_path_join(arena, p->a.folder, "trace-fine.bin"),
               *b = tctl_path_join(arena, p->b.folder, "trace-fine.bin");
    if (a == NULL || b == NULL)
        return tctl_fail_memory(err, 0);
    if ((strcmp(stage, "forward") != 0 && strcmp(stage, "gradient") != 0) || !tctl_path_exists(a) ||
        !tctl_path_exists(b))
        return TCTL_OK;
    tctl_status st = tctl_compare_traces(arena, a, b, &finer, err);
    if (st == TCTL_OK && step_of(finer, &at) && at == step) {
        json_object_set(finer, "after", json_object_get(*ret, "after"));
        json_decref(*ret);
        *ret = json_incref(finer);
    }
    json_decref(finer);
    return st;
}

/* Puts what a pair shows, which parts at the step that it dumped, into the verdict. */
static tctl_status refine(const tctl_deep *d, pair *p, uint64_t step, json_t *verdict, tctl_error *err)
{
    json_t *element = NULL;
    tctl_status st = look_finer(d, p, step, &p->divergence, err);
    if (st == TCTL_OK)
        st = compare_dumps(d, p, step, text_of(p->divergence, "field"), &element, err);
    if (st == TCTL_OK) {
        const tctl_evidence evidence = {
            .was = p->a.side, .is = p->b.side, .divergence = p->divergence, .element = element};
        json_t *finer = tctl_classify(&evidence);
        if (finer == NULL || json_object_update(verdict, finer) != 0)
            st = tctl_fail_memory(err, 0);
        json_decref(finer);
    }
    json_decref(element);
    return st;
}

tctl_status tctl_deep_bisect(tctl_deep *d, json_t *verdict, tctl_error *err)
{
    uint64_t step = 0;
    tctl_status st = TCTL_OK;
    bool done = !step_of(verdict, &step);
    for (int i = 0; i < MAX_PAIRS && !done && st == TCTL_OK; i++) {
        pair p = {0};
        uint64_t at = 0;
        bool usable = false;
        tctl_view_say(d->view, "trainctl: with a trace of every step, to step %llu",
                      (unsigned long long)step);
        st = make_pair(d, step, &p, &usable, err);
        bool parts = st == TCTL_OK && usable && step_of(p.divergence, &at), exact = parts && at == step;
        if (exact)
            st = refine(d, &p, step, verdict, err);
        else if (parts)
            step = at; /* never behind it: the pair ended there */
        done = exact || !usable;
        release(d, &p);
    }
    return st;
}
