/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small allocations, freed at once. Not thread-safe. */
#ifndef TCTL_BASE_ARENA_H
#define TCTL_BASE_ARENA_H

#include <stddef.h>

#include "trainctl/plugin.h"

typedef struct tctl_arena tctl_arena;

/* NULL if memory is out. */
tctl_arena *tctl_arena_create(void);
/* Frees the arena and all that was taken from it; NULL is fine. */
void tctl_arena_destroy(tctl_arena *);
/* `size_bytes` zeroed bytes aligned for any type, living as long as the arena; NULL if memory is out. */
void *tctl_arena_take(tctl_arena *, size_t size_bytes);
/* Zeroed room for n elements; NULL also on overflow. */
void *tctl_arena_take_array(tctl_arena *, size_t n, size_t element_bytes);
/* A NUL-terminated copy. */
char *tctl_arena_copy(tctl_arena *, const char *text, size_t length);
char *tctl_arena_format(tctl_arena *, const char *fmt, ...) TCTL_PRINTF(2, 3);

#endif
