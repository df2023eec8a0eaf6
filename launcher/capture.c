/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Capturing data, code and machine, in this order: data is left out of the kept code.
 */
#include "launcher/capture.h"

#include <unistd.h>

#include "base/file.h"
#include "manifest/code.h"
#include "manifest/environment.h"

const char *const *tctl_secret_names(tctl_arena *arena, const tctl_spec *spec)
{
    const char **names = tctl_arena_take_array(arena, (size_t)spec->n_secrets + 1, sizeof *names);
    for (uint32_t i = 0; names != NULL && i < spec->n_secrets; i++)
        names[i] = spec->secrets[i];
    return names;
}

static tctl_status capture_data(tctl_arena *arena, const tctl_spec *spec, const tctl_run *run,
                                tctl_view *view, tctl_capture *c, tctl_error *err)
{
    tctl_error why = {0};
    const char *cache = tctl_stat_cache_default_path(arena);
    const char *listings = tctl_path_join(arena, run->path, "inputs");
    if (cache != NULL)
        c->cache = tctl_stat_cache_open(cache, &why);
    if (why.code != TCTL_OK)
        tctl_view_say(view, "trainctl: warning: no cache of digests: %s", why.message);
    tctl_status st = tctl_inputs_collect(arena, spec, &c->inputs, err);
    if (st == TCTL_OK)
        st = tctl_inputs_hash(arena, &c->inputs, c->cache, view, err);
    if (st == TCTL_OK)
        st = listings == NULL ? tctl_fail_memory(err, 0) : tctl_inputs_keep(&c->inputs, arena, listings, err);
    return st;
}

tctl_status tctl_capture_make(tctl_arena *arena, const tctl_spec *spec, const tctl_run *run,
                              const char *store, bool no_vcs, tctl_view *view, tctl_capture *ret,
                              tctl_error *err)
{
    *ret = (tctl_capture){0};
    tctl_status st = capture_data(arena, spec, run, view, ret, err);
    if (st != TCTL_OK)
        return st;
    tctl_code_request code = {
        .folder = spec->folder,
        .run = run->id,
        .store = store,
        .no_vcs = no_vcs,
        .inputs = ret->inputs.paths,
        .cache = ret->cache,
    };
    const char *const *secrets = tctl_secret_names(arena, spec);
    st = secrets == NULL ? tctl_fail_memory(err, 0) : tctl_code_capture(&code, &ret->code, err);
    if (st == TCTL_OK)
        st = tctl_environment_capture((const char *const *)environ, secrets, &ret->environment, err);
    return st;
}

tctl_status tctl_capture_recheck(tctl_arena *arena, const tctl_capture *c, tctl_error *err)
{
    return tctl_inputs_check(arena, &c->inputs, c->cache, NULL, "during the run", NULL, err);
}

void tctl_capture_release(tctl_capture *c)
{
    tctl_stat_cache_close(c->cache);
    json_decref(c->code);
    json_decref(c->environment);
    *c = (tctl_capture){0};
}
