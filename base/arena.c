/* SPDX-License-Identifier: Apache-2.0 */
/* See arena.h. Blocks are chained; an allocation larger than a block gets one of its own. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

enum { BLOCK_BYTES = 64 * 1024 };

typedef struct block {
    struct block *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
} block;

struct tctl_arena {
    block *head;
};

tctl_arena *tctl_arena_create(void)
{
    return calloc(1, sizeof(tctl_arena));
}

void tctl_arena_destroy(tctl_arena *arena)
{
    if (!arena)
        return;
    for (block *b = arena->head; b;) {
        block *next = b->next;
        free(b);
        b = next;
    }
    free(arena);
}

static block *add_block(tctl_arena *arena, size_t at_least)
{
    size_t size = at_least > BLOCK_BYTES ? at_least : BLOCK_BYTES, total;
    if (!tctl_add_size(size, sizeof(block), &total))
        return NULL;
    block *b = calloc(1, total);
    if (!b)
        return NULL;
    b->size = size;
    /* One that is filled at once goes behind the head, so that what is left of the head's room is not lost. */
    if (arena->head && at_least > BLOCK_BYTES) {
        b->next = arena->head->next;
        arena->head->next = b;
    } else {
        b->next = arena->head;
        arena->head = b;
    }
    return b;
}

void *tctl_arena_take(tctl_arena *arena, size_t size_bytes)
{
    size_t need;
    if (!tctl_add_size(size_bytes, alignof(max_align_t) - 1, &need))
        return NULL;
    need -= need % alignof(max_align_t);
    block *b = arena->head;
    if (!b || b->size - b->used < need)
        b = add_block(arena, need);
    if (!b)
        return NULL;
    void *p = b->bytes + b->used;
    b->used += need;
    return p;
}

void *tctl_arena_take_array(tctl_arena *arena, size_t n, size_t element_bytes)
{
    size_t size;
    return tctl_mul_size(n, element_bytes, &size) ? tctl_arena_take(arena, size) : NULL;
}

char *tctl_arena_copy(tctl_arena *arena, const char *text, size_t length)
{
    size_t size;
    char *copy = tctl_add_size(length, 1, &size) ? tctl_arena_take(arena, size) : NULL;
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

char *tctl_arena_format(tctl_arena *arena, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : tctl_arena_take(arena, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(ap);
    return text;
}
