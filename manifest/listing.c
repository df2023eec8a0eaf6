/* SPDX-License-Identifier: Apache-2.0 */
/* See listing.h. */
#include "manifest/listing.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

static const char first_line[] = "trainctl-tree 1"; /* its NUL belongs to it */

void tctl_listing_begin(tctl_buf *out)
{
    tctl_buf_add(out, first_line, sizeof first_line);
}

void tctl_listing_add(tctl_buf *out, const tctl_tree_entry *entry)
{
    char hex[TCTL_SHA256_HEX] = "-";
    if (entry->type != 'd')
        tctl_sha256_hex(&entry->digest, hex);
    tctl_buf_add_format(out, "%c %" PRIu64 " %s %s", entry->type, entry->size, hex, entry->path);
    tctl_buf_add_char(out, '\0');
}

/* A relative path whose components are all names. */
static bool is_plain_path(const char *path)
{
    for (const char *p = path;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n;
        if (*p == '\0')
            return true;
    }
}

/* True if the second path lies inside the first. */
static bool is_inside(const char *outer, const char *inner)
{
    size_t n = strlen(outer);
    return strncmp(outer, inner, n) == 0 && inner[n] == '/';
}

/* One line (without its NUL) into *ret; NULL, or what is wrong with it. */
static const char *parse_line(char *line, tctl_tree_entry *ret)
{
    if (strchr("fxld", line[0]) == NULL || line[0] == '\0' || line[1] != ' ')
        return "the type is none of f, x, l and d";
    char *size = line + 2;
    char *digest = strchr(size, ' ');
    if (!digest || !tctl_parse_uint(size, (size_t)(digest - size), &ret->size))
        return "the size is not a number";
    *digest++ = '\0';
    char *path = strchr(digest, ' ');
    if (!path)
        return "the path is missing";
    *path++ = '\0';
    ret->type = line[0];
    if (ret->type == 'd' ? strcmp(digest, "-") != 0 : !tctl_sha256_parse(digest, &ret->digest))
        return "the digest is malformed";
    if (!is_plain_path(path))
        return "the path is not a plain relative one";
    ret->path = path;
    return NULL;
}

tctl_status tctl_listing_parse(tctl_arena *arena, const char *name, const char *text, size_t size,
                               tctl_tree_entry **ret, size_t *ret_n, tctl_error *err)
{
    if (size < sizeof first_line || memcmp(text, first_line, sizeof first_line) != 0)
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is no listing: it does not begin with '%s'", name,
                         first_line);
    if (text[size - 1] != '\0')
        return tctl_fail(err, TCTL_EFORMAT, "'%s' is cut short: its last byte is not a NUL", name);
    text += sizeof first_line;
    size -= sizeof first_line;
    char *copy = tctl_arena_copy(arena, text, size); /* NULs inside are kept */
    size_t n = 0;
    for (size_t i = 0; i < size; i++)
        n += text[i] == '\0';
    tctl_tree_entry *entries = tctl_arena_take_array(arena, n + 1, sizeof *entries);
    if (!copy || !entries)
        return tctl_fail_memory(err, size);
    char *line = copy;
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(line);
        const char *wrong = parse_line(line, &entries[i]);
        if (!wrong && i > 0 && strcmp(entries[i - 1].path, entries[i].path) >= 0)
            wrong = "the paths are not in order";
        /* Whatever lies inside entry i-1 need not follow it at once ("a", "a-b", "a/c"), but restoring makes
         * folders itself and finds such a conflict there; the near ones are named here. */
        if (!wrong && i > 0 && is_inside(entries[i - 1].path, entries[i].path))
            wrong = "the path lies inside a file";
        if (wrong)
            return tctl_fail(err, TCTL_EFORMAT, "'%s' is damaged at entry %zu: %s", name, i + 1, wrong);
        line += length + 1;
    }
    *ret = entries;
    *ret_n = n;
    return TCTL_OK;
}
