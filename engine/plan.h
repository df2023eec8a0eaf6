/* SPDX-License-Identifier: Apache-2.0 */
/* Where in one block of memory things lie that are not all needed at the same time. */
#ifndef TCTL_ENGINE_PLAN_H
#define TCTL_ENGINE_PLAN_H

#include <stddef.h>
#include <stdint.h>

/* Something that is needed from moment `from` to moment `to`, both included. */
typedef struct tctl_span {
    size_t bytes;
    int32_t from, to;
    size_t offset; /* the answer: a multiple of 64 */
    int32_t next;  /* for the planner */
} tctl_span;

/* Places n spans so that no two that are needed at a moment overlap; returns the bytes of the block. Largest first,
 * each at the lowest offset that is free (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
 * Inference", 2020, section 5: greedy by size). The same for the same input. */
size_t tctl_plan_spans(tctl_span *spans, int32_t n);

#endif
