/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack machine. See pickle.h; the opcodes are those of Python's Lib/pickletools.py.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "manifest/content/pickle_machine.h"

enum { WINDOW_BYTES = 64 * 1024, NAME_BYTES = 255 };

/* ---- bytes --------------------------------------------------------------------------------------------------- */

static tctl_status read_bytes(tctl_pickle_machine *m, void *into, uint64_t n)
{
    if (m->at - m->begin > TCTL_PICKLE_BYTES_LIMIT || n > TCTL_PICKLE_BYTES_LIMIT)
        return tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle of more than 256 MiB", m->from->name);
    if (n > WINDOW_BYTES) {
        tctl_status st = tctl_source_read(m->from, m->at, into, (size_t)n, m->err);
        m->at += n;
        return st;
    }
    if (m->at < m->window_at || m->at + n > m->window_at + m->window_n) {
        uint64_t rest = m->at < m->from->size ? m->from->size - m->at : 0;
        size_t take = rest < WINDOW_BYTES ? (size_t)rest : WINDOW_BYTES;
        if (take < n)
            return tctl_pickle_bad(m, "it ends early");
        tctl_status st = tctl_source_read(m->from, m->at, m->window, take, m->err);
        if (st != TCTL_OK)
            return st;
        m->window_at = m->at;
        m->window_n = take;
    }
    memcpy(into, m->window + (m->at - m->window_at), (size_t)n);
    m->at += n;
    return TCTL_OK;
}

/* A little-endian count of 1, 2, 4 or 8 bytes. */
static tctl_status read_count(tctl_pickle_machine *m, size_t width, uint64_t *ret)
{
    unsigned char bytes[8] = {0};
    tctl_status st = read_bytes(m, bytes, width);
    *ret = tctl_get_u64(bytes);
    return st;
}

/* ---- values -------------------------------------------------------------------------------------------------- */
static tctl_status push_new(tctl_pickle_machine *m, int kind)
{
    tctl_pickled *value = NULL;
    tctl_status st = tctl_pickle_make(m, kind, &value);
    return st == TCTL_OK ? tctl_pickle_push(m, value) : st;
}

static tctl_status push_integer(tctl_pickle_machine *m, int kind, int64_t integer)
{
    tctl_pickled *value = NULL;
    tctl_status st = tctl_pickle_make(m, kind, &value);
    if (st != TCTL_OK)
        return st;
    value->u.integer = integer;
    return tctl_pickle_push(m, value);
}

static tctl_status push_text(tctl_pickle_machine *m, int kind, size_t width)
{
    uint64_t n = 0;
    tctl_pickled *value = NULL;
    tctl_status st = read_count(m, width, &n);
    if (st == TCTL_OK && (m->at > m->from->size || n > m->from->size - m->at))
        st = tctl_pickle_bad(m, "a text is longer than what is left");
    if (st == TCTL_OK && n > TCTL_PICKLE_BYTES_LIMIT)
        st = tctl_fail(m->err, TCTL_EUNSUPPORTED, "'%s' has a pickle of more than 256 MiB", m->from->name);
    if (st == TCTL_OK)
        st = tctl_pickle_make(m, kind, &value);
    if (st != TCTL_OK)
        return st;
    char *bytes = tctl_arena_take(m->arena, (size_t)n + 1);
    if (bytes == NULL)
        return tctl_fail_memory(m->err, (size_t)n + 1);
    st = read_bytes(m, bytes, n);
    value->u.text.bytes = bytes;
    value->u.text.size = (size_t)n;
    return st == TCTL_OK ? tctl_pickle_push(m, value) : st;
}

/* LONG1, LONG4: two's complement; up to 8 bytes it is an INT. */
static tctl_status push_long(tctl_pickle_machine *m, size_t width)
{
    tctl_status st = push_text(m, TCTL_PICKLE_LONG, width);
    tctl_pickled *value = st == TCTL_OK ? tctl_pickle_top(m) : NULL;
    if (value == NULL || value->u.text.size > 8)
        return st;
    unsigned char bytes[8];
    size_t n = value->u.text.size;
    const char *text = value->u.text.bytes;
    memset(bytes, n > 0 && (text[n - 1] & 0x80) != 0 ? 0xff : 0, sizeof bytes);
    memcpy(bytes, text, n);
    value->kind = TCTL_PICKLE_INT;
    value->u.integer = (int64_t)tctl_get_u64(bytes);
    return TCTL_OK;
}

static tctl_status push_number(tctl_pickle_machine *m, size_t width)
{
    uint64_t n = 0;
    tctl_status st = read_count(m, width, &n);
    if (st != TCTL_OK)
        return st;
    return push_integer(m, TCTL_PICKLE_INT, width == 4 ? (int64_t)(int32_t)(uint32_t)n : (int64_t)n);
}

static tctl_status push_float(tctl_pickle_machine *m)
{
    unsigned char bytes[8];
    uint64_t bits = 0;
    tctl_pickled *value = NULL;
    tctl_status st = read_bytes(m, bytes, sizeof bytes);
    if (st == TCTL_OK)
        st = tctl_pickle_make(m, TCTL_PICKLE_FLOAT, &value);
    if (st != TCTL_OK)
        return st;
    for (size_t i = 0; i < sizeof bytes; i++) /* the only big-endian thing in a pickle */
        bits = bits << 8 | bytes[i];
    memcpy(&value->u.real, &bits, sizeof bits);
    return tctl_pickle_push(m, value);
}

static tctl_status push_global(tctl_pickle_machine *m, const char *module, const char *name)
{
    tctl_pickled *value = NULL;
    tctl_status st = tctl_pickle_make(m, TCTL_PICKLE_GLOBAL, &value);
    if (st != TCTL_OK)
        return st;
    value->u.text.bytes = tctl_arena_format(m->arena, "%s %s", module, name);
    if (value->u.text.bytes == NULL)
        return tctl_fail_memory(m->err, 0);
    value->u.text.size = strlen(value->u.text.bytes);
    return tctl_pickle_push(m, value);
}

/* A line of at most 255 bytes, without its end. */
static tctl_status read_line(tctl_pickle_machine *m, char out[NAME_BYTES + 1])
{
    for (size_t n = 0; n <= NAME_BYTES; n++) {
        char c = '\0';
        tctl_status st = read_bytes(m, &c, 1);
        if (st != TCTL_OK)
            return st;
        out[n] = c == '\n' ? '\0' : c;
        if (c == '\n')
            return TCTL_OK;
        if (c == '\0')
            break;
    }
    return tctl_pickle_bad(m, "a name has no end");
}

static tctl_status global(tctl_pickle_machine *m)
{
    char module[NAME_BYTES + 1], name[NAME_BYTES + 1];
    tctl_status st = read_line(m, module);
    if (st == TCTL_OK)
        st = read_line(m, name);
    return st == TCTL_OK ? push_global(m, module, name) : st;
}

/* Short, so that a long text which is remembered once can't become many. */
static bool is_name(const tctl_pickled *value)
{
    return value->kind == TCTL_PICKLE_TEXT && value->u.text.size <= NAME_BYTES &&
           strlen(value->u.text.bytes) == value->u.text.size;
}

static tctl_status stack_global(tctl_pickle_machine *m)
{
    const tctl_pickled *name = tctl_pickle_pop(m), *module = tctl_pickle_pop(m);
    if (module == NULL || !is_name(module) || !is_name(name))
        return tctl_pickle_bad(m, "a global without a name");
    return push_global(m, module->u.text.bytes, name->u.text.bytes);
}

/* ---- opcodes ------------------------------------------------------------------------------------------------- */

static tctl_status skip(tctl_pickle_machine *m, size_t n)
{
    unsigned char skipped[8];
    return read_bytes(m, skipped, n);
}

static tctl_status memo_op(tctl_pickle_machine *m, unsigned op)
{
    uint64_t index = m->n_memo;
    size_t width = op == OP_BINGET || op == OP_BINPUT ? 1 : op == OP_MEMOIZE ? 0 : 4;
    tctl_status st = width > 0 ? read_count(m, width, &index) : TCTL_OK;
    if (st != TCTL_OK)
        return st;
    return op == OP_BINGET || op == OP_LONG_BINGET ? tctl_pickle_get(m, index) : tctl_pickle_put(m, index);
}

static tctl_status text_op(tctl_pickle_machine *m, unsigned op)
{
    switch (op) {
    case OP_SHORT_BINUNICODE:
        return push_text(m, TCTL_PICKLE_TEXT, 1);
    case OP_BINUNICODE:
        return push_text(m, TCTL_PICKLE_TEXT, 4);
    case OP_BINUNICODE8:
        return push_text(m, TCTL_PICKLE_TEXT, 8);
    case OP_SHORT_BINSTRING: /* Python 2's str */
        return push_text(m, TCTL_PICKLE_TEXT, 1);
    case OP_BINSTRING:
        return push_text(m, TCTL_PICKLE_TEXT, 4);
    case OP_SHORT_BINBYTES:
        return push_text(m, TCTL_PICKLE_BYTES, 1);
    case OP_BINBYTES:
        return push_text(m, TCTL_PICKLE_BYTES, 4);
    case OP_BINBYTES8:
    case OP_BYTEARRAY8:
        return push_text(m, TCTL_PICKLE_BYTES, 8);
    default:
        return tctl_pickle_unknown(m, "opcode", op);
    }
}

static tctl_status value_op(tctl_pickle_machine *m, unsigned op)
{
    switch (op) {
    case OP_NONE:
        return push_new(m, TCTL_PICKLE_NONE);
    case OP_NEWTRUE:
        return push_integer(m, TCTL_PICKLE_BOOL, 1);
    case OP_NEWFALSE:
        return push_integer(m, TCTL_PICKLE_BOOL, 0);
    case OP_BININT:
        return push_number(m, 4);
    case OP_BININT1:
        return push_number(m, 1);
    case OP_BININT2:
        return push_number(m, 2);
    case OP_LONG1:
        return push_long(m, 1);
    case OP_LONG4:
        return push_long(m, 4);
    case OP_BINFLOAT:
        return push_float(m);
    case OP_GLOBAL:
        return global(m);
    case OP_STACK_GLOBAL:
        return stack_global(m);
    case OP_BINPERSID:
        return tctl_pickle_persistent(m);
    default:
        return text_op(m, op);
    }
}

static tctl_status container_op(tctl_pickle_machine *m, unsigned op)
{
    switch (op) {
    case OP_EMPTY_DICT:
        return push_new(m, TCTL_PICKLE_DICT);
    case OP_EMPTY_LIST:
        return push_new(m, TCTL_PICKLE_LIST);
    case OP_EMPTY_TUPLE:
        return push_new(m, TCTL_PICKLE_TUPLE);
    case OP_EMPTY_SET:
        return push_new(m, TCTL_PICKLE_SET);
    case OP_DICT:
        return tctl_pickle_collect_marked(m, TCTL_PICKLE_DICT);
    case OP_LIST:
        return tctl_pickle_collect_marked(m, TCTL_PICKLE_LIST);
    case OP_TUPLE:
        return tctl_pickle_collect_marked(m, TCTL_PICKLE_TUPLE);
    case OP_FROZENSET:
        return tctl_pickle_collect_marked(m, TCTL_PICKLE_SET);
    case OP_TUPLE1:
    case OP_TUPLE2:
    case OP_TUPLE3:
        return tctl_pickle_collect_top(m, op - OP_TUPLE1 + 1);
    case OP_APPEND:
    case OP_APPENDS:
    case OP_ADDITEMS:
    case OP_SETITEM:
    case OP_SETITEMS:
        return tctl_pickle_fill(m, op);
    default:
        return value_op(m, op);
    }
}

static tctl_status step(tctl_pickle_machine *m, unsigned op)
{
    switch (op) {
    case OP_PROTO:
        return skip(m, 1);
    case OP_FRAME:
        return skip(m, 8);
    case OP_MARK:
        return tctl_pickle_mark(m);
    case OP_POP:
        return tctl_pickle_pop(m) != NULL ? TCTL_OK : tctl_pickle_bad(m, "nothing to drop");
    case OP_POP_MARK:
        return tctl_pickle_drop_marked(m);
    case OP_DUP:
        return tctl_pickle_top(m) != NULL ? tctl_pickle_push(m, tctl_pickle_top(m))
                                          : tctl_pickle_bad(m, "nothing to double");
    case OP_BINGET:
    case OP_LONG_BINGET:
    case OP_BINPUT:
    case OP_LONG_BINPUT:
    case OP_MEMOIZE:
        return memo_op(m, op);
    case OP_REDUCE:
    case OP_NEWOBJ:
    case OP_NEWOBJ_EX:
        return tctl_pickle_call(m, op);
    case OP_BUILD:
        return tctl_pickle_build(m);
    default:
        return container_op(m, op);
    }
}

static tctl_status run(tctl_pickle_machine *m, tctl_pickled **ret)
{
    for (;;) {
        unsigned char op = 0;
        tctl_status st = read_bytes(m, &op, 1);
        if (st == TCTL_OK && op == OP_STOP) {
            *ret = tctl_pickle_pop(m);
            return *ret != NULL && m->stack.n == 0 && m->n_marks == 0
                       ? TCTL_OK
                       : tctl_pickle_bad(m, "it does not end in one value");
        }
        if (st == TCTL_OK)
            st = step(m, op);
        if (st != TCTL_OK)
            return st;
    }
}

tctl_status tctl_pickle_read(tctl_arena *arena, tctl_source *from, uint64_t *offset, tctl_pickled **ret,
                             tctl_pickled **ret_persistent, tctl_error *err)
{
    tctl_pickle_machine m = {.arena = arena, .from = from, .err = err, .begin = *offset, .at = *offset};
    m.window = calloc(1, WINDOW_BYTES);
    tctl_status st = m.window == NULL ? tctl_fail_memory(err, WINDOW_BYTES) : run(&m, ret);
    if (st == TCTL_OK)
        *offset = m.at;
    if (st == TCTL_OK && ret_persistent != NULL)
        *ret_persistent = m.persistent;
    free(m.window);
    free(m.stack.of);
    free(m.memo.of);
    free(m.marks);
    return st;
}
