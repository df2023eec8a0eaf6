/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing byte string.
 *
 * Invariants: `data` is NUL-terminated whenever it is not NULL; `size` never counts that NUL. Appending never
 * returns an error: once memory is out, or the limit is passed, the buffer is `broken`, further appends do
 * nothing, and the caller asks once, at the end.
 */
#ifndef TCTL_BASE_BUF_H
#define TCTL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "trainctl/plugin.h"

typedef struct tctl_buf {
    char *data; /* NULL while empty and never grown */
    size_t size, room, limit;
    bool broken;
} tctl_buf;

#define TCTL_BUF_LIMIT ((size_t)1 << 30)
#define TCTL_BUF_INIT                                                                                        \
    {                                                                                                        \
        NULL, 0, 0, TCTL_BUF_LIMIT, false                                                                    \
    }

void tctl_buf_release(tctl_buf *);
void tctl_buf_clear(tctl_buf *); /* empty again, memory kept */
void tctl_buf_add(tctl_buf *, const void *data, size_t size);
void tctl_buf_add_text(tctl_buf *, const char *text);
void tctl_buf_add_char(tctl_buf *, char c);
void tctl_buf_add_format(tctl_buf *, const char *fmt, ...) TCTL_PRINTF(2, 3);
/* The text, "" for an empty buffer; NULL if broken. Owned by the buffer. */
const char *tctl_buf_text(const tctl_buf *);
/* Hands the memory over (free it with free); NULL if broken. The buffer is empty afterwards. */
char *tctl_buf_detach(tctl_buf *);

#endif
