/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the interposer's report. See report_interposer.h.
 *
 * Everything is gathered in JSON objects by key, so that what many processes say alike is there once, and then put
 * into arrays sorted by that key: the order in which processes happened to write does not show.
 */
#include "launcher/report_interposer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "manifest/environment.h"
#include "manifest/path_json.h"

#define FILE_LIMIT  ((size_t)40 << 20) /* the interposer itself ends at 32 MiB */
#define FULL_AT     ((size_t)16 << 20) /* and most processes at this */
#define LINE_LIMIT  ((size_t)4 << 20)
#define TEXT_LIMIT  8192u
#define COUNT_LIMIT ((json_int_t)1 << 53)
enum { MOST_PROGRAMS = 4096, MOST_EVENTS = 4096, MOST_OBJECTS = 16384, IDENTITY = 5 };

typedef struct gathered {
    json_t *programs, *events, *objects; /* by key */
    json_t *open;                        /* id: {"program","left"}: begins without an end */
    json_int_t processes, malformed;
    bool cut; /* there was more than is kept */
} gathered;

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
static json_t *entry(gathered *g, json_t *map, size_t most, const char *const *parts, size_t n_parts,
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

static void add_to(json_t *object, const char *key, json_int_t more)
{
    json_int_t sum = json_integer_value(json_object_get(object, key));
    sum = sum > COUNT_LIMIT - more ? COUNT_LIMIT : sum + more;
    json_object_set_new(object, key, json_integer(sum));
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

static json_t *program_entry(gathered *g, json_t *path)
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

static bool take_begin(gathered *g, const json_t *line)
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
            add_to(program, "processes", 1);
        if (open != NULL) {
            json_object_set(open, "program", path);
            add_to(open, "left", 1);
        }
    }
    json_decref(path);
    json_decref(id);
    return good;
}

static bool take_event(gathered *g, const json_t *line)
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
        add_to(event, "count", 1);
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
static bool take_object(gathered *g, const json_t *item)
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

static bool take_end(gathered *g, const json_t *line)
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
                add_to(sums, key, json_integer_value(value));
        }
        const char *const parts[] = {json_string_value(id)};
        json_t *open = entry(g, g->open, (size_t)16 * MOST_OBJECTS, parts, 1, &is_new);
        if (open != NULL)
            add_to(open, "left", -1);
    }
    for (size_t i = 0; good && i < json_array_size(objects); i++)
        good = take_object(g, json_array_get(objects, i));
    json_decref(path);
    json_decref(id);
    return good;
}

static void take_line(gathered *g, const char *text, size_t size)
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

/* ---- what it comes to ----------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The values of a map, in order of its keys. */
static json_t *sorted_values(json_t *map)
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

/* The entry once, whoever says it. */
static void add_uncontrolled(json_t *map, const char *what, const char *why)
{
    if (what != NULL && json_object_get(map, what) == NULL)
        json_object_set_new(map, what, json_pack("{s:s, s:s}", "what", what, "why", why));
}

static void uncontrolled_event(json_t *map, const json_t *event)
{
    static const struct {
        const char *what, *words;
    } kinds[] = {
        {"static-program", "static program"},     {"privileged-program", "privileged program"},
        {"foreign-program", "foreign program"},   {"sanitizer-program", "program with a sanitizer"},
        {"without-preload", "unwatched program"}, {"unsorted", "order of directories in"},
    };
    const char *what = json_string_value(json_object_get(event, "what")),
               *subject = json_string_value(json_object_get(event, "subject")),
               *detail = json_string_value(json_object_get(event, "detail"));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tctl_buf text = TCTL_BUF_INIT;
        if (strcmp(what, kinds[i].what) == 0) {
            tctl_buf_add_format(&text, "%s '%s'", kinds[i].words, subject);
            add_uncontrolled(map, tctl_buf_text(&text), detail);
        }
        tctl_buf_release(&text);
    }
}

/* Counts the processes that never reported their end, and says whose they were. */
static json_int_t unreported(json_t *map, json_t *open)
{
    json_t *by_program = json_object(), *value;
    json_int_t sum = 0;
    const char *key;
    json_object_foreach(open, key, value)
    {
        json_int_t left = json_integer_value(json_object_get(value, "left"));
        const char *program = json_string_value(json_object_get(value, "program"));
        if (left <= 0 || program == NULL)
            continue;
        sum += left;
        add_to(by_program, program, left);
    }
    json_object_foreach(by_program, key, value)
    {
        tctl_buf text = TCTL_BUF_INIT;
        json_int_t n = json_integer_value(value);
        tctl_buf_add_format(&text, "%" JSON_INTEGER_FORMAT " process%s of '%s'", n, n == 1 ? "" : "es", key);
        add_uncontrolled(
            map, tctl_buf_text(&text),
            "ended without a report (killed, or by a system call of its own): its libraries and counts "
            "are not known");
        tctl_buf_release(&text);
    }
    json_decref(by_program);
    return sum;
}

static tctl_status conclude(gathered *g, bool is_full, tctl_interposer_report *ret, tctl_error *err)
{
    json_t *map = json_object(), *events = sorted_values(g->events), *programs = sorted_values(g->programs),
           *event;
    size_t i;
    tctl_interposer_report made = {0};
    json_array_foreach(events, i, event)
    {
        uncontrolled_event(map, event);
    }
    json_int_t silent = unreported(map, g->open);
    if (is_full || g->cut)
        add_uncontrolled(map, "processes beyond the report's size",
                         "the report is full: later ones could not be added");
    if (g->malformed > 0)
        add_uncontrolled(map, "processes whose report is damaged", "a line could not be read");
    made.interposer = json_pack("{s:I, s:I, s:I, s:o, s:o}", "processes", g->processes, "unreported", silent,
                                "malformed", g->malformed, "programs", programs, "events", events);
    made.uncontrolled = sorted_values(map);
    made.objects = sorted_values(g->objects);
    json_decref(map);
    if (made.interposer == NULL || made.uncontrolled == NULL || made.objects == NULL) {
        tctl_interposer_report_release(&made);
        return tctl_fail_memory(err, 0);
    }
    *ret = made;
    return TCTL_OK;
}

tctl_status tctl_interposer_report_parse(const char *text, size_t size, tctl_interposer_report *ret,
                                         tctl_error *err)
{
    gathered g = {json_object(), json_object(), json_object(), json_object(), 0, 0, false};
    tctl_status st = TCTL_OK;
    if (g.programs == NULL || g.events == NULL || g.objects == NULL || g.open == NULL)
        st = tctl_fail_memory(err, 0);
    for (size_t at = 0; st == TCTL_OK && at < size;) {
        const char *newline = memchr(text + at, '\n', size - at);
        size_t n = newline == NULL ? size - at : (size_t)(newline - (text + at));
        if (n > 0)
            take_line(&g, text + at, n);
        at += n + 1;
    }
    if (st == TCTL_OK)
        st = conclude(&g, size >= FULL_AT, ret, err);
    json_decref(g.programs);
    json_decref(g.events);
    json_decref(g.objects);
    json_decref(g.open);
    return st;
}

tctl_status tctl_interposer_report_read(const char *path, tctl_interposer_report *ret, tctl_error *err)
{
    tctl_buf text = TCTL_BUF_INIT;
    tctl_status read = tctl_file_read(path, FILE_LIMIT, &text, NULL);
    tctl_interposer_report made = {0};
    tctl_status st = tctl_interposer_report_parse(text.data, text.size, &made, err);
    tctl_buf_release(&text);
    if (st != TCTL_OK)
        return st;
    if (json_integer_value(json_object_get(made.interposer, "processes")) == 0) {
        json_t *one = json_pack("{s:s, s:s}", "what", "the whole run", "why",
                                read == TCTL_OK || read == TCTL_ENOENT
                                    ? "no process reported that the interposer was loaded into it"
                                    : "the interposer's report can't be read");
        if (one == NULL || json_array_append_new(made.uncontrolled, one) != 0) {
            tctl_interposer_report_release(&made);
            return tctl_fail_memory(err, 0);
        }
    }
    *ret = made;
    return TCTL_OK;
}

void tctl_interposer_report_release(tctl_interposer_report *report)
{
    json_decref(report->interposer);
    json_decref(report->uncontrolled);
    json_decref(report->objects);
    *report = (tctl_interposer_report){0};
}

/* ---- objects -------------------------------------------------------------------------------------------- */

/* `path` with the folder of one of the places replaced by its name; from malloc, NULL if memory is out. */
static char *shown_path(const char *path, const tctl_object_place *places)
{
    tctl_buf text = TCTL_BUF_INIT;
    const tctl_object_place *best = NULL;
    size_t length = 0;
    for (const tctl_object_place *p = places; p != NULL && p->folder != NULL; p++) {
        size_t n = strlen(p->folder);
        if (n > length && strncmp(path, p->folder, n) == 0 && path[n] == '/') {
            best = p;
            length = n;
        }
    }
    tctl_buf_add_text(&text, best == NULL ? "" : best->name);
    tctl_buf_add_text(&text, path + length);
    return tctl_buf_detach(&text);
}

static json_t *object_json(const json_t *object, const tctl_object_place *places, tctl_stat_cache *cache)
{
    char *path = NULL, *shown = NULL;
    const json_t *identity = json_object_get(object, "identity");
    const char *build_id = json_string_value(json_object_get(object, "build_id"));
    if (tctl_path_from_json(json_object_get(object, "path"), &path, NULL) != TCTL_OK)
        return NULL;
    struct stat loaded = {
        .st_dev = (dev_t)json_integer_value(json_array_get(identity, 0)),
        .st_ino = (ino_t)json_integer_value(json_array_get(identity, 1)),
        .st_size = (off_t)json_integer_value(json_array_get(identity, 2)),
        .st_mtim = {.tv_sec = json_integer_value(json_array_get(identity, 3)),
                    .tv_nsec = json_integer_value(json_array_get(identity, 4))},
    };
    json_t *made = tctl_shared_object(cache, path, build_id, &loaded);
    shown = shown_path(path, places);
    if (shown == NULL || json_object_set_new(made, "path", tctl_path_to_json(shown)) != 0) {
        json_decref(made);
        made = NULL;
    }
    free(shown);
    free(path);
    return made;
}

json_t *tctl_interposer_shared_objects(const tctl_interposer_report *report, const tctl_object_place *places,
                                       tctl_stat_cache *cache)
{
    json_t *map = json_object(), *object, *list = NULL;
    size_t i;
    bool good = map != NULL;
    json_array_foreach(report->objects, i, object)
    {
        json_t *made = good ? object_json(object, places, cache) : NULL;
        tctl_buf key = TCTL_BUF_INIT; /* path, then digest: one that many found is there once */
        const char *path = json_string_value(json_object_get(made, "path")),
                   *digest = json_string_value(json_object_get(made, "sha256"));
        tctl_buf_add_format(&key, "%s\n%s", path == NULL ? "" : path, digest == NULL ? "" : digest);
        good = made != NULL && tctl_buf_text(&key) != NULL;
        if (good && strcmp(tctl_path_base(path), "libtrainctl-det.so") != 0) /* is in the envelope's record */
            good = json_object_set(map, tctl_buf_text(&key), made) == 0;
        tctl_buf_release(&key);
        json_decref(made);
    }
    if (good)
        list = sorted_values(map);
    json_decref(map);
    return list;
}
