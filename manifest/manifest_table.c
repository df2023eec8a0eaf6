/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a manifest: one table, from which manifests are checked and the JSON Schema is made. Members that
 * the table does not know are fine: a later version may have more.
 */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "manifest/manifest.h"

enum {
    TEXT,
    COUNT,
    DIGEST,
    OUTPUT_PATH,
    INTEGER,
    REAL,
    BOOLEAN,
    ANY_OBJECT,
    OBJECT,
    LIST,
    TEXTS,
    TEXT_MAP,
    FORMAT
};

typedef struct member {
    const char *name; /* NULL ends a table */
    int kind;
    bool required, nullable;
    const struct member *of;  /* members of an OBJECT, or of each item of a LIST */
    const char *const *words; /* what a TEXT may be; NULL: anything */
    const char *doc;
} member;

#define MUST       true, false
#define MAY        false, false
#define NULLED     true, true
#define MAYBE_NULL false, true
#define END                                                                                                  \
    {                                                                                                        \
        NULL, 0, false, false, NULL, NULL, NULL                                                              \
    }

static const char *const contracts[] = {"exact", "machine", "off", NULL};
static const char *const children[] = {"worker", "command", NULL};
static const char *const data_kinds[] = {"file", "folder", NULL};
static const char *const output_types[] = {"file", "executable", "link", "folder", NULL};

static const member run_members[] = {
    {"id", TEXT, MUST, NULL, NULL, "name of the run directory"},
    {"name", TEXT, MUST, NULL, NULL, "name in the spec"},
    {"started", COUNT, MUST, NULL, NULL, "nanoseconds since 1970"},
    {"seconds", REAL, MUST, NULL, NULL, "wall-clock time of the child"},
    {"peak_bytes", COUNT, MUST, NULL, NULL, "largest resident set of the child"},
    {"left", TEXTS, MAY, NULL, NULL,
     "names of the processes that the child left running and that were ended"},
    END,
};

static const member request_members[] = {
    {"spec", TEXT, MUST, NULL, NULL, "path of the spec as given"},
    {"folder", TEXT, MUST, NULL, NULL, "absolute folder of the spec"},
    {"spec_sha256", DIGEST, MUST, NULL, NULL, "digest of spec.yaml"},
    {"set", TEXTS, MUST, NULL, NULL, "values of --set"},
    {"without", TEXTS, MUST, NULL, NULL, "values of --without"},
    {"seed", TEXT, NULLED, NULL, NULL, "value of --seed"},
    END,
};

static const member data_members[] = {
    {"name", TEXT, MUST, NULL, NULL, "place in the spec: data.train.images"},
    {"path", TEXT, MUST, NULL, NULL, "absolute path"},
    {"written", TEXT, MUST, NULL, NULL, "path as the spec has it"},
    {"kind", TEXT, MUST, NULL, data_kinds, "a file, or a folder with all that is in it"},
    {"files", COUNT, MUST, NULL, NULL, "number of regular files"},
    {"bytes", COUNT, MUST, NULL, NULL, "their sizes together"},
    {"sha256", DIGEST, MUST, NULL, NULL, "of the file, or of the folder's listing"},
    END,
};

static const member plugin_members[] = {
    {"use", TEXT, MAY, NULL, NULL, "as the spec has it"},
    {"name", TEXT, MUST, NULL, NULL, "its own name"},
    {"version", TEXT, MUST, NULL, NULL, "its own version"},
    {"path", TEXT, MUST, NULL, NULL, "absolute path of the shared object"},
    {"sha256", DIGEST, MUST, NULL, NULL, "of the shared object"},
    END,
};

static const member envelope_members[] = {
    {"variables", TEXT_MAP, MUST, NULL, NULL, "environment of the child, by value"},
    {"names", TEXTS, MUST, NULL, NULL, "variables that were passed and are recorded by name only"},
    {"secrets", TEXTS, MUST, NULL, NULL, "names of secret variables"},
    {"replaced", TEXTS, MUST, NULL, NULL, "variables of the user's that a pinned value replaced"},
    {"kept", TEXTS, MAY, NULL, NULL, "variables that have the user's value, with which results repeat"},
    {"allowed", TEXTS, MAY, NULL, NULL, "variables of --allow-env that were set"},
    {"unpinned", TEXTS, MAY, NULL, NULL, "variables that the spec does not pin"},
    {"umask", TEXT, MUST, NULL, NULL, "octal"},
    {"aslr", TEXT, MUST, NULL, NULL, "off, or why it was left on"},
    {"core_limit", TEXT, MUST, NULL, NULL, "largest core dump in bytes"},
    {"limits", TEXT_MAP, MAY, NULL, NULL,
     "soft limits of the child: bytes, numbers, seconds, or 'unlimited'"},
    {"interposer", DIGEST, MAYBE_NULL, NULL, NULL, "of the preloaded library; null without one"},
    {"python", BOOLEAN, MAY, NULL, NULL, "the Python shim is on the path"},
    END,
};

static const member content_members[] = {
    {"format", TEXT, MUST, NULL, NULL, "which container: torch, safetensors, npy, npz, zip, gzip, …"},
    {"sha256", DIGEST, MUST, NULL, NULL, "of what a reader gets (docs/outputs.md)"},
    {"tensors", COUNT, MUST, NULL, NULL, "number of tensors in it"},
    {"volatile", TEXTS, MAY, NULL, NULL, "places in JSON that do not count"},
    END,
};

static const member output_members[] = {
    {"path", OUTPUT_PATH, MUST, NULL, NULL, "relative to the output folder"},
    {"type", TEXT, MUST, NULL, output_types, "what it is"},
    {"bytes", COUNT, MUST, NULL, NULL, "size"},
    {"sha256", DIGEST, NULLED, NULL, NULL, "of the bytes, or of a link's target; null for a folder"},
    {"content", OBJECT, MAY, content_members, NULL, "of a command's output in a format that is known"},
    {"as", TEXT, MAY, NULL, NULL, "what it is known by, where its path differs from run to run"},
    END,
};

static const member trace_members[] = {
    {"sha256", DIGEST, MUST, NULL, NULL, "of trace.bin"},
    {"steps", COUNT, MUST, NULL, NULL, "number of records"},
    {"fields", INTEGER, MUST, NULL, NULL, "number of values in a record"},
    END,
};

static const member program_members[] = {
    {"path", TEXT, MUST, NULL, NULL, "the program, as /proc named it"},
    {"processes", INTEGER, MUST, NULL, NULL, "how many processes ran it"},
    {"counts", ANY_OBJECT, MUST, NULL, NULL, "what they asked for: see docs/determinism.md"},
    END,
};

static const member event_members[] = {
    {"what", TEXT, MUST, NULL, NULL, "time-seeded, fp-environment, …: see docs/determinism.md"},
    {"program", TEXT, MUST, NULL, NULL, "the program it happened in"},
    {"subject", TEXT, MUST, NULL, NULL, "the library, function or program that it is about"},
    {"detail", TEXT, MUST, NULL, NULL, "what was found, and what was done"},
    {"count", INTEGER, MUST, NULL, NULL, "how often"},
    END,
};

static const member interposer_members[] = {
    {"processes", INTEGER, MUST, NULL, NULL, "programs that began under the interposer"},
    {"unreported", INTEGER, MUST, NULL, NULL, "those of them that ended without a word"},
    {"malformed", INTEGER, MUST, NULL, NULL, "lines of the report that could not be read"},
    {"programs", LIST, MUST, program_members, NULL, "by path"},
    {"events", LIST, MUST, event_members, NULL, "by what, program and subject"},
    END,
};

static const member note_members[] = {
    {"what", TEXT, MUST, NULL, NULL, "what it is about"},
    {"detail", TEXT, MUST, NULL, NULL, "what was noticed"},
    {"file", TEXT, MUST, NULL, NULL, "of the script; empty: no place in particular"},
    {"line", INTEGER, MUST, NULL, NULL, "in that file; 0: none"},
    END,
};

static const member python_members[] = {
    {"processes", INTEGER, MUST, NULL, NULL, "Python programs that began under the shim"},
    {"versions", TEXTS, MUST, NULL, NULL, "of Python"},
    {"settings", TEXT_MAP, MUST, NULL, NULL, "what the shim set, and to what"},
    {"notes", LIST, MUST, note_members, NULL, "what it noticed, with places in the script"},
    {"malformed", INTEGER, MUST, NULL, NULL, "lines of its report that could not be read"},
    END,
};

static const member uncontrolled_members[] = {
    {"what", TEXT, MUST, NULL, NULL, "the thing"},
    {"why", TEXT, MUST, NULL, NULL, "the reason"},
    END,
};

static const member root_members[] = {
    {"format", FORMAT, MUST, NULL, NULL, "version of this document's format"},
    {"trainctl", TEXT, MUST, NULL, NULL, "version of the program that made it"},
    {"run", OBJECT, MUST, run_members, NULL, "the run itself; in no digest"},
    {"contract", TEXT, MUST, NULL, contracts, "what was promised"},
    {"seed", COUNT, MUST, NULL, NULL, "root seed"},
    {"recipe", ANY_OBJECT, MUST, NULL, NULL, "what decides the bits, resolved"},
    {"recipe_digest", DIGEST, MUST, NULL, NULL, "SHA-256 of the recipe's canonical text"},
    {"experiment_digest", DIGEST, MUST, NULL, NULL, "of recipe, data, plugins and code together"},
    {"result_digest", DIGEST, MUST, NULL, NULL, "of outputs, trace and exit code"},
    {"exit_code", INTEGER, MUST, NULL, NULL, "of the child"},
    {"request", OBJECT, MUST, request_members, NULL, "what was asked for"},
    {"resources", ANY_OBJECT, MUST, NULL, NULL, "threads, workers, …: never change a bit in contract exact"},
    {"child", TEXT, MUST, NULL, children, "who did the work"},
    {"command", TEXT, NULLED, NULL, NULL, "the spec's `run:`"},
    {"code", ANY_OBJECT, MUST, NULL, NULL, "see docs/code-capture.md"},
    {"data", LIST, MUST, data_members, NULL, "inputs"},
    {"plugins", LIST, MUST, plugin_members, NULL, "what was loaded"},
    {"shared_objects", LIST, MUST, NULL, NULL,
     "all libraries of the worker or, of a command, of all its processes"},
    {"environment", ANY_OBJECT, MUST, NULL, NULL, "the machine"},
    {"envelope", OBJECT, MUST, envelope_members, NULL, "what the child found around it"},
    {"determinism", ANY_OBJECT, MAY, NULL, NULL, "the spec's `determinism:`, defaults expanded"},
    {"interposer", OBJECT, MAYBE_NULL, interposer_members, NULL, "what the interposer saw; null without it"},
    {"python", OBJECT, MAYBE_NULL, python_members, NULL,
     "what the Python shim set and saw; null without Python"},
    {"uncontrolled", LIST, MAY, uncontrolled_members, NULL, "what the envelope could not control"},
    {"outputs", LIST, MUST, output_members, NULL, "what the run left in its output folder"},
    {"trace", OBJECT, NULLED, trace_members, NULL, "the bits of every step"},
    {"metrics", ANY_OBJECT, NULLED, NULL, NULL, "the last line of metrics.jsonl"},
    END,
};

/* ---- checking ------------------------------------------------------------------------------------------ */

typedef struct where {
    const char *name;
    tctl_error *err;
    char path[256];
} where;

static const char *kind_word(int kind)
{
    static const char *const words[] = {"text",
                                        "a decimal number in quotes",
                                        "64 lower-case hex digits",
                                        "a relative path without '..'",
                                        "an integer",
                                        "a number",
                                        "true or false",
                                        "an object",
                                        "an object",
                                        "a list",
                                        "a list of texts",
                                        "an object of texts",
                                        "'" TCTL_MANIFEST_FORMAT "'"};
    return words[kind];
}

static bool is_count(const char *text)
{
    uint64_t v;
    return text != NULL && text[0] != '+' && tctl_parse_uint(text, strlen(text), &v);
}

static bool is_output_path(const char *text)
{
    if (text == NULL || text[0] == '/' || text[0] == '\0')
        return false;
    for (const char *at = text; at != NULL;) {
        size_t n = strcspn(at, "/");
        if (n == 0 || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at = at[n] == '/' ? at + n + 1 : NULL;
    }
    return true;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; words != NULL && *words != NULL; words++) {
        if (text != NULL && strcmp(text, *words) == 0)
            return true;
    }
    return words == NULL && text != NULL;
}

static bool are_texts(const json_t *value)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)value, i, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return json_is_array(value);
}

static bool is_text_map(const json_t *value)
{
    const char *key;
    json_t *item;
    json_object_foreach((json_t *)(uintptr_t)value, key, item)
    {
        if (!json_is_string(item))
            return false;
    }
    return json_is_object(value);
}

static bool fits(const member *m, const json_t *value)
{
    const char *text = json_string_value(value);
    tctl_sha256 digest;
    switch (m->kind) {
    case TEXT:
        return is_one_of(text, m->words);
    case FORMAT:
        return text != NULL && strcmp(text, TCTL_MANIFEST_FORMAT) == 0;
    case COUNT:
        return is_count(text);
    case DIGEST:
        return text != NULL && tctl_sha256_parse(text, &digest);
    case OUTPUT_PATH:
        return is_output_path(text);
    case INTEGER:
        return json_is_integer(value);
    case REAL:
        return json_is_number(value);
    case BOOLEAN:
        return json_is_boolean(value);
    case LIST:
        return json_is_array(value);
    case TEXTS:
        return are_texts(value);
    case TEXT_MAP:
        return is_text_map(value);
    default:
        return json_is_object(value);
    }
}

static tctl_status check_members(where *w, const json_t *object, const member *members);

static tctl_status check_items(where *w, const json_t *list, const member *members)
{
    size_t i, length = strlen(w->path);
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        snprintf(w->path + length, sizeof w->path - length, "[%zu]", i);
        if (!json_is_object(item))
            return tctl_fail(w->err, TCTL_EFORMAT, "%s: '%s' must be an object", w->name, w->path);
        tctl_status st = members == NULL ? TCTL_OK : check_members(w, item, members);
        if (st != TCTL_OK)
            return st;
        w->path[length] = '\0';
    }
    return TCTL_OK;
}

static tctl_status check_members(where *w, const json_t *object, const member *members)
{
    size_t length = strlen(w->path);
    for (const member *m = members; m->name != NULL; m++) {
        const json_t *value = json_object_get(object, m->name);
        snprintf(w->path + length, sizeof w->path - length, "%s%s", length > 0 ? "." : "", m->name);
        if (value == NULL && m->required)
            return tctl_fail(w->err, TCTL_EFORMAT, "%s: '%s' is missing", w->name, w->path);
        if (value != NULL && !(m->nullable && json_is_null(value))) {
            tctl_status st = TCTL_OK;
            if (!fits(m, value))
                return tctl_fail(w->err, TCTL_EFORMAT, "%s: '%s' must be %s", w->name, w->path,
                                 m->words != NULL ? "one of the words of the format" : kind_word(m->kind));
            if (m->kind == OBJECT)
                st = check_members(w, value, m->of);
            else if (m->kind == LIST)
                st = check_items(w, value, m->of);
            if (st != TCTL_OK)
                return st;
        }
        w->path[length] = '\0';
    }
    return TCTL_OK;
}

tctl_status tctl_manifest_check(const json_t *manifest, const char *name, tctl_error *err)
{
    where w = {.name = name, .err = err};
    if (!json_is_object(manifest))
        return tctl_fail(err, TCTL_EFORMAT, "%s: a manifest is an object", name);
    return check_members(&w, manifest, root_members);
}

/* ---- the schema ---------------------------------------------------------------------------------------- */

static json_t *members_schema(const member *members);

static json_t *words_schema(const char *const *words)
{
    json_t *list = json_array();
    for (; *words != NULL; words++)
        json_array_append_new(list, json_string(*words));
    return json_pack("{s:s, s:o}", "type", "string", "enum", list);
}

static json_t *member_schema(const member *m)
{
    switch (m->kind) {
    case TEXT:
        return m->words != NULL ? words_schema(m->words) : json_pack("{s:s}", "type", "string");
    case FORMAT:
        return json_pack("{s:s}", "const", TCTL_MANIFEST_FORMAT);
    case COUNT:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(0|[1-9][0-9]*)$");
    case DIGEST:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^[0-9a-f]{64}$");
    case OUTPUT_PATH:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^(?!/)(?!(.*/)?\\.{0,2}(/|$)).+$");
    case INTEGER:
        return json_pack("{s:s}", "type", "integer");
    case REAL:
        return json_pack("{s:s}", "type", "number");
    case BOOLEAN:
        return json_pack("{s:s}", "type", "boolean");
    case OBJECT:
        return members_schema(m->of);
    case LIST:
        return json_pack("{s:s, s:o}", "type", "array", "items",
                         m->of != NULL ? members_schema(m->of) : json_pack("{s:s}", "type", "object"));
    case TEXTS:
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    case TEXT_MAP:
        return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type", "string");
    default:
        return json_pack("{s:s}", "type", "object");
    }
}

static json_t *members_schema(const member *members)
{
    json_t *properties = json_object(), *required = json_array();
    for (const member *m = members; m->name != NULL; m++) {
        json_t *schema = member_schema(m);
        json_t *type = json_object_get(schema, "type");
        if (m->nullable && type != NULL)
            json_object_set_new(schema, "type", json_pack("[O, s]", type, "null"));
        json_object_set_new(schema, "description", json_string(m->doc));
        json_object_set_new(properties, m->name, schema);
        if (m->required)
            json_array_append_new(required, json_string(m->name));
    }
    return json_pack("{s:s, s:o, s:o}", "type", "object", "properties", properties, "required", required);
}

json_t *tctl_manifest_schema(void)
{
    json_t *schema = members_schema(root_members);
    json_object_set_new(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(schema, "title", json_string(TCTL_MANIFEST_FORMAT));
    return schema;
}
