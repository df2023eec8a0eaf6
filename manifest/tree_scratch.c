/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread that works on a tree has for itself: memory for names, a buffer to read into, a hasher. */
#include <stdlib.h>
#include <string.h>

#include "manifest/tree_internal.h"

void tctl_tree_scratch_destroy(tctl_tree_scratch *scratch, uint32_t n_threads)
{
    for (uint32_t i = 0; scratch && i < n_threads; i++) {
        tctl_arena_destroy(scratch[i].arena);
        tctl_hasher_destroy(scratch[i].hasher);
        free(scratch[i].buffer);
        free(scratch[i].path);
        free(scratch[i].nodes);
    }
    free(scratch);
}

static tctl_status init(tctl_tree_scratch *s, tctl_error *err)
{
    s->arena = tctl_arena_create();
    s->buffer = malloc(TCTL_TREE_BUFFER);
    s->path = malloc(TCTL_TREE_PATH);
    if (!s->arena || !s->buffer || !s->path)
        return tctl_fail_memory(err, TCTL_TREE_BUFFER + TCTL_TREE_PATH);
    return tctl_hasher_create(&s->hasher, err);
}

tctl_status tctl_tree_scratch_create(uint32_t n_threads, tctl_tree_scratch **ret, tctl_error *err)
{
    tctl_tree_scratch *scratch = calloc(n_threads, sizeof *scratch);
    tctl_status status = scratch ? TCTL_OK : tctl_fail_memory(err, n_threads * sizeof *scratch);
    for (uint32_t i = 0; i < n_threads && status == TCTL_OK; i++)
        status = init(&scratch[i], err);
    if (status == TCTL_OK)
        *ret = scratch;
    else
        tctl_tree_scratch_destroy(scratch, n_threads);
    return status;
}

bool tctl_tree_scratch_add(tctl_tree_scratch *s, size_t n, const char *name)
{
    if (n == s->room) {
        size_t room = s->room ? s->room * 2 : 1024;
        tctl_tree_node *nodes = realloc(s->nodes, room * sizeof *nodes);
        if (!nodes)
            return false;
        s->nodes = nodes;
        s->room = room;
    }
    size_t length = strlen(name);
    char *copy = tctl_arena_copy(s->arena, name, length);
    s->nodes[n] = (tctl_tree_node){.name = copy, .name_length = (uint32_t)length};
    return copy != NULL;
}
