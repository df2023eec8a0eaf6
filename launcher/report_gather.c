/* SPDX-License-Identifier: Apache-2.0 */
/* See report_gather.h. Nothing of a line is believed: every text, number and count has a limit. */
#include "launcher/report_gather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "manifest/path_json.h"

#define LINE_LIMIT  ((size_t)4 << 20)
#define TEXT_LIMIT  8192u
#define COUNT_LIMIT ((json_int_t)1 << 53)
enum { MOST_PROGRAMS = 4096, MOST_EVENTS = 4096, MOST_OBJECTS = 16384, IDENTITY = 5 };

/* ---- texts ---------------------------------------------------------------------------------------------- */

/* The interposer writes bytes as the code points 1 to 255. From malloc; NULL if that is not what it is. */
static char *bytes_of(const json_t *value)
{
    const char *text = json_string_value(value);
    size_t size = json_string_length(value), n = 0;
    char *bytes = text == NULL || size > 2 * TEXT_LIMIT ? NULL : malloc(size + 1);
    if (bytes == NULL)
        return NULL;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0xc2 && c <= 0xc3 && i + 1 < size)
            bytes[n++] = (char)(unsigned char)((c & 3) << 6 | ((unsigned char)text[++i] & 0x3f));
        else if (c != 0 && c < 0x80)
            bytes[n++] = (char)c;
        else
            goto bad;
    }
    bytes[n] = '\0';
    return bytes;
bad:
    free(bytes);
    return NULL;
}

/* As paths are written in manifests; NULL if the member is missing or no text of the interposer's. */
static json_t *text_member(const json_t *object, const char *key)
{
    char *bytes = bytes_of(json_object_get(object, key));
    json_t *text = bytes == NULL ? NULL : tctl_path_to_json(bytes);
    free(bytes);
    return text;
}

/* The entry of `map` under the key that `parts` make; *is_new if it was not there: the caller fills it. NULL if the
 * map is full (g->cut) or memory is out. */
static json_t *entry(tctl_gathered *g, json_t *map, size_t most, const char *const *parts, size_t n_parts,
                     bool *is_new)
{
    tctl_buf key = TCTL_BUF_INIT;
    for (size_t i = 0; i < n_parts; i++) {
        tctl_buf_add_text(&key, parts[i]);
        tctl_buf_add_char(&key, '\n');
    }
    const char *text = tctl_buf_text(&key);
    json_t *found = text == NULL ? NULL : json_object_get(map, text);
    *is_new = found == NULL;
    if (found == NULL && text != NULL) {
        if (json_object_size(map) >= most)
            g->cut = true;
        else if (json_object_set_new(map, text, json_object()) == 0)
            found = json_object_get(map, text);
    }
    tctl_buf_release(&key);
    return found;
}

void tctl_gather_add(json_t *object, const char *key, json_int_t more)
{
    json_int_t sum = json_integer_value(json_object_get(object, key));
    sum = sum > COUNT_LIMIT - more ? COUNT_LIMIT : sum + more;
    json_object_set_new(object, key, json_integer(sum));
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

static json_t *program_entry(tctl_gathered *g, json_t *path)
{
    bool is_new;
    const char *const parts[] = {json_string_value(path)};
    json_t *program = entry(g, g->programs, MOST_PROGRAMS, parts, 1, &is_new);
    if (program != NULL && is_new) {
        json_object_set(program, "path", path);
        json_object_set_new(program, "processes", json_integer(0));
        json_object_set_new(program, "counts", json_object());
    }
    return program;
}

static bool take_begin(tctl_gathered *g, const json_t *line)
{
    json_t *path = text_member(line, "program"), *id = text_member(line, "begin");
    bool good = path != NULL && id != NULL;
    if (good) {
        json_t *program = program_entry(g, path);
        bool is_new;
        const char *const parts[] = {json_string_value(id)};
        json_t *open = entry(g, g->open, (size_t)16 * MOST_OBJECTS, parts, 1, &is_new);
        g->processes++;
        if (program != NULL)
            tctl_gather_add(program, "processes", 1);
        if (open != NULL) {
            json_object_set(open, "program", path);
            tctl_gather_add(open, "left", 1);
        }
    }
    json_decref(path);
    json_decref(id);
    return good;
}

static bool take_event(tctl_gathered *g, const json_t *line)
{
    static const char *const keys[] = {"event", "program", "subject", "detail"};
    static const char *const names[] = {"what", "program", "subject", "detail"};
    json_t *texts[4] = {NULL};
    const char *parts[4];
    bool good = true, is_new = false;
    for (size_t i = 0; i < 4; i++) {
        texts[i] = text_member(line, keys[i]);
        parts[i] = json_string_value(texts[i]);
        good = good && texts[i] != NULL;
    }
    json_t *event = good ? entry(g, g->events, MOST_EVENTS, parts, 4, &is_new) : NULL;
    for (size_t i = 0; event != NULL && is_new && i < 4; i++)
        json_object_set(event, names[i], texts[i]);
    if (event != NULL)
        tctl_gather_add(event, "count", 1);
    for (size_t i = 0; i < 4; i++)
        json_decref(texts[i]);
    return good;
}

static bool is_build_id(const char *text)
{
    size_t n = text == NULL ? 1 : strlen(text);
    return n <= 128 && n % 2 == 0 && strspn(text, "0123456789abcdef") == n;
}

/* [path, build-id, device, inode, size, seconds, nanoseconds] */
static bool take_object(tctl_gathered *g, const json_t *item)
{
    char numbers[IDENTITY][24];
    const char *parts[2 + IDENTITY];
    json_t *identity = json_array();
    char *bytes = json_array_size(item) == 2 + IDENTITY ? bytes_of(json_array_get(item, 0)) : NULL;
    json_t *path = bytes == NULL ? NULL : tctl_path_to_json(bytes);
    bool good = path != NULL && identity != NULL && is_build_id(json_string_value(json_array_get(item, 1))),
         is_new = false;
    parts[0] = json_string_value(path);
    parts[1] = json_string_value(json_array_get(item, 1));
    for (size_t i = 0; good && i < IDENTITY; i++) {
        json_t *number = json_array_get(item, 2 + i);
        good = json_is_integer(number);
        snprintf(numbers[i], sizeof numbers[i], "%" JSON_INTEGER_FORMAT, json_integer_value(number));
        parts[2 + i] = numbers[i];
        json_array_append(identity, number);
    }
    json_t *object = good ? entry(g, g->objects, MOST_OBJECTS, parts, 2 + IDENTITY, &is_new) : NULL;
    if (object != NULL && is_new) {
        json_object_set(object, "path", path);
        json_object_set(object, "build_id", json_array_get(item, 1));
        json_object_set(object, "identity", identity);
    }
    free(bytes);
    json_decref(path);
    json_decref(identity);
    return good;
}

static bool are_counts(const json_t *counts)
{
    const char *key;
    json_t *value;
    if (!json_is_object(counts) || json_object_size(counts) > 64)
        return false;
    json_object_foreach((json_t *)(uintptr_t)counts, key, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 0 ||
            json_integer_value(value) > COUNT_LIMIT || strlen(key) > 64)
            return false;
    }
    return true;
}

static bool take_end(tctl_gathered *g, const json_t *line)
{
    const json_t *counts = json_object_get(line, "counts"), *objects = json_object_get(line, "objects");
    json_t *path = text_member(line, "program"), *id = text_member(line, "end"), *value;
    bool good = path != NULL && id != NULL && are_counts(counts) && json_is_array(objects), is_new;
    if (good) {
        json_t *program = program_entry(g, path);
        json_t *sums = json_object_get(program, "counts");
        const char *key;
        json_object_foreach((json_t *)(uintptr_t)counts, key, value)
        {
            if (sums != NULL && (json_object_size(sums) < 64 || json_object_get(sums, key) != NULL))
                tctl_gather_add(sums, key, json_integer_value(value));
        }
        const char *const parts[] = {json_string_value(id)};
        json_t *open = entry(g, g->open, (size_t)16 * MOST_OBJECTS, parts, 1, &is_new);
        if (open != NULL)
            tctl_gather_add(open, "left", -1);
    }
    for (size_t i = 0; good && i < json_array_size(objects); i++)
        good = take_object(g, json_array_get(objects, i));
    json_decref(path);
    json_decref(id);
    return good;
}

void tctl_gather_line(tctl_gathered *g, const char *text, size_t size)
{
    json_t *line = NULL;
    bool good = size <= LINE_LIMIT && tctl_json_parse("report", text, size, &line, NULL) == TCTL_OK;
    if (good && json_object_get(line, "begin") != NULL)
        good = take_begin(g, line);
    else if (good && json_object_get(line, "event") != NULL)
        good = take_event(g, line);
    else if (good && json_object_get(line, "end") != NULL)
        good = take_end(g, line);
    else
        good = false;
    json_decref(line);
    g->malformed += good ? 0 : 1;
}

/* ---- maps ------------------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *tctl_gather_sorted(json_t *map)
{
    size_t n = 0, room = json_object_size(map);
    const char **keys = calloc(room + 1, sizeof *keys), *key;
    json_t *list = keys == NULL ? NULL : json_array(), *value;
    json_object_foreach(map, key, value)
    {
        if (keys != NULL && n < room)
            keys[n++] = key;
    }
    if (n > 1)
        qsort(keys, n, sizeof *keys, by_text);
    for (size_t i = 0; list != NULL && i < n; i++)
        json_array_append(list, json_object_get(map, keys[i]));
    free(keys);
    return list;
}
