/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See repeat.h.
 */
#include "launcher/repeat.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "launcher/probe.h"

#define GRACE_SECONDS 30

static tctl_status make_scratch(tctl_repeater *r, const char **ret, tctl_error *err)
{
    const char *path = tctl_arena_format(r->v->arena, "%s/again-%u", r->scratch, ++r->n_made);
    if (path == NULL)
        return tctl_fail_memory(err, 0);
    if (mkdir(path, 0777) != 0)
        return tctl_fail_errno(err, errno, "cannot create '%s'", path);
    *ret = path;
    return TCTL_OK;
}

/* Where a command runs. What the place has to say is said the first time, in the given folder. */
static tctl_status find_place(const tctl_repeater *r, const char *folder, bool is_first, const char **ret,
                              tctl_error *err)
{
    tctl_verification silent = *r->v;
    tctl_status st = TCTL_OK;
    *ret = r->spec->folder;
    if (r->store == NULL)
        return TCTL_OK;
    if (is_first)
        return tctl_verify_place(r->v, r->spec, r->store, folder, ret)
                   ? TCTL_OK
                   : tctl_fail(err, TCTL_EIO, "%s", r->v->reason == NULL ? "no place to run" : r->v->reason);
    silent.verdict = TCTL_VERDICT_NONE;
    silent.checks = json_array();
    if (!tctl_verify_place(&silent, r->spec, r->store, folder, ret))
        st = tctl_fail(err, TCTL_EIO, "%s", silent.reason == NULL ? "no place to run" : silent.reason);
    json_decref(silent.checks);
    return st;
}

static const char *number_text(tctl_arena *arena, bool is_asked, uint64_t number)
{
    return is_asked ? tctl_arena_format(arena, "%" PRIu64, number) : NULL;
}

static tctl_status attempt(tctl_repeater *r, const char *place, const tctl_repeat_request *request,
                           tctl_repeat *again, tctl_error *err)
{
    tctl_arena *arena = r->v->arena;
    tctl_spec spec;
    tctl_spec_request asked;
    tctl_circumstances changed;
    tctl_status st = tctl_probe_apply(arena, request->probes, request->fill, r->spec, r->asked, &spec, &asked,
                                      &changed, err);
    if (st != TCTL_OK)
        return st;
    if (request->trace_every > 0)
        spec.determinism.trace = request->trace_every;
    if (request->threads > 0)
        spec.resources.threads = request->threads;
    const tctl_attempt a = {
        .spec = &spec,
        .asked = &asked,
        .recipe_digest = r->recipe_digest,
        .run_id = r->run_id,
        .folder = again->folder,
        .work_folder = place,
        .grace_seconds = GRACE_SECONDS,
        .limit_seconds = r->limit_seconds,
        .view = request->view,
        .envelope = r->envelope,
        .allow_env = r->allow_env,
        .trace_every = request->trace_every,
        .trace_fine = !request->dumps
                          ? NULL
                          : tctl_arena_format(arena, "%" PRIu64 "-%" PRIu64, request->dump, request->dump),
        .trace_dump = number_text(arena, request->dumps, request->dump),
        .trace_stop = number_text(arena, request->stops, request->stop > 0 ? request->stop : 1),
        .changed = &changed,
    };
    return tctl_attempt_run(arena, &a, &again->end, err);
}

tctl_status tctl_repeat_make(tctl_repeater *r, const char *folder, const tctl_repeat_request *request,
                             tctl_repeat *ret, tctl_error *err)
{
    tctl_repeat again = {.folder = folder};
    const char *place = NULL;
    tctl_status st = folder == NULL ? make_scratch(r, &again.folder, err) : TCTL_OK;
    if (st == TCTL_OK)
        st = find_place(r, again.folder, folder != NULL, &place, err);
    if (st == TCTL_OK)
        st = attempt(r, place, request, &again, err);
    if (st == TCTL_OK && again.end.child.stopped_by != 0) {
        r->stopped = again.end.exit_code;
        st = tctl_fail(err, TCTL_ECANCELED, "%s", again.end.reason);
    }
    if (st == TCTL_OK && strcmp(again.end.state, TCTL_STATE_DONE) != 0)
        again.failure = again.end.reason == NULL ? "it failed" : again.end.reason;
    else if (st == TCTL_OK)
        again.side = tctl_verify_side(r->v, &again.end);
    if (request->stops && again.end.trace != NULL) /* what it had written by then is no output */
        json_object_del(again.side, "outputs");
    if (st != TCTL_OK)
        tctl_repeat_release(r, &again, folder == NULL);
    else
        *ret = again;
    return st;
}

void tctl_repeat_release(const tctl_repeater *r, tctl_repeat *again, bool remove)
{
    if (remove && !r->keep && again->folder != NULL)
        tctl_remove_tree(again->folder, NULL);
    json_decref(again->side);
    tctl_attempt_release(&again->end);
    *again = (tctl_repeat){0};
}

tctl_status tctl_repeat_compare(const tctl_repeater *r, const tctl_repeat *a, const tctl_repeat *b,
                                json_t **ret, tctl_error *err)
{
    return tctl_verify_pair(r->v, a->folder, a->side, b->folder, b->side, ret, err);
}
