/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the child's environment from the table of variables. What is judged about the user's variables is in
 * envelope_fate.c, how they are passed on in envelope_users.c; what is done to the process itself in envelope_enter.c.
 */
#include "launcher/envelope.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/envelope_internal.h"
#include "manifest/digest.h"
#include "manifest/environment.h"
#include "manifest/manifest.h"
#include "seed/stream.h"

#define MAX_NOTES 32
#define SIZE_STEP 32768u /* the environment's size is a multiple of this */

static void add_place(tctl_envelope_builder *b, const char *name, const char *value)
{
    if (value != NULL)
        tctl_envelope_add(b, name, value);
}

static void add_note(tctl_envelope_builder *b, const char *name, const char *was, const char *is,
                     const char *why)
{
    const char *note =
        tctl_arena_format(b->arena, "%s=%.40s of your environment is replaced by %s: %s", name, was, is, why);
    if (note != NULL && b->n_notes < MAX_NOTES)
        b->notes[b->n_notes++] = note;
}

/* ---- pinned ---------------------------------------------------------------------------------------------- */

/* The value that the table and the request give a variable; NULL: none. */
static const char *own_value(const tctl_envelope_builder *b, const tctl_variable *v)
{
    if (v->kind == TCTL_VARIABLE_THREADS)
        return tctl_arena_format(b->arena, "%" PRIu32, b->request->threads);
    if (v->kind == TCTL_VARIABLE_SEED) /* all of them take 32 bits */
        return tctl_arena_format(b->arena, "%" PRIu64,
                                 tctl_foreign_seed(b->request->seed, v->value) & 0xffffffffu);
    return tctl_variable_value(v);
}

/* A value that the user's shell has for a thread count or a seed is one that he may have meant. */
static void replace(tctl_envelope_builder *b, const tctl_variable *v, const char *was, const char *is)
{
    json_array_append_new(b->replaced, json_string(v->name));
    if (b->request->recorded != NULL)
        return;
    if (v->kind == TCTL_VARIABLE_THREADS)
        add_note(b, v->name, was, is, "'resources: {threads}' decides");
    else if (v->kind == TCTL_VARIABLE_SEED)
        add_note(b, v->name, was, is, "'seed' decides");
}

static void pin_from_table(tctl_envelope_builder *b)
{
    size_t n;
    const tctl_variable *table = tctl_variables(&n);
    for (size_t i = 0; i < n; i++) {
        const tctl_variable *v = &table[i], *found;
        const char *is = v->kind <= TCTL_VARIABLE_LIBRARY ? own_value(b, v) : NULL;
        const char *was = tctl_envelope_lookup(b->request->from, v->name);
        bool left = tctl_envelope_is_among(v->name, b->request->determinism->unpinned) ||
                    (v->kind == TCTL_VARIABLE_LIBRARY && !b->request->determinism->variables);
        if (is == NULL || left)
            continue; /* as the user has it: tctl_envelope_pass_users */
        bool was_allowed =
            tctl_envelope_is_text_in(json_object_get(b->request->recorded, "allowed"), v->name);
        if (b->request->recorded != NULL && (v->kind == TCTL_VARIABLE_LIBRARY || was_allowed))
            continue; /* as it was recorded */
        if (was == NULL || strcmp(was, is) == 0) {
            tctl_envelope_pin(b, v->name, is);
        } else if (tctl_envelope_fate(b->request, v->name, strlen(v->name), was, &found) ==
                   TCTL_FATE_REPLACED) {
            tctl_envelope_pin(b, v->name, is);
            replace(b, v, was, is);
        }
    }
}

/* Ours in front of the user's. What is recorded is the user's part: where we are installed changes no bit. */
static void prepend(tctl_envelope_builder *b, const char *name, const char *ours)
{
    const char *theirs = tctl_envelope_lookup(b->request->from, name);
    bool alone = theirs == NULL || *theirs == '\0';
    const char *value = alone ? ours : tctl_arena_format(b->arena, "%s:%s", ours, theirs);
    if (ours == NULL)
        return; /* the user's passes like any other */
    if (value == NULL) {
        b->failed = true;
        return;
    }
    tctl_envelope_add(b, name, value);
    if (!alone)
        tctl_envelope_record_value(b, name, theirs);
}

/* What a run and its verification differ in is not recorded. */
static void add_our_own(tctl_envelope_builder *b)
{
    const tctl_envelope_request *r = b->request;
    const char *knobs = tctl_envelope_knobs(b->arena, r->determinism);
    const char *seed = tctl_arena_format(b->arena, "%" PRIu64, r->seed);
    if (knobs == NULL || seed == NULL) {
        b->failed = true;
        return;
    }
    tctl_envelope_pin(b, "TRAINCTL_KNOBS", knobs);
    tctl_envelope_pin(b, "TRAINCTL_SEED", seed);
    add_place(b, "PWD", r->folder); /* shells set it: a length that was not counted would move the stack */
    add_place(b, "TRAINCTL_OUT", r->out);
    add_place(b, "TRAINCTL_RUN", r->run);
    add_place(b, "TRAINCTL_REPORT", r->report);
    add_place(b, "TRAINCTL_TRACE", r->trace);
    add_place(b, "TRAINCTL_TRACE_FINE", r->trace_fine);
    add_place(b, "TRAINCTL_TRACE_DUMP", r->trace_dump);
    add_place(b, "TRAINCTL_TRACE_STOP", r->trace_stop);
    const char *preload = r->interposer != NULL ? r->interposer : r->probe;
    if (r->interposer != NULL && r->probe != NULL)
        preload = tctl_arena_format(b->arena, "%s:%s", r->interposer, r->probe);
    b->failed = b->failed || (r->interposer != NULL && preload == NULL);
    prepend(b, "LD_PRELOAD", preload);
    if (r->interposer != NULL) /* of the first process; the interposer gives each its own */
        tctl_envelope_add(b, "TRAINCTL_PROCESS", "0000000000000000");
    prepend(b, "PYTHONPATH", r->python);
}

const char *tctl_envelope_knobs(tctl_arena *arena, const tctl_determinism *d)
{
    static const char *const on[] = {"off", "on"};
    char trace[16] = "off";
    if (d->trace > 0)
        snprintf(trace, sizeof trace, "%" PRIu32, d->trace);
    return tctl_arena_format(
        arena,
        "denormals=%s entropy=%s libc_seeds=%s python=%s python_seeds=%s seed_scope=%s sort_directories=%s "
        "state_check=%s torch=%s trace=%s",
        d->keep_denormals ? "keep" : "off", d->seeded_entropy ? "seeded" : "count", on[d->libc_seeds],
        on[d->python], on[d->python_seeds], d->sample_seeds ? "sample" : "worker", on[d->sort_directories],
        on[d->state_check], on[d->torch], trace);
}

/* The environment lies above the stack, so its size decides the stack's addresses: with this it is the same whatever
 * the run directory and the user's variables are called. Each variable also has a pointer. */
static void add_padding(tctl_envelope_builder *b)
{
    static const char name[] = "TRAINCTL_PAD";
    size_t size = sizeof name + 1 + sizeof(char *);
    for (size_t i = 0; i < b->n; i++)
        size += strlen(b->variables[i]) + 1 + sizeof(char *);
    size_t n = SIZE_STEP - size % SIZE_STEP;
    char *padding = tctl_arena_take(b->arena, n + 1);
    if (padding == NULL) {
        b->failed = true;
        return;
    }
    memset(padding, '-', n);
    tctl_envelope_add(b, name, padding);
}

/* ---- the record ------------------------------------------------------------------------------------------- */

static json_t *interposer_json(const char *path)
{
    tctl_sha256 digest;
    uint64_t size = 0;
    if (path == NULL || tctl_sha256_file(path, &digest, &size, NULL) != TCTL_OK)
        return json_null();
    return tctl_json_sha256(&digest);
}

static json_t *record_of(const tctl_envelope_builder *b, const tctl_envelope *made)
{
    const tctl_determinism *d = b->request->determinism;
    const char *aslr = made->no_aslr        ? "off"
                       : d->fixed_addresses ? "on: not permitted to switch it off"
                                            : "on: the spec says so";
    json_t *unpinned = json_array();
    for (const char *const *u = d->unpinned; u != NULL && *u != NULL; u++)
        json_array_append_new(unpinned, json_string(*u));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:s, s:o, s:o, s:b}", "variables",
                     b->values, "names", b->names, "secrets", b->secrets, "replaced", b->replaced, "kept",
                     b->kept, "allowed", b->allowed, "unpinned", unpinned, "umask", "022", "aslr", aslr,
                     "core_limit", "0", "limits", tctl_envelope_limits_json(&made->stack), "interposer",
                     interposer_json(b->request->interposer), "python", b->request->python != NULL);
}

tctl_status tctl_envelope_make(tctl_arena *arena, const tctl_envelope_request *request, tctl_envelope *ret,
                               tctl_error *err)
{
    tctl_status st = request->recorded != NULL ? TCTL_OK : tctl_envelope_check(request, err);
    if (st != TCTL_OK)
        return st;
    tctl_envelope_builder b = {.arena = arena, .request = request};
    b.variables = tctl_arena_take_array(arena, TCTL_ENVELOPE_MAX_VARIABLES + 1, sizeof *b.variables);
    b.notes = tctl_arena_take_array(arena, MAX_NOTES + 1, sizeof *b.notes);
    if (b.variables == NULL || b.notes == NULL)
        return tctl_fail_memory(err, TCTL_ENVELOPE_MAX_VARIABLES * sizeof *b.variables);
    json_t **lists[] = {&b.names, &b.secrets, &b.replaced, &b.kept, &b.allowed};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        *lists[i] = json_array();
    b.values = json_object();
    tctl_envelope made = {.one_cpu = request->one_cpu,
                          .no_aslr = request->determinism->fixed_addresses && tctl_envelope_can_drop_aslr(),
                          .stack = tctl_envelope_stack_limit(request->recorded)};
    pin_from_table(&b);
    add_our_own(&b);
    tctl_envelope_pass_recorded(&b);
    tctl_envelope_pass_users(&b);
    tctl_envelope_pass_secrets(&b);
    tctl_envelope_replace(&b);
    add_padding(&b);
    qsort(b.variables, b.n, sizeof *b.variables, tctl_envelope_by_text);
    made.variables = b.variables;
    made.notes = b.notes;
    made.record = record_of(&b, &made);
    if (made.record == NULL || b.failed) {
        json_decref(made.record);
        return tctl_fail_memory(err, TCTL_ENVELOPE_MAX_VARIABLES * sizeof *b.variables);
    }
    *ret = made;
    return TCTL_OK;
}

void tctl_envelope_release(tctl_envelope *envelope)
{
    json_decref(envelope->record);
    envelope->record = NULL;
}
