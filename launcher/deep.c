/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See deep.h: the course of questions, and how their answers are put into the verdict.
 */
#include "launcher/deep.h"

#include <string.h>

#include "base/num.h"
#include "launcher/probe.h"

#define LIMIT_TIMES   10
#define LIMIT_SECONDS 60

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static uint64_t step_of(const json_t *verdict)
{
    const char *text = text_of(verdict, "step");
    uint64_t step = 0;
    return tctl_parse_uint(text, strlen(text), &step) ? step : 0;
}

/* ---- what the answers say ------------------------------------------------------------------------------- */

/* The new verdict, with `why` in front of what it says itself. Takes `verdict` over. */
static tctl_status conclude(tctl_deep *d, json_t *verdict, int code, const char *why, tctl_error *err)
{
    tctl_verification *v = d->repeater.v;
    const char *shown = text_of(verdict, "why");
    bool has_cause = json_array_size(json_object_get(verdict, "causes")) > 0;
    const char *whole = tctl_arena_format(v->arena, has_cause ? "%s: %s" : "%s; first seen: %s", why, shown);
    if (whole == NULL) {
        json_decref(verdict);
        return tctl_fail_memory(err, strlen(why));
    }
    json_object_set_new(verdict, "why", json_string(whole));
    json_object_set_new(verdict, "self", json_string(d->self));
    if (verdict != v->first_divergence)
        json_decref(v->first_divergence);
    v->first_divergence = verdict;
    v->verdict = code;
    v->reason = whole;
    return TCTL_OK;
}

/* "clock", or "clock and threads"; names and advice also into the verdict. */
static const char *name_circumstances(const tctl_deep *d, json_t *verdict, uint32_t bits)
{
    json_t *names = json_array(), *advice = json_array();
    tctl_buf causes = TCTL_BUF_INIT;
    for (uint32_t i = 0; i < TCTL_N_PROBES; i++) {
        const tctl_probe *p = tctl_probe_at(i);
        if (!(bits & p->bit))
            continue;
        json_array_append_new(names, json_string(p->name));
        json_array_append_new(advice, json_string(p->advice));
        tctl_buf_add_format(&causes, "%s%s", causes.size > 0 ? ", and on " : "", p->cause);
    }
    json_object_set_new(verdict, "circumstances", names);
    json_object_set_new(verdict, "advice", advice);
    const char *text = tctl_buf_text(&causes);
    const char *copy = text == NULL ? NULL : tctl_arena_copy(d->repeater.v->arena, text, causes.size);
    tctl_buf_release(&causes);
    return copy == NULL ? "?" : copy;
}

static tctl_status conclude_disagreement(tctl_deep *d, json_t *verdict, uint32_t found, tctl_error *err)
{
    tctl_arena *arena = d->repeater.v->arena;
    const char *causes = name_circumstances(d, verdict, found), *why;
    if (found == 0)
        why = "the program disagrees with itself, and it is not known on what that depends: it did so under "
              "every "
              "probe";
    else if (found == TCTL_PROBE_MEMORY)
        why = tctl_arena_format(arena, "the program disagrees with itself: its results depend on %s", causes);
    else
        why = tctl_arena_format(arena,
                                "the program disagrees with itself: its results depend on %s (%u of %u runs "
                                "agree %s, and %u of %u without)",
                                causes, (unsigned)d->runs, (unsigned)d->runs,
                                tctl_probe_of(found) == NULL ? "with these held still"
                                                             : tctl_probe_of(found)->with,
                                (unsigned)d->n_alike, (unsigned)d->n_plain);
    bool is_sure = found == TCTL_PROBE_MEMORY, is_likely = found != 0 && tctl_deep_is_believable(d);
    json_object_set_new(verdict, "confidence",
                        json_string(is_sure     ? "certain"
                                    : is_likely ? "likely"
                                                : "unknown"));
    return why == NULL ? tctl_fail_memory(err, 0) : conclude(d, verdict, TCTL_VERDICT_DIFFERS, why, err);
}

/* ---- only the record is another ------------------------------------------------------------------------- */

/* True if the work, done under that request, gives what was recorded. */
static tctl_status try_record(tctl_deep *d, const tctl_repeat_request *request, const char *name,
                              const char *with, bool *ret, tctl_error *err)
{
    tctl_verification *v = d->repeater.v;
    tctl_repeat again = {0};
    json_t *differs = NULL;
    *ret = false;
    tctl_status st = tctl_repeat_make(&d->repeater, NULL, request, &again, err);
    if (st == TCTL_OK && again.failure == NULL) {
        st = tctl_verify_pair(v, v->run->path, v->manifest, again.folder, again.side, &differs, err);
        *ret = differs == NULL && st == TCTL_OK;
    }
    if (st == TCTL_OK) {
        tctl_view_say(d->view, "trainctl: %s: %s", with, *ret ? "as recorded" : "not as recorded");
        json_array_append_new(d->probes, json_pack("{s:s, s:s, s:i, s:b, s:s?}", "probe", name, "with", with,
                                                   "runs", 1, "agrees", (int)*ret, "failure", again.failure));
    }
    json_decref(differs);
    tctl_repeat_release(&d->repeater, &again, true);
    return st;
}

static json_int_t recorded_threads(const tctl_deep *d)
{
    const json_t *resources = json_object_get(d->repeater.v->manifest, "resources");
    return json_integer_value(json_object_get(resources, "threads"));
}

/* Without what may have come since: another number of threads, a library that flushes denormals. What gives the record
 * then is the cause. */
static tctl_status explain_record(tctl_deep *d, json_t *verdict, const char **ret_why, tctl_error *err)
{
    const tctl_spec *spec = d->repeater.spec;
    json_int_t threads = recorded_threads(d);
    bool found = false;
    tctl_status st = TCTL_OK;
    if (threads >= 1 && (uint32_t)threads != spec->resources.threads) {
        const tctl_repeat_request request = {.threads = (uint32_t)threads, .view = d->quiet};
        st = try_record(d, &request, "recorded threads", "with the recorded number of threads", &found, err);
        if (found) {
            json_object_set_new(verdict, "circumstances", json_pack("[s]", "recorded threads"));
            *ret_why = "the results depend on the number of threads";
        }
    }
    if (st == TCTL_OK && !found && (tctl_probes_open(spec) & TCTL_PROBE_DENORMALS)) {
        const tctl_probe *p = tctl_probe_of(TCTL_PROBE_DENORMALS);
        const tctl_repeat_request request = {.probes = p->bit, .view = d->quiet};
        st = try_record(d, &request, p->name, p->with, &found, err);
        if (found)
            *ret_why = tctl_arena_format(d->repeater.v->arena, "the results depend on %s",
                                         name_circumstances(d, verdict, p->bit));
    }
    if (found)
        json_object_set_new(verdict, "confidence", json_string("certain"));
    return st;
}

static tctl_status look_at_record(tctl_deep *d, tctl_error *err)
{
    tctl_verification *v = d->repeater.v;
    json_t *verdict = v->first_divergence;
    bool is_memory = false;
    const char *why = NULL;
    size_t n_causes = json_array_size(json_object_get(verdict, "causes"));
    json_object_set_new(verdict, "circumstances", json_array());
    json_object_set_new(verdict, "advice", json_array());
    tctl_status st = explain_record(d, verdict, &why, err);
    if (st == TCTL_OK && why == NULL && n_causes == 0)
        st = tctl_deep_probe_memory(d, &is_memory, err);
    if (st != TCTL_OK)
        return st;
    if (is_memory) {
        why = tctl_arena_format(v->arena, "the results depend on %s",
                                name_circumstances(d, verdict, TCTL_PROBE_MEMORY));
        json_object_set_new(verdict, "confidence", json_string("certain"));
    } else if (why == NULL && n_causes > 0) {
        why = "the program agrees with itself now, and not with its record";
    } else if (why == NULL) {
        why = "the program agrees with itself now, and not with its record, though nothing that was recorded "
              "differs";
    }
    return why == NULL ? tctl_fail_memory(err, 0) : conclude(d, verdict, v->verdict, why, err);
}

/* ---- the course ----------------------------------------------------------------------------------------- */

/* Behind which step every difference between these three has shown. */
static tctl_status find_horizon(tctl_deep *d, const json_t *of_pair, const tctl_repeat *second,
                                tctl_error *err)
{
    tctl_verification *v = d->repeater.v;
    json_t *of_record = NULL;
    const json_t *all[] = {of_pair, v->first_divergence, NULL};
    tctl_status st =
        tctl_verify_pair(v, v->run->path, v->manifest, second->folder, second->side, &of_record, err);
    all[2] = of_record;
    for (size_t i = 0; st == TCTL_OK && i < sizeof all / sizeof all[0]; i++) {
        bool in_trace = strcmp(text_of(all[i], "kind"), "value") == 0;
        if (i == 0 && !in_trace)
            break;
        d->has_horizon = true;
        if (in_trace && step_of(all[i]) > d->horizon)
            d->horizon = step_of(all[i]);
    }
    json_decref(of_record);
    return st;
}

static tctl_status look_at_itself(tctl_deep *d, json_t *verdict, const tctl_repeat *second, tctl_error *err)
{
    uint32_t found = 0;
    tctl_status st = d->repeater.v->run == NULL ? TCTL_OK : find_horizon(d, verdict, second, err);
    if (st == TCTL_OK)
        st = tctl_deep_probe(d, &found, err);
    if (st == TCTL_OK)
        st = tctl_deep_bisect(d, verdict, err);
    if (st == TCTL_OK)
        return conclude_disagreement(d, verdict, found, err);
    json_decref(verdict);
    return st;
}

tctl_status tctl_deep_look(tctl_deep *d, const tctl_repeat *first, tctl_error *err)
{
    tctl_repeat second = {0};
    json_t *verdict = NULL;
    tctl_verification *v = d->repeater.v;
    tctl_view_say(d->view, "trainctl: once more, to see whether it agrees with itself");
    d->repeater.limit_seconds = LIMIT_TIMES * first->end.child.seconds + LIMIT_SECONDS;
    const tctl_repeat_request request = {.view = d->quiet};
    tctl_status st = tctl_repeat_make(&d->repeater, NULL, &request, &second, err);
    if (st == TCTL_OK && second.failure != NULL)
        st = tctl_fail(err, TCTL_EIO, "the second time, the run failed: %s", second.failure);
    if (st == TCTL_OK)
        st = tctl_repeat_compare(&d->repeater, first, &second, &verdict, err);
    if (st == TCTL_OK) {
        d->self = verdict == NULL ? "agrees" : "disagrees";
        tctl_view_say(d->view, "trainctl: it %s with itself", d->self);
        if (verdict != NULL)
            st = look_at_itself(d, verdict, &second, err);
        else if (v->verdict != TCTL_VERDICT_IDENTICAL && v->first_divergence != NULL)
            st = look_at_record(d, err);
    }
    tctl_repeat_release(&d->repeater, &second, d->self == NULL || strcmp(d->self, "agrees") == 0);
    return st;
}
