/* SPDX-License-Identifier: Apache-2.0 */
/* See path_json.h. */
#include "manifest/path_json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void tctl_path_escape(const char *path, tctl_buf *ret)
{
    for (size_t left = strlen(path); left > 0;) {
        uint32_t code;
        size_t n = tctl_utf8_decode(path, left, &code);
        if (n == 0) {
            tctl_buf_add_format(ret, "\\x%02x", (unsigned char)*path);
            n = 1;
        } else if (*path == '\\') {
            tctl_buf_add(ret, "\\\\", 2);
        } else {
            tctl_buf_add(ret, path, n);
        }
        path += n;
        left -= n;
    }
}

json_t *tctl_path_to_json(const char *path)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_path_escape(path, &text);
    const char *escaped = tctl_buf_text(&text);
    json_t *value = escaped ? json_string(escaped) : NULL;
    tctl_buf_release(&text);
    return value;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One escape at p ('\\' stands there): its byte in *ret, and its length; 0 if it is malformed. */
static size_t unescape(const char *p, char *ret)
{
    if (p[1] == '\\') {
        *ret = '\\';
        return 2;
    }
    if (p[1] != 'x')
        return 0;
    int high = hex_digit(p[2]);
    int low = high < 0 ? -1 : hex_digit(p[3]);
    if (low < 0 || high < 8) /* only bytes above 0x7f are ever written so */
        return 0;
    *ret = (char)(unsigned char)(high * 16 + low);
    return 4;
}

tctl_status tctl_path_from_json(const json_t *value, char **ret, tctl_error *err)
{
    const char *text = json_string_value(value);
    if (!text)
        return tctl_fail(err, TCTL_EFORMAT, "not a path: a string was expected");
    if (strlen(text) != json_string_length(value))
        return tctl_fail(err, TCTL_EFORMAT, "not a path: '%s' holds a NUL", text);
    size_t room = strlen(text) + 1;
    char *path = malloc(room);
    if (!path)
        return tctl_fail_memory(err, room);
    char *out = path;
    for (const char *p = text; *p;) {
        size_t n = 1;
        if (*p == '\\')
            n = unescape(p, out);
        else
            *out = *p;
        if (n == 0) {
            free(path);
            return tctl_fail(err, TCTL_EFORMAT, "not a path: '%s' has a malformed escape at byte %zu", text,
                             (size_t)(p - text));
        }
        out++;
        p += n;
    }
    *out = '\0';
    *ret = path;
    return TCTL_OK;
}

json_t *tctl_text_to_json(const char *text)
{
    json_t *value = text == NULL ? json_null() : json_string(text);
    return value != NULL ? value : tctl_path_to_json(text);
}
