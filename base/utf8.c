/* SPDX-License-Identifier: Apache-2.0 */
/* See utf8.h. */
#include "base/utf8.h"

size_t tctl_utf8_decode(const char *text, size_t size, uint32_t *ret)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (size == 0)
        return 0;
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80) {
        *ret = first;
        return 1;
    }
    size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || n > size)
        return 0;
    uint32_t code = first & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c & 0xC0) != 0x80)
            return 0;
        code = (code << 6) | (c & 0x3Fu);
    }
    if (code < smallest[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return 0;
    *ret = code;
    return n;
}
