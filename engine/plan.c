/* SPDX-License-Identifier: Apache-2.0 */
/* See plan.h. Placed spans are a list in order of offset; quadratic, for some hundreds of spans, once. */
#include "engine/plan.h"

#include <stdbool.h>

enum { ALIGNMENT = 64, UNPLACED = -2, LAST = -1 };

static bool meet(const tctl_span *a, const tctl_span *b)
{
    return a->from <= b->to && b->from <= a->to;
}

/* The largest span that has no place; the first of equals. */
static int32_t largest(const tctl_span *spans, int32_t n)
{
    int32_t best = LAST;
    for (int32_t i = 0; i < n; i++) {
        if (spans[i].next == UNPLACED && (best == LAST || spans[i].bytes > spans[best].bytes))
            best = i;
    }
    return best;
}

/* The lowest gap between the placed spans that it meets. */
static size_t find_gap(const tctl_span *spans, int32_t head, const tctl_span *span)
{
    size_t end = 0;
    for (int32_t i = head; i != LAST; i = spans[i].next) {
        if (!meet(&spans[i], span))
            continue;
        if (spans[i].offset >= end + span->bytes)
            break;
        if (spans[i].offset + spans[i].bytes > end)
            end = spans[i].offset + spans[i].bytes;
    }
    return end;
}

static void place(tctl_span *spans, int32_t *head, int32_t i)
{
    spans[i].offset = find_gap(spans, *head, &spans[i]);
    int32_t *link = head;
    while (*link != LAST && spans[*link].offset <= spans[i].offset)
        link = &spans[*link].next;
    spans[i].next = *link;
    *link = i;
}

size_t tctl_plan_spans(tctl_span *spans, int32_t n)
{
    int32_t head = LAST;
    size_t total = 0;
    for (int32_t i = 0; i < n; i++) {
        spans[i].bytes = (spans[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        spans[i].next = UNPLACED;
    }
    for (int32_t i; (i = largest(spans, n)) != LAST;) {
        place(spans, &head, i);
        if (spans[i].offset + spans[i].bytes > total)
            total = spans[i].offset + spans[i].bytes;
    }
    return total;
}
