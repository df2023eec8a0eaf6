/* SPDX-License-Identifier: Apache-2.0 */
/* The content of one file. See content.h; walk.c recognises it. */
#include "manifest/content/content.h"

#include <string.h>

#include "manifest/content/walk.h"

tctl_status tctl_content_of(tctl_arena *arena, const char *path, const tctl_content_rules *rules,
                            tctl_content *ret, tctl_error *err)
{
    tctl_walk w = {.rules = rules};
    tctl_source *source = NULL;
    tctl_looked looked = {0};
    tctl_content content = {0};
    tctl_error why = {0};
    tctl_status st = tctl_source_open(arena, path, &source, err);
    if (st != TCTL_OK)
        return st;
    st = tctl_walk_begin(&w, source->size, &why);
    if (st == TCTL_OK)
        st = tctl_walk_look(&w, source, &looked, &why);
    if (st == TCTL_OK) {
        content =
            (tctl_content){.format = looked.format, .sha256 = looked.sha256, .n_tensors = looked.n_tensors};
    } else if (st == TCTL_EUNSUPPORTED) {
        content.why_not = tctl_arena_copy(arena, why.message, strlen(why.message));
        st = content.why_not == NULL ? tctl_fail_memory(&why, strlen(why.message)) : TCTL_OK;
    }
    tctl_walk_end(&w);
    tctl_source_close(source);
    if (st == TCTL_OK)
        *ret = content;
    else if (err != NULL)
        *err = why;
    return st;
}
