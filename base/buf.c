/* SPDX-License-Identifier: Apache-2.0 */
/* See buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

void tctl_buf_release(tctl_buf *buf)
{
    free(buf->data);
    *buf = (tctl_buf)TCTL_BUF_INIT;
}

void tctl_buf_clear(tctl_buf *buf)
{
    buf->size = 0;
    buf->broken = false;
    if (buf->data)
        buf->data[0] = '\0';
}

/* Room for `more` bytes and the NUL, or false and a broken buffer. */
static bool reserve(tctl_buf *buf, size_t more)
{
    size_t size, need;
    if (buf->broken)
        return false;
    if (!tctl_add_size(buf->size, more, &size) || size > buf->limit || !tctl_add_size(size, 1, &need)) {
        buf->broken = true;
        return false;
    }
    if (need <= buf->room)
        return true;
    size_t room = buf->room ? buf->room : 64;
    while (room < need)
        room = room > SIZE_MAX / 2 ? need : room * 2;
    char *data = realloc(buf->data, room);
    if (!data) {
        buf->broken = true;
        return false;
    }
    buf->data = data;
    buf->room = room;
    return true;
}

void tctl_buf_add(tctl_buf *buf, const void *data, size_t size)
{
    if (!reserve(buf, size))
        return;
    if (size)
        memcpy(buf->data + buf->size, data, size);
    buf->size += size;
    buf->data[buf->size] = '\0';
}

void tctl_buf_add_text(tctl_buf *buf, const char *text)
{
    tctl_buf_add(buf, text, strlen(text));
}

void tctl_buf_add_char(tctl_buf *buf, char c)
{
    tctl_buf_add(buf, &c, 1);
}

void tctl_buf_add_format(tctl_buf *buf, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        buf->broken = true;
    else if (reserve(buf, (size_t)n)) {
        vsnprintf(buf->data + buf->size, (size_t)n + 1, fmt, again);
        buf->size += (size_t)n;
    }
    va_end(again);
    va_end(ap);
}

const char *tctl_buf_text(const tctl_buf *buf)
{
    if (buf->broken)
        return NULL;
    return buf->data ? buf->data : "";
}

char *tctl_buf_detach(tctl_buf *buf)
{
    if (!reserve(buf, 0))
        return NULL;
    char *data = buf->data;
    data[buf->size] = '\0';
    *buf = (tctl_buf)TCTL_BUF_INIT;
    return data;
}
