/* SPDX-License-Identifier: Apache-2.0 */
/* See prescan.h. */
#include "config/prescan.h"

#include <inttypes.h>
#include <string.h>

#include "config/utf8.h"
#include "config/yaml.h"

/* One more than allowed: a scalar is taken for the first key of a mapping until its end is seen. */
enum { MAX_OPEN = TCTL_YAML_MAX_DEPTH + 1 };

/* Where the scan stands, in YAML's sense. */
enum where { BETWEEN, PLAIN, SINGLE, DOUBLE, COMMENT, BLOCK };

typedef struct scan {
    const char *name, *text;
    size_t size, at;
    uint32_t line, col;
    tctl_diags *diags;
    bool stop; /* what follows would only be noise */

    enum where where;
    bool fresh;       /* only blanks and block indicators so far on this line */
    bool spaced;      /* a blank or the line's begin stands before this character */
    uint32_t indent;  /* blanks at the begin of the line */
    uint32_t flow;    /* open brackets */
    uint32_t n_block; /* open block collections: their columns */
    uint32_t block[MAX_OPEN];
    bool block_next;       /* this line ended in a block scalar's header */
    uint32_t block_column; /* of the collection around it: lines beginning behind it belong to the scalar */
    size_t n_nodes;
    size_t token; /* where the current scalar begins */
    tctl_loc token_loc;
} scan;

static tctl_loc here(const scan *s, uint32_t n_columns)
{
    return (tctl_loc){s->name, s->line, s->col, s->line, s->col + n_columns};
}

static tctl_error *complain(scan *s, tctl_loc loc, const char *what)
{
    tctl_error *err = tctl_diags_add(s->diags);
    tctl_fail_at(err, TCTL_ESPEC, loc, "%s", what);
    return err;
}

static void complain_and_stop(scan *s, tctl_loc loc, const char *what)
{
    complain(s, loc, what);
    s->stop = true;
}

/* ---- characters ----------------------------------------------------------------------------------- */

typedef struct lookalike {
    uint32_t first, last;
    bool anywhere; /* outside quotes, comments and block scalars; else only where a value begins */
    const char *what, *hint;
} lookalike;

static const lookalike lookalikes[] = {
    {0xA0, 0xA0, true, "a no-break space (U+00A0) is not a blank in YAML", "replace it by an ordinary space"},
    {0x2000, 0x200A, true, "a typographic space is not a blank in YAML", "replace it by an ordinary space"},
    {0x200B, 0x200F, true, "an invisible character stands here", "delete it and type the line again"},
    {0x202F, 0x202F, true, "a narrow no-break space (U+202F) is not a blank in YAML",
     "replace it by an ordinary space"},
    {0x2060, 0x2060, true, "an invisible character stands here", "delete it and type the line again"},
    {0x3000, 0x3000, true, "an ideographic space (U+3000) is not a blank in YAML",
     "replace it by an ordinary space"},
    {0x2018, 0x201F, false, "a typographic quote does not quote in YAML",
     "write ' or \"; if it belongs to the text, put plain quotes around all of it"},
    {0xAB, 0xAB, false, "a typographic quote does not quote in YAML",
     "write ' or \"; if it belongs to the text, put plain quotes around all of it"},
    {0x2010, 0x2015, false, "a typographic dash is neither a minus sign nor the '-' of a list", "write '-'"},
    {0x2212, 0x2212, false, "a typographic minus sign (U+2212) is not read as a number's sign", "write '-'"},
    {0xFF1A, 0xFF1A, true, "a full-width colon (U+FF1A) does not separate key and value", "write ': '"},
    {0xFF0C, 0xFF0C, true, "a full-width comma (U+FF0C) does not separate values", "write ', '"},
};

static void check_lookalike(scan *s, uint32_t code)
{
    if (code < 0x80 || s->where == SINGLE || s->where == DOUBLE || s->where == COMMENT || s->where == BLOCK)
        return;
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++) {
        const lookalike *l = &lookalikes[i];
        if (code < l->first || code > l->last || (!l->anywhere && s->where != BETWEEN))
            continue;
        tctl_hint(complain(s, here(s, 1), l->what), "%s", l->hint);
        return;
    }
}

/* Characters that are wrong wherever they stand. False if the scan is over. */
static bool check_character(scan *s, uint32_t code)
{
    if (code == 0xFEFF) {
        tctl_hint(complain(s, here(s, 1), "a byte order mark (U+FEFF) stands inside the text"),
                  "delete it; two files were probably joined");
    } else if (code == 0x85 || code == 0x2028 || code == 0x2029) {
        tctl_error *err = tctl_diags_add(s->diags);
        tctl_fail_at(err, TCTL_ESPEC, here(s, 1),
                     "the line separator U+%04" PRIX32 " is a line break for YAML but not for editors", code);
        tctl_hint(err, "replace it by an ordinary line break");
    } else if (code == '\r') {
        if (s->at + 1 < s->size && s->text[s->at + 1] == '\n')
            return true;
        tctl_hint(
            complain(s, here(s, 1), "a lone carriage return is a line break for YAML but not for editors"),
            "save the file with LF line ends");
        s->stop = true;
    } else if (code == 0) {
        complain_and_stop(s, here(s, 1), "a NUL byte stands here: this is not a text file");
    } else if ((code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7F && code < 0xA0)) {
        tctl_error *err = tctl_diags_add(s->diags);
        tctl_fail_at(err, TCTL_ESPEC, here(s, 1), "the control character U+%04" PRIX32 " is not allowed",
                     code);
        tctl_hint(err, "delete it; inside double quotes, \\x%02" PRIX32 " stands for it", code);
    } else if (code == 0xFFFE || code == 0xFFFF) {
        complain(s, here(s, 1), "a code point that is no character stands here");
    }
    return !s->stop;
}

/* Reads the next character; 0 after saying what is wrong with its bytes. */
static size_t next_character(scan *s, uint32_t *ret)
{
    size_t n = tctl_utf8_decode(s->text + s->at, s->size - s->at, ret);
    if (n == 0) {
        tctl_error *err = tctl_diags_add(s->diags);
        tctl_fail_at(err, TCTL_ESPEC, here(s, 1), "byte 0x%02x is not UTF-8",
                     (unsigned)(unsigned char)s->text[s->at]);
        tctl_hint(err, "save the file as UTF-8");
        s->stop = true;
    }
    return n;
}

/* ---- structure ------------------------------------------------------------------------------------ */

static void complain_depth(scan *s)
{
    tctl_fail_at(tctl_diags_add(s->diags), TCTL_ESPEC, here(s, 1), "nested deeper than %d levels",
                 TCTL_YAML_MAX_DEPTH);
    s->stop = true;
}

/* A block collection's content may begin in this column. */
static void open_block(scan *s)
{
    while (s->n_block > 0 && s->block[s->n_block - 1] >= s->col)
        s->n_block--;
    if (s->n_block < MAX_OPEN)
        s->block[s->n_block++] = s->col;
    else
        complain_depth(s);
}

static void begin_scalar(scan *s, enum where where)
{
    if (s->fresh && s->flow == 0)
        open_block(s);
    s->fresh = false;
    s->where = where;
    s->token = s->at;
    s->token_loc = here(s, 1);
    if (++s->n_nodes <= TCTL_YAML_MAX_NODES || s->stop)
        return;
    tctl_fail_at(tctl_diags_add(s->diags), TCTL_ESPEC, here(s, 1), "more than %d values",
                 TCTL_YAML_MAX_NODES);
    s->stop = true;
}

static void end_scalar(scan *s)
{
    s->where = BETWEEN;
    if (s->at - s->token <= TCTL_YAML_MAX_SCALAR)
        return;
    tctl_fail_at(tctl_diags_add(s->diags), TCTL_ESPEC, s->token_loc, "a text of more than %zu bytes",
                 TCTL_YAML_MAX_SCALAR);
    s->stop = true;
}

static char peek(const scan *s, size_t ahead)
{
    return s->size - s->at > ahead ? s->text[s->at + ahead] : '\n';
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* '|' or '>' with its modifiers, and then nothing but a comment: the header of a block scalar. */
static bool is_block_header(const scan *s)
{
    size_t i = 1;
    while (peek(s, i) == '+' || peek(s, i) == '-' || (peek(s, i) >= '0' && peek(s, i) <= '9'))
        i++;
    while (peek(s, i) == ' ')
        i++;
    return peek(s, i) == '\n' || peek(s, i) == '\r' || peek(s, i) == '#';
}

/* A character between tokens. */
static void step_between(scan *s, char c)
{
    bool indicator = is_space(peek(s, 1));
    if (c == '#' && s->spaced) {
        s->where = COMMENT;
    } else if (c == '[' || c == '{') {
        begin_scalar(s, BETWEEN);
        if (++s->flow + s->n_block > MAX_OPEN && !s->stop)
            complain_depth(s);
    } else if (c == ']' || c == '}' || c == ',') {
        s->flow -= s->flow > 0 && c != ',';
    } else if ((c == '-' || c == '?') && indicator && s->fresh && s->flow == 0) {
        open_block(s);
    } else if (c == ':' && (indicator || s->flow > 0)) {
        s->fresh = false;
    } else if (c == '"' || c == '\'') {
        begin_scalar(s, c == '"' ? DOUBLE : SINGLE);
    } else if ((c == '|' || c == '>') && s->flow == 0 && is_block_header(s)) {
        s->n_nodes++;
        s->fresh = false;
        s->block_next = true;
        s->block_column = s->n_block > 0 ? s->block[s->n_block - 1] : 0;
    } else {
        begin_scalar(s, PLAIN);
    }
}

static void step_plain(scan *s, char c)
{
    bool colon = c == ':' && (is_space(peek(s, 1)) || (s->flow > 0 && strchr(",[]{}", peek(s, 1))));
    bool bracket = s->flow > 0 && (c == ',' || c == '[' || c == ']' || c == '{' || c == '}');
    bool comment = c == '#' && s->spaced;
    if (!colon && !bracket && !comment)
        return;
    end_scalar(s);
    if (!s->stop)
        step_between(s, c);
}

/* A quote inside quotes: returns how many characters belong together. */
static size_t step_quoted(scan *s, char c)
{
    if (s->where == DOUBLE && c == '\\' && (peek(s, 1) == '"' || peek(s, 1) == '\\'))
        return 2;
    if (s->where == SINGLE && c == '\'' && peek(s, 1) == '\'')
        return 2;
    if (c == (s->where == DOUBLE ? '"' : '\''))
        end_scalar(s);
    return 1;
}

static void begin_line(scan *s)
{
    if (s->where == PLAIN)
        end_scalar(s);
    else if (s->where == COMMENT)
        s->where = BETWEEN;
    s->fresh = true;
    s->spaced = true;
    s->indent = 0;
    while (peek(s, s->indent) == ' ')
        s->indent++;
    char first = peek(s, s->indent);
    bool empty = first == '\n' || first == '\r';
    if (s->block_next) {
        s->where = BLOCK;
        s->block_next = false;
        s->token = s->at;
        s->token_loc = here(s, 1);
    }
    if (s->where == BLOCK && !empty && s->at < s->size && s->indent < s->block_column)
        end_scalar(s);
    if (s->where != BETWEEN || s->flow > 0 || first != '\t')
        return;
    s->col += s->indent;
    s->at += s->indent;
    tctl_hint(complain(s, here(s, 1), "a tab stands in the indentation"), "YAML indents with spaces only");
    s->col -= s->indent;
    s->at -= s->indent;
}

static void step(scan *s, uint32_t code, size_t n)
{
    char c = code < 0x80 ? (char)code : 'x';
    size_t taken = 1;
    check_lookalike(s, code);
    if (c == '\n') {
        s->at++;
        s->line++;
        s->col = 1;
        begin_line(s);
        return;
    }
    if (s->where == SINGLE || s->where == DOUBLE)
        taken = step_quoted(s, c);
    else if (s->where == PLAIN)
        step_plain(s, c);
    else if (s->where == BETWEEN && !is_space(c))
        step_between(s, c);
    s->spaced = c == ' ' || c == '\t';
    s->at += taken == 2 ? 2 : n;
    s->col += (uint32_t)taken;
}

/* UTF-16 and UTF-32 begin with a mark, or have a NUL among the first bytes. */
static bool is_wide_text(const char *text, size_t size)
{
    return size >= 2 && (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0 ||
                         (text[0] == '\0') != (text[1] == '\0'));
}

tctl_status tctl_prescan(const char *name, const char *text, size_t size, tctl_diags *diags)
{
    size_t before = tctl_diags_count(diags);
    scan s = {.name = name, .text = text, .size = size, .line = 1, .col = 1, .diags = diags};
    tctl_loc start = {name, 1, 1, 1, 1};
    if (size > TCTL_YAML_MAX_BYTES) {
        tctl_fail_at(tctl_diags_add(diags), TCTL_ESPEC, start, "the spec has %zu bytes, at most %zu are read",
                     size, TCTL_YAML_MAX_BYTES);
        return TCTL_ESPEC;
    }
    if (is_wide_text(text, size)) {
        tctl_error *err = tctl_diags_add(diags);
        tctl_fail_at(err, TCTL_ESPEC, start, "the file is UTF-16 or UTF-32, a spec must be UTF-8");
        tctl_hint(err, "save the file as UTF-8");
        return TCTL_ESPEC;
    }
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        s.at = 3;
    begin_line(&s);
    while (s.at < size && !s.stop) {
        uint32_t code;
        size_t n = next_character(&s, &code);
        if (n && check_character(&s, code))
            step(&s, code, n);
    }
    if (!s.stop && s.where != BETWEEN && s.where != COMMENT && s.where != SINGLE && s.where != DOUBLE)
        end_scalar(&s);
    return tctl_diags_count(diags) > before ? TCTL_ESPEC : TCTL_OK;
}
