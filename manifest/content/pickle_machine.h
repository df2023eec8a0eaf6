/* SPDX-License-Identifier: Apache-2.0 */
/* The machine of pickle.c: its opcodes, its state, its stack. Internal to the reader of pickles. */
#ifndef TCTL_MANIFEST_CONTENT_PICKLE_MACHINE_H
#define TCTL_MANIFEST_CONTENT_PICKLE_MACHINE_H

#include "manifest/content/pickle.h"

enum {
    OP_MARK = '(',
    OP_STOP = '.',
    OP_POP = '0',
    OP_POP_MARK = '1',
    OP_DUP = '2',
    OP_BINFLOAT = 'G',
    OP_BININT = 'J',
    OP_BININT1 = 'K',
    OP_BININT2 = 'M',
    OP_NONE = 'N',
    OP_BINPERSID = 'Q',
    OP_REDUCE = 'R',
    OP_BINSTRING = 'T',
    OP_SHORT_BINSTRING = 'U',
    OP_BINUNICODE = 'X',
    OP_APPEND = 'a',
    OP_BUILD = 'b',
    OP_GLOBAL = 'c',
    OP_DICT = 'd',
    OP_EMPTY_DICT = '}',
    OP_APPENDS = 'e',
    OP_BINGET = 'h',
    OP_LONG_BINGET = 'j',
    OP_LIST = 'l',
    OP_EMPTY_LIST = ']',
    OP_BINPUT = 'q',
    OP_LONG_BINPUT = 'r',
    OP_SETITEM = 's',
    OP_TUPLE = 't',
    OP_EMPTY_TUPLE = ')',
    OP_SETITEMS = 'u',
    OP_PROTO = 0x80,
    OP_NEWOBJ = 0x81,
    OP_TUPLE1 = 0x85,
    OP_TUPLE2 = 0x86,
    OP_TUPLE3 = 0x87,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_LONG1 = 0x8a,
    OP_LONG4 = 0x8b,
    OP_BINBYTES = 'B',
    OP_SHORT_BINBYTES = 'C',
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE8 = 0x8d,
    OP_BINBYTES8 = 0x8e,
    OP_EMPTY_SET = 0x8f,
    OP_ADDITEMS = 0x90,
    OP_FROZENSET = 0x91,
    OP_NEWOBJ_EX = 0x92,
    OP_STACK_GLOBAL = 0x93,
    OP_MEMOIZE = 0x94,
    OP_FRAME = 0x95,
    OP_BYTEARRAY8 = 0x96
};

typedef struct tctl_pickle_list {
    tctl_pickled **of;
    size_t n, room;
} tctl_pickle_list;

typedef struct tctl_pickle_machine {
    tctl_arena *arena;
    tctl_source *from;
    tctl_error *err;
    uint64_t begin, at; /* at: offset of the next byte */
    unsigned char *window;
    uint64_t window_at;
    size_t window_n;
    tctl_pickle_list stack, memo;
    size_t *marks;
    size_t n_marks, room_marks;
    size_t n_memo;            /* for MEMOIZE: entries set so far */
    tctl_pickled *persistent; /* the last one made */
    size_t n_values, n_items; /* made; put into containers */
} tctl_pickle_machine;

/* TCTL_EFORMAT and TCTL_EUNSUPPORTED, with the places of the pickle and of the opcode. */
tctl_status tctl_pickle_bad(const tctl_pickle_machine *, const char *why);
tctl_status tctl_pickle_unknown(const tctl_pickle_machine *, const char *what, unsigned code);

tctl_status tctl_pickle_make(tctl_pickle_machine *, int kind, tctl_pickled **ret);
tctl_status tctl_pickle_push(tctl_pickle_machine *, tctl_pickled *);
/* Above the last mark; NULL if there is nothing. */
tctl_pickled *tctl_pickle_pop(tctl_pickle_machine *);
tctl_pickled *tctl_pickle_top(const tctl_pickle_machine *);
tctl_status tctl_pickle_mark(tctl_pickle_machine *);
tctl_status tctl_pickle_drop_marked(tctl_pickle_machine *);
tctl_status tctl_pickle_put(tctl_pickle_machine *, uint64_t index);
tctl_status tctl_pickle_get(tctl_pickle_machine *, uint64_t index);

/* Makes a container of what lies above the mark, or of the n values on top. */
tctl_status tctl_pickle_collect_marked(tctl_pickle_machine *, int kind);
tctl_status tctl_pickle_collect_top(tctl_pickle_machine *, size_t n);
/* APPEND, SETITEM, …: puts the values above the mark, or on top, into the container below them. */
tctl_status tctl_pickle_fill(tctl_pickle_machine *, unsigned op);
/* REDUCE, NEWOBJ, NEWOBJ_EX; BUILD; BINPERSID. */
tctl_status tctl_pickle_call(tctl_pickle_machine *, unsigned op);
tctl_status tctl_pickle_build(tctl_pickle_machine *);
tctl_status tctl_pickle_persistent(tctl_pickle_machine *);

#endif
