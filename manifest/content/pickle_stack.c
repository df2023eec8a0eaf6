/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the machine, its memo, and the values that are made of what lies on it. See pickle.h.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "manifest/content/pickle_machine.h"

enum { MAX_ITEMS = 16 << 20 };

tctl_status tctl_pickle_bad(const tctl_pickle_machine *m, const char *why)
{
    return tctl_fail(m->err, TCTL_EFORMAT,
                     "'%s' is damaged: the pickle at byte %" PRIu64 ", near byte %" PRIu64 ": %s",
                     m->from->name, m->begin, m->at, why);
}

tctl_status tctl_pickle_unknown(const tctl_pickle_machine *m, const char *what, unsigned code)
{
    return tctl_fail(m->err, TCTL_EUNSUPPORTED,
                     "'%s': the pickle at byte %" PRIu64 " has %s 0x%02x near byte %" PRIu64, m->from->name,
                     m->begin, what, code, m->at);
}

static tctl_status grow(tctl_pickle_machine *m, void **of, size_t *room, size_t need, size_t item)
{
    size_t more = *room == 0 ? 256 : *room;
    while (more < need)
        more *= 2;
    void *grown = more * item / item == more ? realloc(*of, more * item) : NULL;
    if (grown == NULL)
        return tctl_fail_memory(m->err, more * item);
    *of = grown;
    *room = more;
    return TCTL_OK;
}

tctl_status tctl_pickle_push(tctl_pickle_machine *m, tctl_pickled *value)
{
    if (m->stack.n == m->stack.room) {
        tctl_status st = grow(m, (void **)&m->stack.of, &m->stack.room, m->stack.n + 1, sizeof *m->stack.of);
        if (st != TCTL_OK)
            return st;
    }
    if (m->stack.n >= TCTL_PICKLE_VALUES) /* DUP and GET push without making values */
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle with too deep a stack", m->from->name);
    m->stack.of[m->stack.n++] = value;
    return TCTL_OK;
}

static size_t floor_of(const tctl_pickle_machine *m)
{
    return m->n_marks > 0 ? m->marks[m->n_marks - 1] : 0;
}

/* NULL if there is none above the last mark. */
tctl_pickled *tctl_pickle_pop(tctl_pickle_machine *m)
{
    return m->stack.n > floor_of(m) ? m->stack.of[--m->stack.n] : NULL;
}

tctl_pickled *tctl_pickle_top(const tctl_pickle_machine *m)
{
    return m->stack.n > floor_of(m) ? m->stack.of[m->stack.n - 1] : NULL;
}

/* What lies above the last mark, which goes; it stays valid until the next push. */
static bool pop_mark(tctl_pickle_machine *m, tctl_pickled ***ret, size_t *ret_n)
{
    if (m->n_marks == 0)
        return false;
    size_t at = m->marks[--m->n_marks];
    *ret = m->stack.of == NULL ? NULL : m->stack.of + at;
    *ret_n = m->stack.n - at;
    m->stack.n = at;
    return true;
}

tctl_status tctl_pickle_make(tctl_pickle_machine *m, int kind, tctl_pickled **ret)
{
    if (m->n_values++ == TCTL_PICKLE_VALUES)
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle of too many values", m->from->name);
    tctl_pickled *value = tctl_arena_take(m->arena, sizeof *value);
    if (value == NULL)
        return tctl_fail_memory(m->err, sizeof *value);
    value->kind = kind;
    *ret = value;
    return TCTL_OK;
}

/* Appends to an array in the arena. */
static tctl_status add_items(tctl_pickle_machine *m, tctl_pickled ***of, size_t *n, size_t *room,
                             tctl_pickled **more, size_t n_more)
{
    if (n_more == 0 || more == NULL)
        return TCTL_OK;
    m->n_items += n_more;
    if (m->n_items > MAX_ITEMS) /* GET and DUP fill containers without making values */
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle of too many values", m->from->name);
    if (n_more > *room - *n) {
        size_t need = *n + n_more > 2 * *room ? *n + n_more : 2 * *room;
        tctl_pickled **grown = tctl_arena_take_array(m->arena, need, sizeof(tctl_pickled *));
        if (grown == NULL)
            return tctl_fail_memory(m->err, need * sizeof(tctl_pickled *));
        if (*n > 0)
            memcpy(grown, *of, *n * sizeof(tctl_pickled *));
        *of = grown;
        *room = need;
    }
    memcpy(*of + *n, more, n_more * sizeof(tctl_pickled *));
    *n += n_more;
    return TCTL_OK;
}

static tctl_status add_to(tctl_pickle_machine *m, tctl_pickled *value, tctl_pickled **more, size_t n)
{
    return add_items(m, &value->u.items.of, &value->u.items.n, &value->u.items.room, more, n);
}

/* ---- containers ---------------------------------------------------------------------------------------------- */

static tctl_status collect(tctl_pickle_machine *m, int kind, tctl_pickled **items, size_t n)
{
    tctl_pickled *value = NULL;
    tctl_status st = tctl_pickle_make(m, kind, &value);
    if (st == TCTL_OK)
        st = add_to(m, value, items, n);
    return st == TCTL_OK ? tctl_pickle_push(m, value) : st;
}

/* Of what lies above the mark. */
tctl_status tctl_pickle_collect_marked(tctl_pickle_machine *m, int kind)
{
    tctl_pickled **items = NULL;
    size_t n = 0;
    if (!pop_mark(m, &items, &n))
        return tctl_pickle_bad(m, "there is no mark");
    if (kind == TCTL_PICKLE_DICT && n % 2 != 0)
        return tctl_pickle_bad(m, "a key without a value");
    return collect(m, kind, items, n);
}

/* Of the n values on top. */
tctl_status tctl_pickle_collect_top(tctl_pickle_machine *m, size_t n)
{
    if (m->stack.n - floor_of(m) < n)
        return tctl_pickle_bad(m, "too few values for a tuple");
    m->stack.n -= n;
    return collect(m, TCTL_PICKLE_TUPLE, m->stack.of + m->stack.n, n);
}

static tctl_status append(tctl_pickle_machine *m, tctl_pickled **items, size_t n)
{
    tctl_pickled *to = tctl_pickle_top(m);
    if (to == NULL ||
        (to->kind != TCTL_PICKLE_LIST && to->kind != TCTL_PICKLE_SET && to->kind != TCTL_PICKLE_OBJECT))
        return tctl_pickle_bad(m, "something is appended to what is no list");
    return add_to(m, to, items, n);
}

static tctl_status set_items(tctl_pickle_machine *m, tctl_pickled **items, size_t n)
{
    tctl_pickled *to = tctl_pickle_top(m);
    if (n % 2 != 0)
        return tctl_pickle_bad(m, "a key without a value");
    if (to != NULL && to->kind == TCTL_PICKLE_DICT)
        return add_to(m, to, items, n);
    if (to != NULL && to->kind == TCTL_PICKLE_OBJECT)
        return add_items(m, &to->pairs, &to->n_pairs, &to->room_pairs, items, n);
    return tctl_pickle_bad(m, "something is set in what is no dict");
}

static tctl_status with_marked(tctl_pickle_machine *m,
                               tctl_status (*use)(tctl_pickle_machine *, tctl_pickled **, size_t))
{
    tctl_pickled **items = NULL;
    size_t n = 0;
    return pop_mark(m, &items, &n) ? use(m, items, n) : tctl_pickle_bad(m, "there is no mark");
}

/* The n values on top; `use` sees the stack without them. */
static tctl_status with_top(tctl_pickle_machine *m, size_t n,
                            tctl_status (*use)(tctl_pickle_machine *, tctl_pickled **, size_t))
{
    if (m->stack.n - floor_of(m) < n)
        return tctl_pickle_bad(m, "too few values");
    m->stack.n -= n;
    return use(m, m->stack.of + m->stack.n, n);
}

static tctl_status object(tctl_pickle_machine *m, tctl_pickled *callable, tctl_pickled *args,
                          tctl_pickled *keywords)
{
    tctl_pickled *value = NULL;
    if (callable == NULL || args == NULL || args->kind != TCTL_PICKLE_TUPLE)
        return tctl_pickle_bad(m, "a call without arguments");
    tctl_status st = tctl_pickle_make(m, TCTL_PICKLE_OBJECT, &value);
    if (value == NULL)
        return tctl_as_failure(st);
    value->callable = callable;
    value->args = args;
    if (keywords != NULL) { /* as the state that they are */
        tctl_pickled *name = NULL;
        st = tctl_pickle_make(m, TCTL_PICKLE_NONE, &name);
        tctl_pickled *const pair[] = {name, keywords};
        if (st == TCTL_OK)
            st = add_items(m, &value->pairs, &value->n_pairs, &value->room_pairs,
                           (tctl_pickled **)(uintptr_t)pair, 2);
    }
    return st == TCTL_OK ? tctl_pickle_push(m, value) : st;
}

tctl_status tctl_pickle_build(tctl_pickle_machine *m)
{
    tctl_pickled *state = tctl_pickle_pop(m), *to = tctl_pickle_top(m);
    if (to == NULL || state == NULL)
        return tctl_pickle_bad(m, "a state without an object");
    if ((to->kind != TCTL_PICKLE_OBJECT && to->kind != TCTL_PICKLE_DICT) || to->state != NULL)
        return tctl_pickle_unknown(m, "a second or strange state, opcode", OP_BUILD);
    to->state = state;
    return TCTL_OK;
}

tctl_status tctl_pickle_persistent(tctl_pickle_machine *m)
{
    tctl_pickled *value = NULL, *id = tctl_pickle_pop(m);
    if (id == NULL)
        return tctl_pickle_bad(m, "a persistent id is missing");
    tctl_status st = tctl_pickle_make(m, TCTL_PICKLE_PERSISTENT, &value);
    if (value == NULL)
        return tctl_as_failure(st);
    value->args = id;
    value->next = m->persistent;
    m->persistent = value;
    return tctl_pickle_push(m, value);
}

static tctl_status nothing(tctl_pickle_machine *m, tctl_pickled **items, size_t n)
{
    (void)m;
    (void)items;
    (void)n;
    return TCTL_OK;
}

tctl_status tctl_pickle_drop_marked(tctl_pickle_machine *m)
{
    return with_marked(m, nothing);
}

tctl_status tctl_pickle_fill(tctl_pickle_machine *m, unsigned op)
{
    switch (op) {
    case OP_APPEND:
        return with_top(m, 1, append);
    case OP_SETITEM:
        return with_top(m, 2, set_items);
    case OP_SETITEMS:
        return with_marked(m, set_items);
    default: /* APPENDS, ADDITEMS */
        return with_marked(m, append);
    }
}

tctl_status tctl_pickle_call(tctl_pickle_machine *m, unsigned op)
{
    tctl_pickled *keywords = op == OP_NEWOBJ_EX ? tctl_pickle_pop(m) : NULL, *args = tctl_pickle_pop(m),
                 *callable = tctl_pickle_pop(m);
    if (op == OP_NEWOBJ_EX && keywords == NULL)
        return tctl_pickle_bad(m, "a call without arguments");
    return object(m, callable, args, keywords);
}

/* ---- memo ---------------------------------------------------------------------------------------------------- */

tctl_status tctl_pickle_put(tctl_pickle_machine *m, uint64_t index)
{
    tctl_pickled *value = tctl_pickle_top(m);
    if (value == NULL)
        return tctl_pickle_bad(m, "nothing to remember");
    if (index >= TCTL_PICKLE_VALUES)
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle with too large a memo", m->from->name);
    if (index >= m->memo.room) {
        size_t before = m->memo.room;
        tctl_status st = grow(m, (void **)&m->memo.of, &m->memo.room, (size_t)index + 1, sizeof *m->memo.of);
        if (st != TCTL_OK)
            return st;
        memset(m->memo.of + before, 0, (m->memo.room - before) * sizeof *m->memo.of);
    }
    m->n_memo += m->memo.of[index] == NULL;
    m->memo.of[index] = value;
    return TCTL_OK;
}

tctl_status tctl_pickle_get(tctl_pickle_machine *m, uint64_t index)
{
    if (index >= m->memo.room || m->memo.of[index] == NULL)
        return tctl_pickle_bad(m, "something is used that was not remembered");
    return tctl_pickle_push(m, m->memo.of[index]);
}

tctl_status tctl_pickle_mark(tctl_pickle_machine *m)
{
    if (m->n_marks == m->room_marks) {
        tctl_status st = grow(m, (void **)&m->marks, &m->room_marks, m->n_marks + 1, sizeof *m->marks);
        if (st != TCTL_OK)
            return st;
    }
    if (m->n_marks >= TCTL_PICKLE_VALUES)
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle with too many marks", m->from->name);
    m->marks[m->n_marks++] = m->stack.n;
    return TCTL_OK;
}
