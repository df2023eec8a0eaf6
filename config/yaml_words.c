/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See yaml_words.h. One table from libyaml's texts (0.2.5 and later) to ours; a text that is not in it is passed
 * on as it is. A few mistakes that libyaml notices late are looked for in the lines around its mark.
 */
#include "config/yaml_words.h"

#include <string.h>

#include "config/utf8.h"

enum place { PROBLEM, CONTEXT };

typedef struct wording {
    const char *context, *problem; /* what libyaml says: beginnings; NULL: anything */
    enum place place;              /* which of its two marks is the place of the mistake */
    const char *message;
    const char *note; /* at the other mark; NULL: none */
    const char *hint;
} wording;

static const wording wordings[] = {
    {"while scanning a quoted scalar", "found unexpected end of stream", CONTEXT,
     "this quote is never closed", NULL, "close it, or write the text without quotes"},
    {"while scanning a quoted scalar", "found unexpected document indicator", CONTEXT,
     "this quote is not closed before the document ends", "the document ends here", "close it"},
    {"while scanning a simple key", "could not find expected ':'", CONTEXT, "expected 'key: value' here",
     NULL,
     "write ':' and a blank behind the key; a text that goes on in the next line must be indented more"},
    {NULL, "mapping values are not allowed", PROBLEM, "a ':' is not allowed here", NULL,
     "a text with ': ' in it needs quotes; a new key must line up with the keys around it"},
    {NULL, "block sequence entries are not allowed", PROBLEM,
     "a list cannot begin behind 'key: ' on one line", NULL,
     "begin the list on the next line, or write [a, b]; a text that begins with '-' needs quotes"},
    {NULL, "mapping keys are not allowed", PROBLEM, "a '?' is not allowed here", NULL,
     "a text that begins with '?' needs quotes"},
    {"while parsing a quoted scalar", "found unknown escape character", PROBLEM,
     "unknown escape after '\\' inside double quotes", "the quote opens here",
     "write '\\\\' for a backslash, or use single quotes, where it has no meaning"},
    {"while parsing a quoted scalar", NULL, PROBLEM, "bad escape inside double quotes",
     "the quote opens here", "write \\xHH, \\uHHHH or \\UHHHHHHHH with hexadecimal digits"},
    {"while scanning a block scalar", "did not find expected comment or line break", PROBLEM,
     "nothing may follow '|' or '>' on its line", NULL, "a text that begins with '|' or '>' needs quotes"},
    {"while scanning a block scalar", "found a tab character", PROBLEM, "a tab stands in the indentation",
     "the text block begins here", "YAML indents with spaces only"},
    {"while scanning a plain scalar", "found a tab character", PROBLEM, "a tab stands in the indentation",
     "the text begins here", "YAML indents with spaces only"},
    {"while scanning an alias", NULL, CONTEXT, "a text cannot begin with '*'", NULL, "put it in quotes"},
    {"while scanning an anchor", NULL, CONTEXT, "a text cannot begin with '&'", NULL, "put it in quotes"},
    {"while scanning a tag", NULL, CONTEXT, "a text cannot begin with '!'", NULL, "put it in quotes"},
    {"while parsing a tag", NULL, CONTEXT, "a text cannot begin with '!'", NULL, "put it in quotes"},
    {NULL, "found undefined tag handle", PROBLEM, "a text cannot begin with '!'", NULL, "put it in quotes"},
    {"while scanning a directive", NULL, CONTEXT, "a text cannot begin with '%'", NULL, "put it in quotes"},
    {NULL, "found incompatible YAML document", PROBLEM, "this YAML version is not supported", NULL,
     "leave the line out, or write %YAML 1.2"},
    {NULL, "found duplicate %YAML directive", PROBLEM, "%YAML stands twice", NULL, "leave one out"},
    {"while parsing a block mapping", "did not find expected key", PROBLEM,
     "this does not fit the mapping around it", "the mapping begins here",
     "keys of one mapping stand in one column"},
    {"while parsing a block collection", "did not find expected '-'", PROBLEM,
     "this does not fit the list around it", "the list begins here",
     "items of one list begin with '- ' in one column"},
    {"while parsing a flow sequence", "did not find expected ',' or ']'", PROBLEM, "expected ',' or ']' here",
     "the list begins here", NULL},
    {"while parsing a flow mapping", "did not find expected ',' or '}'", PROBLEM, "expected ',' or '}' here",
     "the mapping begins here", NULL},
    {NULL, "did not find expected node content", PROBLEM, "expected a value here", NULL, NULL},
    {NULL, "did not find expected <document start>", PROBLEM, "nothing may follow the end of the document",
     NULL, "all top-level keys begin in one column"},
};

static bool begins_with(const char *text, const char *beginning)
{
    return !beginning || (text && strncmp(text, beginning, strlen(beginning)) == 0);
}

static tctl_loc loc_of(const char *name, yaml_mark_t mark)
{
    return (tctl_loc){name, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1, (uint32_t)mark.line + 1,
                      (uint32_t)mark.column + 2};
}

/* The character at a place; 0 at the end of a line. */
static char character_at(const char *text, size_t size, tctl_loc loc)
{
    const char *line;
    size_t length, at = 0;
    if (!tctl_text_line(text, size, loc.line, &line, &length))
        return 0;
    for (uint32_t col = 1; col < loc.col && at < length; col++) {
        uint32_t code;
        size_t n = tctl_utf8_decode(line + at, length - at, &code);
        at += n ? n : 1;
    }
    return at < length ? line[at] : 0;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Finds 'key:value' at the begin of a line: the blank behind the colon is missing. */
static bool find_tight_colon(const char *name, const char *text, size_t size, uint32_t number, tctl_loc *ret)
{
    const char *line;
    size_t length, at = 0;
    if (number == 0 || !tctl_text_line(text, size, number, &line, &length))
        return false;
    while (at < length && (line[at] == ' ' || (line[at] == '-' && at + 1 < length && line[at + 1] == ' ')))
        at++;
    size_t key = at;
    while (at < length && is_word(line[at]))
        at++;
    if (at == key || at + 1 >= length || line[at] != ':' || line[at + 1] == ' ' || line[at + 1] == '\t')
        return false;
    if (at + 2 < length && memcmp(line + at, "://", 3) == 0)
        return false;
    *ret = (tctl_loc){name, number, (uint32_t)at + 1, number, (uint32_t)at + 2};
    return true;
}

/* A blank that is missing behind ':' is noticed at the end of that line or later. */
static bool explain_tight_colon(const yaml_parser_t *parser, const char *name, const char *text, size_t size,
                                tctl_error *err)
{
    static const char *const late[] = {"mapping values are not allowed", "could not find expected ':'",
                                       "did not find expected key"};
    bool relevant = false;
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++)
        relevant = relevant || begins_with(parser->problem, late[i]);
    uint32_t line = (uint32_t)parser->problem_mark.line + 1;
    tctl_loc loc;
    if (!relevant || (!find_tight_colon(name, text, size, line, &loc) &&
                      !find_tight_colon(name, text, size, line - 1, &loc)))
        return false;
    tctl_fail_at(err, TCTL_ESPEC, loc, "a blank is missing behind ':'");
    tctl_hint(err, "write 'key: value'");
    return true;
}

/* `a: "x" y`: what follows a value that is complete. */
static bool explain_trailing(const yaml_parser_t *parser, const char *name, const char *text, size_t size,
                             tctl_error *err)
{
    tctl_loc loc = loc_of(name, parser->problem_mark);
    const char *line;
    size_t length;
    if (!begins_with(parser->problem, "did not find expected key") ||
        !tctl_text_line(text, size, loc.line, &line, &length) || strspn(line, " -") + 1 >= loc.col)
        return false;
    tctl_fail_at(err, TCTL_ESPEC, loc, "nothing may follow a value on its line");
    tctl_hint(err, "put the whole value into one pair of quotes; a comment begins with ' #'");
    return true;
}

/* A character that nothing can begin with. */
static bool explain_character(const yaml_parser_t *parser, const char *name, const char *text, size_t size,
                              tctl_error *err)
{
    tctl_loc loc = loc_of(name, parser->problem_mark);
    char c = character_at(text, size, loc);
    if (begins_with(parser->problem, "found character that cannot start any token") && c > ' ') {
        tctl_fail_at(err, TCTL_ESPEC, loc, "a text cannot begin with '%c'", c);
        tctl_hint(err, "put it in quotes");
        return true;
    }
    if (begins_with(parser->problem, "did not find expected key") && c == ':') {
        tctl_fail_at(err, TCTL_ESPEC, loc, "a key is missing before ':'");
        return true;
    }
    if (begins_with(parser->problem, "did not find expected node content") && c && strchr("]},", c)) {
        tctl_fail_at(
            err, TCTL_ESPEC, loc,
            c == ',' ? "expected a value before '%c'" : "this '%c' closes nothing, or a value is missing", c);
        return true;
    }
    return false;
}

tctl_status tctl_yaml_explain(const yaml_parser_t *parser, const char *name, const char *text, size_t size,
                              tctl_error *err)
{
    if (parser->error == YAML_MEMORY_ERROR)
        return tctl_fail_memory(err, size);
    tctl_loc problem = loc_of(name, parser->problem_mark), context = loc_of(name, parser->context_mark);
    if (explain_tight_colon(parser, name, text, size, err) ||
        explain_character(parser, name, text, size, err) || explain_trailing(parser, name, text, size, err))
        return TCTL_ESPEC;
    for (size_t i = 0; i < sizeof wordings / sizeof wordings[0]; i++) {
        const wording *w = &wordings[i];
        if (!begins_with(parser->problem, w->problem) || !begins_with(parser->context, w->context))
            continue;
        tctl_fail_at(err, TCTL_ESPEC, w->place == CONTEXT ? context : problem, "%s", w->message);
        if (w->note)
            tctl_note_at(err, w->place == CONTEXT ? problem : context, "%s", w->note);
        if (w->hint)
            tctl_hint(err, "%s", w->hint);
        return TCTL_ESPEC;
    }
    tctl_fail_at(err, TCTL_ESPEC, problem, "%s", parser->problem ? parser->problem : "not YAML");
    if (parser->context)
        tctl_note_at(err, context, "%s", parser->context);
    return TCTL_ESPEC;
}
