/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the child's environment from the table of variables. What is judged about the user's variables is in
 * envelope_fate.c; what is done to the process itself in envelope_enter.c.
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

#define MAX_VARIABLES 1024
#define MAX_NOTES     32
#define SIZE_STEP     32768u /* the environment's size is a multiple of this */

typedef struct builder {
    tctl_arena *arena;
    const tctl_envelope_request *request;
    const char **variables;
    size_t n;
    const char **notes;
    size_t n_notes;
    json_t *values, *names, *secrets, *replaced, *kept, *allowed;
    bool failed;
} builder;

/* The value of `name` in an environment, or NULL. */
static const char *lookup(const char *const *from, const char *name)
{
    size_t length = strlen(name);
    for (; from != NULL && *from != NULL; from++) {
        if (strncmp(*from, name, length) == 0 && (*from)[length] == '=')
            return *from + length + 1;
    }
    return NULL;
}

static bool is_among(const char *name, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++) {
        if (strcmp(name, *list) == 0)
            return true;
    }
    return false;
}

static bool is_text_in(const json_t *list, const char *text)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), text) == 0)
            return true;
    }
    return false;
}

static bool has(const builder *b, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < b->n; i++) {
        if (strncmp(b->variables[i], name, length) == 0 && b->variables[i][length] == '=')
            return true;
    }
    return false;
}

static void add(builder *b, const char *name, const char *value)
{
    const char *entry = tctl_arena_format(b->arena, "%s=%s", name, value);
    if (entry == NULL || b->n >= MAX_VARIABLES)
        b->failed = true;
    else
        b->variables[b->n++] = entry;
}

static void add_place(builder *b, const char *name, const char *value)
{
    if (value != NULL)
        add(b, name, value);
}

/* json_string refuses bytes that are not UTF-8; such a value is recorded by name. */
static void record_value(builder *b, const char *name, const char *value)
{
    json_t *text = json_string(value);
    if (text != NULL)
        json_object_set_new(b->values, name, text);
    else
        json_array_append_new(b->names, json_string(name));
}

static void add_note(builder *b, const char *name, const char *was, const char *is, const char *why)
{
    const char *note =
        tctl_arena_format(b->arena, "%s=%.40s of your environment is replaced by %s: %s", name, was, is, why);
    if (note != NULL && b->n_notes < MAX_NOTES)
        b->notes[b->n_notes++] = note;
}

/* ---- pinned ---------------------------------------------------------------------------------------------- */

/* The value that the table and the request give a variable; NULL: none. */
static const char *own_value(const builder *b, const tctl_variable *v)
{
    if (v->kind == TCTL_VARIABLE_THREADS)
        return tctl_arena_format(b->arena, "%" PRIu32, b->request->threads);
    if (v->kind == TCTL_VARIABLE_SEED) /* all of them take 32 bits */
        return tctl_arena_format(b->arena, "%" PRIu64,
                                 tctl_foreign_seed(b->request->seed, v->value) & 0xffffffffu);
    return tctl_variable_value(v);
}

static void pin(builder *b, const char *name, const char *value)
{
    add(b, name, value);
    record_value(b, name, value);
}

/* A value that the user's shell has for a thread count or a seed is one that he may have meant. */
static void replace(builder *b, const tctl_variable *v, const char *was, const char *is)
{
    json_array_append_new(b->replaced, json_string(v->name));
    if (b->request->recorded != NULL)
        return;
    if (v->kind == TCTL_VARIABLE_THREADS)
        add_note(b, v->name, was, is, "'resources: {threads}' decides");
    else if (v->kind == TCTL_VARIABLE_SEED)
        add_note(b, v->name, was, is, "'seed' decides");
}

static void pin_from_table(builder *b)
{
    size_t n;
    const tctl_variable *table = tctl_variables(&n);
    for (size_t i = 0; i < n; i++) {
        const tctl_variable *v = &table[i], *found;
        const char *is = v->kind <= TCTL_VARIABLE_LIBRARY ? own_value(b, v) : NULL;
        const char *was = lookup(b->request->from, v->name);
        bool left = is_among(v->name, b->request->determinism->unpinned) ||
                    (v->kind == TCTL_VARIABLE_LIBRARY && !b->request->determinism->variables);
        if (is == NULL || left)
            continue; /* as the user has it: pass_users_variables */
        bool was_allowed = is_text_in(json_object_get(b->request->recorded, "allowed"), v->name);
        if (b->request->recorded != NULL && (v->kind == TCTL_VARIABLE_LIBRARY || was_allowed))
            continue; /* as it was recorded */
        if (was == NULL || strcmp(was, is) == 0) {
            pin(b, v->name, is);
        } else if (tctl_envelope_fate(b->request, v->name, strlen(v->name), was, &found) ==
                   TCTL_FATE_REPLACED) {
            pin(b, v->name, is);
            replace(b, v, was, is);
        }
    }
}

/* Ours in front of the user's. What is recorded is the user's part: where we are installed changes no bit. */
static void prepend(builder *b, const char *name, const char *ours)
{
    const char *theirs = lookup(b->request->from, name);
    bool alone = theirs == NULL || *theirs == '\0';
    const char *value = alone ? ours : tctl_arena_format(b->arena, "%s:%s", ours, theirs);
    if (ours == NULL)
        return; /* the user's passes like any other */
    if (value == NULL) {
        b->failed = true;
        return;
    }
    add(b, name, value);
    if (!alone)
        record_value(b, name, theirs);
}

/* What a run and its verification differ in is not recorded. */
static void add_our_own(builder *b)
{
    const tctl_envelope_request *r = b->request;
    const char *knobs = tctl_envelope_knobs(b->arena, r->determinism);
    const char *seed = tctl_arena_format(b->arena, "%" PRIu64, r->seed);
    if (knobs == NULL || seed == NULL) {
        b->failed = true;
        return;
    }
    pin(b, "TRAINCTL_KNOBS", knobs);
    pin(b, "TRAINCTL_SEED", seed);
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
        add(b, "TRAINCTL_PROCESS", "0000000000000000");
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

/* ---- the user's ------------------------------------------------------------------------------------------- */

static void pass(builder *b, const tctl_variable *v, const char *name, const char *value, int fate)
{
    bool by_name = v == NULL ? tctl_environment_looks_secret(name) : v->kind == TCTL_VARIABLE_NAMED;
    add(b, name, value);
    if (by_name)
        json_array_append_new(b->names, json_string(name));
    else
        record_value(b, name, value);
    if (is_among(name, b->request->allow))
        json_array_append_new(b->allowed, json_string(name));
    else if (fate == TCTL_FATE_KEPT)
        json_array_append_new(b->kept, json_string(name));
}

/* True if `verify` takes it from the record, not from its own shell. */
static bool is_recorded(const builder *b, const tctl_variable *v, const char *name)
{
    if (b->request->recorded == NULL)
        return false;
    if (is_among(name, b->request->determinism->unpinned))
        return true;
    return v != NULL && (v->kind == TCTL_VARIABLE_LIBRARY || v->kind == TCTL_VARIABLE_CHOICE ||
                         v->kind == TCTL_VARIABLE_PASSED || v->kind == TCTL_VARIABLE_FAMILY);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the order of names: a shell's own order means nothing. */
static void pass_users_variables(builder *b)
{
    size_t n = 0;
    while (b->request->from != NULL && b->request->from[n] != NULL)
        n++;
    const char **sorted = tctl_arena_take_array(b->arena, n + 1, sizeof *sorted);
    if (sorted == NULL) {
        b->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = b->request->from[i];
    qsort(sorted, n, sizeof *sorted, by_text);
    for (const char **e = sorted; *e != NULL; e++) {
        const char *equals = strchr(*e, '=');
        size_t length = equals == NULL ? 0 : (size_t)(equals - *e);
        const tctl_variable *v = NULL;
        char *name = length == 0 ? NULL : tctl_arena_copy(b->arena, *e, length);
        if (length == 0 || name == NULL) {
            b->failed = b->failed || length > 0;
            continue;
        }
        if (has(b, name) || is_recorded(b, tctl_variable_find(name, length), name))
            continue;
        int fate = tctl_envelope_fate(b->request, name, length, equals + 1, &v);
        if (fate == TCTL_FATE_PASSED || fate == TCTL_FATE_KEPT)
            pass(b, v, name, equals + 1, fate);
    }
}

/* What was kept, passed by value or allowed then. A manifest may come from anywhere: a name with '=' is not one. */
static void pass_recorded_variables(builder *b)
{
    const json_t *recorded = b->request->recorded, *allowed = json_object_get(recorded, "allowed");
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(recorded, "variables"), name, value)
    {
        const tctl_variable *v = tctl_variable_find(name, strlen(name));
        bool was_allowed = is_text_in(allowed, name);
        if (*name == '\0' || strchr(name, '=') != NULL || has(b, name) || !json_is_string(value))
            continue;
        if (!was_allowed && !is_recorded(b, v, name))
            continue;
        bool was_kept = is_text_in(json_object_get(recorded, "kept"), name);
        pass(b, v, name, json_string_value(value), was_kept ? TCTL_FATE_KEPT : TCTL_FATE_PASSED);
        if (was_allowed && !is_among(name, b->request->allow))
            json_array_append_new(b->allowed, json_string(name));
    }
}

static void pass_secrets(builder *b)
{
    for (const char *const *s = b->request->secrets; s != NULL && *s != NULL; s++) {
        const char *value = lookup(b->request->from, *s);
        if (value != NULL && !has(b, *s))
            add(b, *s, value);
        json_array_append_new(b->secrets, json_string(*s));
        json_object_del(b->values, *s);
    }
}

/* A probe's, in place of what the name has so far. */
static void replace_variables(builder *b)
{
    for (const char *const *v = b->request->variables; v != NULL && *v != NULL; v++) {
        size_t length = strcspn(*v, "="), kept = 0;
        const char *name = tctl_arena_copy(b->arena, *v, length);
        for (size_t i = 0; i < b->n; i++) {
            if (strncmp(b->variables[i], *v, length + 1) != 0)
                b->variables[kept++] = b->variables[i];
        }
        b->n = kept;
        if (name == NULL || (*v)[length] != '=') {
            b->failed = true;
            return;
        }
        pin(b, name, *v + length + 1);
    }
}

/* The environment lies above the stack, so its size decides the stack's addresses: with this it is the same whatever
 * the run directory and the user's variables are called. Each variable also has a pointer. */
static void add_padding(builder *b)
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
    add(b, name, padding);
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

static json_t *record_of(const builder *b, const tctl_envelope *made)
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
    builder b = {.arena = arena, .request = request};
    b.variables = tctl_arena_take_array(arena, MAX_VARIABLES + 1, sizeof *b.variables);
    b.notes = tctl_arena_take_array(arena, MAX_NOTES + 1, sizeof *b.notes);
    if (b.variables == NULL || b.notes == NULL)
        return tctl_fail_memory(err, MAX_VARIABLES * sizeof *b.variables);
    json_t **lists[] = {&b.names, &b.secrets, &b.replaced, &b.kept, &b.allowed};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        *lists[i] = json_array();
    b.values = json_object();
    tctl_envelope made = {.one_cpu = request->one_cpu,
                          .no_aslr = request->determinism->fixed_addresses && tctl_envelope_can_drop_aslr(),
                          .stack = tctl_envelope_stack_limit(request->recorded)};
    pin_from_table(&b);
    add_our_own(&b);
    pass_recorded_variables(&b);
    pass_users_variables(&b);
    pass_secrets(&b);
    replace_variables(&b);
    add_padding(&b);
    qsort(b.variables, b.n, sizeof *b.variables, by_text);
    made.variables = b.variables;
    made.notes = b.notes;
    made.record = record_of(&b, &made);
    if (made.record == NULL || b.failed) {
        json_decref(made.record);
        return tctl_fail_memory(err, MAX_VARIABLES * sizeof *b.variables);
    }
    *ret = made;
    return TCTL_OK;
}

void tctl_envelope_release(tctl_envelope *envelope)
{
    json_decref(envelope->record);
    envelope->record = NULL;
}
