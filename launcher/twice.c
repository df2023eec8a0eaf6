/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See twice.h.
 */
#include "launcher/twice.h"

#include "base/file.h"

static bool makes_trace(const tctl_repeat *r)
{
    return r->end.trace != NULL;
}

/* One of the two; `which` is for the person who waits. */
static tctl_status once(tctl_repeater *r, uint64_t steps, tctl_view *quiet, tctl_repeat *ret, tctl_error *err)
{
    const tctl_repeat_request request = {.trace_every = 1, .stops = true, .stop = steps, .view = quiet};
    tctl_status st = tctl_repeat_make(r, NULL, &request, ret, err);
    if (st == TCTL_OK && ret->failure != NULL)
        st = tctl_fail(err, TCTL_EIO, "the first steps could not be done: %s", ret->failure);
    return st;
}

static tctl_status compare(tctl_repeater *r, uint64_t steps, const tctl_repeat pair[2], tctl_view *view,
                           tctl_twice *ret, tctl_error *err)
{
    const char *what = tctl_arena_format(r->v->arena, "the first %llu steps", (unsigned long long)steps);
    if (!makes_trace(&pair[0]))
        what = "two whole runs";
    tctl_status st = tctl_repeat_compare(r, &pair[0], &pair[1], &ret->verdict, err);
    if (st != TCTL_OK)
        return st;
    ret->differs = ret->verdict != NULL;
    if (!ret->differs) {
        tctl_view_say(view, "trainctl: %s gave the same bits twice", what);
        return TCTL_OK;
    }
    ret->reason = tctl_arena_format(r->v->arena, "%s gave other bits the second time (stage %s): %s", what,
                                    json_string_value(json_object_get(ret->verdict, "stage")),
                                    json_string_value(json_object_get(ret->verdict, "why")));
    return tctl_fail(err, TCTL_EDETERMINISM, "%s", ret->reason == NULL ? "out of memory" : ret->reason);
}

tctl_status tctl_run_twice(tctl_repeater *r, uint64_t steps, tctl_view *view, tctl_twice *ret,
                           tctl_error *err)
{
    tctl_repeat pair[2] = {{0}, {0}};
    tctl_view *quiet = tctl_view_create(true, false);
    tctl_status st = quiet == NULL ? tctl_fail_memory(err, 0) : tctl_make_folders(r->scratch, 0777, err);
    tctl_view_say(view, "trainctl: the first %llu steps twice, before the run", (unsigned long long)steps);
    for (int i = 0; i < 2 && st == TCTL_OK; i++) {
        st = once(r, steps, quiet, &pair[i], err);
        if (i == 0 && st == TCTL_OK && !makes_trace(&pair[0]))
            tctl_view_say(
                view, "trainctl: the command makes no trace, so it was run whole: it is done twice, and the "
                      "outputs are compared");
    }
    if (st == TCTL_OK)
        st = compare(r, steps, pair, view, ret, err);
    ret->stopped = r->stopped;
    for (int i = 0; i < 2; i++)
        tctl_repeat_release(r, &pair[i], st != TCTL_EDETERMINISM && st != TCTL_EIO);
    if ((st == TCTL_OK || st == TCTL_ECANCELED) && !r->keep)
        tctl_remove_tree(r->scratch, NULL);
    tctl_view_destroy(quiet);
    return st;
}
