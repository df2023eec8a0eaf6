/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The repetitions under probes. See deep.h for the order of questions.
 */
#include <stdio.h>
#include <string.h>

#include "launcher/deep.h"
#include "launcher/probe.h"

/* Two values for fresh memory. As floats they are 1.5e13 and -3e-13, so that one that is summed shows. */
enum { FILL_A = 0x55, FILL_B = 0xaa };

/* What came of some repetitions under the same probes. */
typedef struct series {
    uint32_t runs;
    bool agrees;         /* all of them gave the same */
    const char *failure; /* why one ended badly; NULL */
    bool crashed;        /* by a signal that nobody sent */
    tctl_repeat first;   /* kept for comparing */
} series;

static void release(const tctl_deep *d, series *s)
{
    tctl_repeat_release(&d->repeater, &s->first, true);
}

static tctl_status repeat_once(tctl_deep *d, uint32_t bits, unsigned fill, tctl_repeat *ret, tctl_error *err)
{
    const tctl_repeat_request request = {
        .probes = bits, .fill = fill, .stops = d->has_horizon, .stop = d->horizon, .view = d->quiet};
    return tctl_repeat_make(&d->repeater, NULL, &request, ret, err);
}

/* Up to `runs` repetitions; ends with the first that differs from the first one. */
static tctl_status make_series(tctl_deep *d, uint32_t bits, unsigned fill, uint32_t runs, series *ret,
                               tctl_error *err)
{
    series s = {.agrees = true};
    tctl_status st = TCTL_OK;
    while (st == TCTL_OK && s.agrees && s.runs < runs) {
        tctl_repeat one = {0};
        json_t *differs = NULL;
        st = repeat_once(d, bits, fill, &one, err);
        if (st != TCTL_OK)
            break;
        s.runs++;
        if (one.failure != NULL) {
            s.failure = one.failure;
            s.crashed = one.end.child.signal != 0 && !one.end.child.over_limit;
            s.agrees = false;
        } else if (s.first.folder != NULL) {
            st = tctl_repeat_compare(&d->repeater, &s.first, &one, &differs, err);
            s.agrees = differs == NULL;
        }
        json_decref(differs);
        if (s.first.folder == NULL && one.failure == NULL)
            s.first = one;
        else
            tctl_repeat_release(&d->repeater, &one, true);
    }
    if (st == TCTL_OK)
        *ret = s;
    else
        release(d, &s);
    return st;
}

static void note(tctl_deep *d, const char *name, const char *with, const series *s)
{
    json_array_append_new(d->probes,
                          json_pack("{s:s, s:s, s:i, s:b, s:s?}", "probe", name, "with", with, "runs",
                                    (int)s->runs, "agrees", (int)s->agrees, "failure", s->failure));
    tctl_view_say(d->view, "trainctl: %s: %u runs, %s", with, (unsigned)s->runs,
                  s->failure != NULL ? s->failure : (s->agrees ? "the same" : "not the same"));
}

/* ---- how often it agrees by chance ------------------------------------------------------------------------ */

enum { PLAIN_RUNS = 5, MAX_RUNS = 12 };
static const double ACCEPTED = 0.03; /* chance that a probe without effect is believed */

/* Two runs agree by chance as often as two of the plain ones did; one more run is counted that never came, so that this
 * is never taken for impossible. */
static double chance_of(const tctl_deep *d, uint32_t runs)
{
    double alike = (double)d->n_alike / (double)(d->n_plain + 1), chance = 1;
    for (uint32_t i = 1; i < runs; i++)
        chance *= alike;
    return chance;
}

bool tctl_deep_is_believable(const tctl_deep *d)
{
    return chance_of(d, d->runs) <= ACCEPTED;
}

/* Which of the different results this one is; `n` if it is none of them. */
static tctl_status find_alike(const tctl_deep *d, const tctl_repeat *different, uint32_t n,
                              const tctl_repeat *one, uint32_t *ret, tctl_error *err)
{
    for (uint32_t k = 0; k < n; k++) {
        json_t *differs = NULL;
        tctl_status st = tctl_repeat_compare(&d->repeater, &different[k], one, &differs, err);
        bool same = differs == NULL;
        json_decref(differs);
        if (st != TCTL_OK)
            return st;
        if (same) {
            *ret = k;
            return TCTL_OK;
        }
    }
    *ret = n;
    return TCTL_OK;
}

/* Runs without a probe: how many give the same result decides how many must agree under one. */
static tctl_status count_chance(tctl_deep *d, tctl_error *err)
{
    tctl_repeat different[PLAIN_RUNS];
    uint32_t counts[PLAIN_RUNS] = {0}, n = 0, k = 0;
    tctl_status st = TCTL_OK;
    while (d->n_plain < PLAIN_RUNS && st == TCTL_OK) {
        tctl_repeat one = {0};
        st = repeat_once(d, 0, 0, &one, err);
        d->n_plain++;
        if (st == TCTL_OK && one.failure == NULL)
            st = find_alike(d, different, n, &one, &k, err);
        if (st == TCTL_OK && one.failure == NULL) {
            counts[k]++;
            d->n_alike = counts[k] > d->n_alike ? counts[k] : d->n_alike;
        }
        if (st == TCTL_OK && one.failure == NULL && k == n)
            different[n++] = one;
        else
            tctl_repeat_release(&d->repeater, &one, true);
    }
    for (k = 0; k < n; k++)
        tctl_repeat_release(&d->repeater, &different[k], true);
    while (st == TCTL_OK && d->runs < MAX_RUNS && !tctl_deep_is_believable(d))
        d->runs++;
    if (st == TCTL_OK)
        tctl_view_say(d->view,
                      "trainctl: without a probe: %u of %u runs gave the same, so %u must agree under one",
                      (unsigned)d->n_alike, (unsigned)d->n_plain, (unsigned)d->runs);
    return st;
}

/* ---- one circumstance ----------------------------------------------------------------------------------- */

/*
 * Results follow what fresh memory holds if repetitions with one value agree, and another value gives something else, or
 * if one makes a program crash that does not crash otherwise. Agreeing alone would say little: a correct program agrees under both.
 */
static tctl_status probe_memory(tctl_deep *d, uint32_t others, bool *ret, tctl_error *err)
{
    const tctl_probe *p = tctl_probe_of(TCTL_PROBE_MEMORY);
    series a = {0}, b = {0};
    json_t *differs = NULL;
    *ret = false;
    tctl_status st = make_series(d, others | p->bit, FILL_A, d->runs, &a, err);
    if (st != TCTL_OK)
        return st;
    if (a.agrees)
        st = make_series(d, others | p->bit, FILL_B, d->runs, &b, err);
    if (st == TCTL_OK && a.agrees && b.agrees)
        st = tctl_repeat_compare(&d->repeater, &a.first, &b.first, &differs, err);
    if (st == TCTL_OK) {
        note(d, p->name, p->with, &a);
        if (a.agrees)
            note(d, p->name, "with fresh memory filled with another value", &b);
        *ret = differs != NULL || a.crashed || b.crashed;
        if (a.agrees && b.agrees)
            tctl_view_say(d->view, "trainctl: the two values give %s",
                          differs == NULL ? "the same results" : "different results");
    }
    json_decref(differs);
    release(d, &a);
    release(d, &b);
    return st;
}

tctl_status tctl_deep_probe_memory(tctl_deep *d, bool *ret, tctl_error *err)
{
    return probe_memory(d, 0, ret, err);
}

static tctl_status probe(tctl_deep *d, uint32_t bits, const char *name, const char *with, bool *ret,
                         tctl_error *err)
{
    series s = {0};
    tctl_status st = make_series(d, bits, FILL_A, d->runs, &s, err);
    if (st != TCTL_OK)
        return st;
    note(d, name, with, &s);
    *ret = s.agrees;
    release(d, &s);
    return TCTL_OK;
}

/* The next probe from number *i on whose cause is still open, or NULL; *i goes behind it. */
static const tctl_probe *next_open(uint32_t open, uint32_t *i)
{
    while (*i < TCTL_N_PROBES) {
        const tctl_probe *p = tctl_probe_at((*i)++);
        if (open & p->bit)
            return p;
    }
    return NULL;
}

static tctl_status probe_singly(tctl_deep *d, uint32_t open, uint32_t *ret, tctl_error *err)
{
    const tctl_probe *p;
    for (uint32_t i = 0; (p = next_open(open, &i)) != NULL;) {
        bool found = false;
        tctl_status st = p->bit == TCTL_PROBE_MEMORY ? probe_memory(d, 0, &found, err)
                                                     : probe(d, p->bit, p->name, p->with, &found, err);
        if (st != TCTL_OK)
            return st;
        if (found) {
            *ret = p->bit;
            return TCTL_OK;
        }
    }
    return TCTL_OK;
}

/* ---- several -------------------------------------------------------------------------------------------- */

/* With everything held still it agrees: what may not be missing is part of the cause. */
static tctl_status leave_one_out(tctl_deep *d, uint32_t open, uint32_t *ret, tctl_error *err)
{
    const tctl_probe *p;
    for (uint32_t i = 0; (p = next_open(open, &i)) != NULL;) {
        bool agrees = false;
        const char *name = tctl_arena_format(d->repeater.v->arena, "all but %s", p->name),
                   *with = tctl_arena_format(d->repeater.v->arena, "all but that: %s", p->with);
        if (name == NULL || with == NULL)
            return tctl_fail_memory(err, 0);
        tctl_status st = probe(d, open & ~p->bit, name, with, &agrees, err);
        if (st != TCTL_OK)
            return st;
        *ret |= agrees ? 0 : p->bit;
    }
    return TCTL_OK;
}

tctl_status tctl_deep_probe(tctl_deep *d, uint32_t *ret, tctl_error *err)
{
    uint32_t open = tctl_probes_open(d->repeater.spec), found = 0;
    bool agrees = false;
    tctl_status st = count_chance(d, err);
    if (st == TCTL_OK)
        st = probe_singly(d, open, &found, err);
    if (st == TCTL_OK && found == 0)
        st = probe(d, open, "all", "with all of these at once", &agrees, err);
    if (st == TCTL_OK && agrees)
        st = leave_one_out(d, open, &found, err);
    if (st == TCTL_OK)
        *ret = found;
    return st;
}
