/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a pickle without Python, and without doing what it says.
 *
 * A pickle is a program for a stack machine. This machine builds values and nothing else: where pickle would import and
 * call something, it notes the name and the arguments. So nothing that a file can say has an effect. It knows the
 * opcodes that pickle's C implementation writes for protocols 2 to 5 (pickletools documents them); others, and the
 * extension registry, are TCTL_EUNSUPPORTED. What no pickler writes, such as an empty stack where a value should be, is
 * TCTL_EFORMAT with the offset.
 *
 * Values can be shared and, in hostile files, contain themselves: who walks them limits depth and number.
 */
#ifndef TCTL_MANIFEST_CONTENT_PICKLE_H
#define TCTL_MANIFEST_CONTENT_PICKLE_H

#include "manifest/content/source.h"

enum {
    TCTL_PICKLE_NONE,
    TCTL_PICKLE_BOOL,      /* integer */
    TCTL_PICKLE_INT,       /* integer */
    TCTL_PICKLE_LONG,      /* text: two's complement, little-endian, more than 8 bytes */
    TCTL_PICKLE_FLOAT,     /* real */
    TCTL_PICKLE_TEXT,      /* text: UTF-8, not checked */
    TCTL_PICKLE_BYTES,     /* text */
    TCTL_PICKLE_LIST,      /* items */
    TCTL_PICKLE_TUPLE,     /* items */
    TCTL_PICKLE_SET,       /* items */
    TCTL_PICKLE_DICT,      /* items: key, value, key, value */
    TCTL_PICKLE_GLOBAL,    /* text: "module name", with one blank; STACK_GLOBAL the same */
    TCTL_PICKLE_OBJECT,    /* callable(*args), then state, items appended, pairs set */
    TCTL_PICKLE_PERSISTENT /* args: the id */
};

typedef struct tctl_pickled tctl_pickled;
struct tctl_pickled {
    int kind;
    union {
        int64_t integer;
        double real;
        struct {
            const char *bytes; /* NUL-terminated as well */
            size_t size;
        } text;
        struct {
            tctl_pickled **of;
            size_t n, room;
        } items; /* LIST, TUPLE, SET, DICT; OBJECT: what was appended */
    } u;
    tctl_pickled *callable, *args, *state; /* OBJECT, PERSISTENT; state also DICT; NULL: none */
    tctl_pickled **pairs;                  /* OBJECT: key, value, … that were set */
    size_t n_pairs, room_pairs;
    tctl_pickled *next; /* PERSISTENT: the one that was read before it */
};

/* At most so many values per pickle, and so many bytes of opcodes. */
enum { TCTL_PICKLE_VALUES = 2 << 20 };
#define TCTL_PICKLE_BYTES_LIMIT ((uint64_t)256 << 20)

/* Reads the pickle that begins at *offset; *offset is then behind its STOP. The values live in the arena.
 * *ret_persistent: all PERSISTENT values, by `next`, the last one first (NULL: not wanted). */
tctl_status tctl_pickle_read(tctl_arena *, tctl_source *, uint64_t *offset, tctl_pickled **ret,
                             tctl_pickled **ret_persistent, tctl_error *err);

#endif
