/* SPDX-License-Identifier: Apache-2.0 */
/* See path_json.h. */
#include "manifest/path_json.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at p (no overlong forms, no surrogates, nothing above U+10FFFF), 0 if there
 * is none. The NUL at the end of the text stops every sequence. */
static size_t utf8_length(const uint8_t *p)
{
    if (p[0] < 0x80)
        return 1;
    uint8_t low = 0x80, high = 0xbf; /* of the second byte */
    size_t n;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        low = p[0] == 0xe0 ? 0xa0 : 0x80;
        high = p[0] == 0xed ? 0x9f : 0xbf;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        low = p[0] == 0xf0 ? 0x90 : 0x80;
        high = p[0] == 0xf4 ? 0x8f : 0xbf;
    } else {
        return 0;
    }
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < n; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    }
    return n;
}

void tctl_path_escape(const char *path, tctl_buf *ret)
{
    const uint8_t *p = (const uint8_t *)path;
    while (*p) {
        size_t n = utf8_length(p);
        if (n == 0) {
            tctl_buf_add_format(ret, "\\x%02x", *p);
            n = 1;
        } else if (*p == '\\') {
            tctl_buf_add(ret, "\\\\", 2);
        } else {
            tctl_buf_add(ret, p, n);
        }
        p += n;
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
