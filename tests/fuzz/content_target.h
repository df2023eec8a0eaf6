/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as one format of manifest/content: looked into twice with one digest, and compared with themselves. What is
 * refused must say why.
 */
#ifndef TCTL_TESTS_FUZZ_CONTENT_TARGET_H
#define TCTL_TESTS_FUZZ_CONTENT_TARGET_H

#include <stdlib.h>
#include <string.h>

#include "manifest/content/walk.h"

/* `keep` lists for a comparison; the walk is small, so that a bomb ends early. */
static inline tctl_status list_once(tctl_lister *list, const uint8_t *data, size_t size, bool keep,
                                    const tctl_content_rules *rules, tctl_sha256 *ret)
{
    tctl_walk w = {.keep = keep, .rules = rules};
    tctl_error err = {0};
    tctl_source *s = NULL;
    const char *format = NULL;
    tctl_listing l = {.walk = &w};
    TCTL_BUG_IF(tctl_walk_begin(&w, size, &err) != TCTL_OK);
    w.bytes_left = (uint64_t)1 << 24;
    w.lines_left = 1 << 12;
    w.depth = 1;
    TCTL_BUG_IF(tctl_hasher_create(&l.hasher, &err) != TCTL_OK);
    TCTL_BUG_IF(tctl_source_of(w.arena, "fuzz", data, size, &s, &err) != TCTL_OK);
    tctl_status st = list(&l, s, &format, &err);
    TCTL_BUG_IF(st != TCTL_OK && (err.code != st || err.message[0] == '\0'));
    TCTL_BUG_IF(st != TCTL_OK && st != TCTL_EFORMAT && st != TCTL_EUNSUPPORTED && st != TCTL_ENOMEM);
    TCTL_BUG_IF(st == TCTL_OK && format == NULL);
    *ret = tctl_hasher_finish(l.hasher);
    /* Every kept tensor can be read again. */
    for (size_t i = 0; st == TCTL_OK && i < w.n_leaves; i++) {
        const tctl_leaf *leaf = &w.leaves[i];
        tctl_array_reader r = {0};
        size_t n = 0;
        if (leaf->kind == TCTL_LEAF_VALUE || leaf->tensor.element_bytes > TCTL_SCRATCH_BYTES)
            continue;
        if (tctl_array_begin(&leaf->tensor, &r, &err) == TCTL_OK)
            (void)tctl_array_next(&r, w.scratch, TCTL_SCRATCH_BYTES, &n, &err);
        tctl_array_end(&r);
    }
    tctl_hasher_destroy(l.hasher);
    tctl_walk_end(&w);
    return st;
}

static inline int try_lister(tctl_lister *list, const uint8_t *data, size_t size,
                             const tctl_content_rules *rules)
{
    tctl_sha256 a = {{0}}, b = {{0}};
    tctl_status x = list_once(list, data, size, false, rules, &a);
    tctl_status y = list_once(list, data, size, true, rules, &b);
    TCTL_BUG_IF((x == TCTL_OK) != (y == TCTL_OK));
    TCTL_BUG_IF(x == TCTL_OK && !tctl_sha256_equal(&a, &b));
    return 0;
}

#endif
