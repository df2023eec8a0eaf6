/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See diag.h.
 *
 * Excerpts are cut to a window around the caret; tabs become blanks and bytes that would disturb a terminal
 * become U+FFFD, so that the caret's cell can be computed. Lines end at '\n' alone, as in editors.
 */
#include "config/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/utf8.h"

enum {
    WINDOW_CELLS = 100, /* of an excerpt */
    BEFORE_CELLS = 40,  /* kept to the left of the caret when the line is cut */
    TAB_CELLS = 4
};

#define RESET  "\033[0m"
#define BOLD   "\033[1m"
#define RED    "\033[1;31m"
#define CYAN   "\033[1;36m"
#define GREEN  "\033[1;32m"
#define YELLOW "\033[1;33m"

void tctl_diags_release(tctl_diags *diags)
{
    free(diags->errors);
    *diags = (tctl_diags){0};
}

size_t tctl_diags_count(const tctl_diags *diags)
{
    return diags->n + diags->n_dropped;
}

tctl_error *tctl_diags_add(tctl_diags *diags)
{
    if (!diags->errors)
        diags->errors = calloc(TCTL_DIAGS_MAX, sizeof *diags->errors);
    if (!diags->errors || diags->n == TCTL_DIAGS_MAX) {
        diags->n_dropped++;
        tctl_error_clear(&diags->scratch);
        return &diags->scratch;
    }
    return &diags->errors[diags->n++];
}

typedef struct glyph {
    size_t bytes;        /* in the source, at least 1 */
    size_t cells;        /* on the terminal */
    const char *instead; /* shown instead of the bytes; NULL: the bytes themselves */
} glyph;

/* The character at text[0..size), standing in cell `cell`. */
static glyph glyph_at(const char *text, size_t size, size_t cell)
{
    static const char blanks[] = "    ";
    uint32_t code = 0;
    size_t n = tctl_utf8_decode(text, size, &code);
    if (n == 1 && code == '\t') {
        size_t cells = TAB_CELLS - cell % TAB_CELLS;
        return (glyph){1, cells, blanks + TAB_CELLS - cells};
    }
    if (n == 0 || code < 0x20 || (code >= 0x7F && code < 0xA0))
        return (glyph){n ? n : 1, 1, "\xEF\xBF\xBD"};
    /* Direction overrides and other format characters could make the excerpt lie. */
    if (tctl_utf8_width(code) == 0 && (code == 0xFEFF || (code >= 0x200B && code <= 0x206F)))
        return (glyph){n, 1, "\xEF\xBF\xBD"};
    return (glyph){n, (size_t)tctl_utf8_width(code), NULL};
}

/* The cell at which the character of column `col` (from 1) stands; the line's end for any later column. */
static size_t cell_of(const char *line, size_t size, uint32_t col)
{
    size_t cell = 0, at = 0;
    for (uint32_t c = 1; at < size && c < col; c++) {
        glyph g = glyph_at(line + at, size - at, cell);
        at += g.bytes;
        cell += g.cells;
    }
    return cell;
}

/* Appends the part of the line in cells low..high-1. */
static void add_window(const char *line, size_t size, size_t low, size_t high, tctl_buf *ret)
{
    size_t cell = 0;
    for (size_t at = 0; at < size && cell < high;) {
        glyph g = glyph_at(line + at, size - at, cell);
        if (cell >= low && cell + g.cells <= high) {
            if (g.instead)
                tctl_buf_add_text(ret, g.instead);
            else
                tctl_buf_add(ret, line + at, g.bytes);
        } else if (cell + g.cells > low && cell < low) {
            for (size_t i = low; i < cell + g.cells; i++)
                tctl_buf_add_char(ret, ' ');
        }
        at += g.bytes;
        cell += g.cells;
    }
}

/* The cells to underline, of a place on a line of `width` cells. */
static void caret_cells(tctl_loc loc, const char *line, size_t size, size_t width, size_t *begin, size_t *end)
{
    *begin = cell_of(line, size, loc.col);
    if (loc.end_line > loc.line)
        *end = width;
    else if (loc.end_line == loc.line && loc.end_col > loc.col)
        *end = cell_of(line, size, loc.end_col);
    else
        *end = *begin + 1;
    if (*end <= *begin)
        *end = *begin + 1;
}

static void add_excerpt(tctl_loc loc, const char *source, size_t source_size, const char *colour,
                        tctl_buf *ret)
{
    const char *line;
    size_t size;
    if (!source || loc.line == 0 || loc.col == 0 ||
        !tctl_text_line(source, source_size, loc.line, &line, &size))
        return;
    size_t width = cell_of(line, size, UINT32_MAX), begin, end;
    caret_cells(loc, line, size, width, &begin, &end);
    size_t low = 0, high = width;
    if (width > WINDOW_CELLS) {
        low = begin > WINDOW_CELLS - BEFORE_CELLS ? begin - BEFORE_CELLS : 0;
        high = low + WINDOW_CELLS < width ? low + WINDOW_CELLS : width;
    }
    if (end > high && end > begin + 1)
        end = high > begin ? high : begin + 1;
    char number[16];
    int digits = snprintf(number, sizeof number, "%5" PRIu32, loc.line);
    tctl_buf_add_format(ret, "%s | %s", number, low > 0 ? "\xE2\x80\xA6" : "");
    add_window(line, size, low, high, ret);
    tctl_buf_add_format(ret, "%s\n%*s | ", high < width ? "\xE2\x80\xA6" : "", digits, "");
    for (size_t i = low > 0 ? 0 : 1; i <= begin - low; i++)
        tctl_buf_add_char(ret, ' ');
    tctl_buf_add_text(ret, colour);
    for (size_t i = begin; i < end; i++)
        tctl_buf_add_char(ret, i == begin ? '^' : '~');
    tctl_buf_add_text(ret, *colour ? RESET : "");
    tctl_buf_add_char(ret, '\n');
}

/* "exp.yaml:4:8: ", as much of it as is known. */
static void add_place(tctl_loc loc, tctl_buf *ret)
{
    if (!loc.file)
        return;
    tctl_utf8_repair(loc.file, strlen(loc.file), ret);
    if (loc.line && loc.col)
        tctl_buf_add_format(ret, ":%" PRIu32 ":%" PRIu32, loc.line, loc.col);
    tctl_buf_add_text(ret, ": ");
}

static void add_words(const char *indent, const char *label, const char *colour, const char *words,
                      tctl_buf *ret)
{
    tctl_buf_add_format(ret, "%s%s%s%s ", indent, colour, label, *colour ? RESET : "");
    tctl_utf8_repair(words, strlen(words), ret);
    tctl_buf_add_char(ret, '\n');
}

static void add_notes(const tctl_error *err, const char *source, size_t source_size, bool colour,
                      tctl_buf *ret)
{
    for (uint32_t i = 0; i < err->n_notes; i++) {
        tctl_loc loc = err->note_locs[i];
        if (!loc.file) {
            add_words("  ", "note:", colour ? CYAN : "", err->notes[i], ret);
            continue;
        }
        bool same = err->loc.file && strcmp(loc.file, err->loc.file) == 0;
        tctl_buf_add_text(ret, colour ? BOLD : "");
        add_place(loc, ret);
        tctl_buf_add_text(ret, colour ? RESET : "");
        add_words("", "note:", colour ? CYAN : "", err->notes[i], ret);
        add_excerpt(loc, same ? source : NULL, source_size, colour ? CYAN : "", ret);
    }
}

void tctl_diag_render(const tctl_error *err, const char *source, size_t source_size, bool colour,
                      tctl_buf *ret)
{
    tctl_buf_add_text(ret, colour ? BOLD : "");
    add_place(err->loc, ret);
    tctl_buf_add_text(ret, colour ? RESET : "");
    add_words("", "error:", colour ? RED : "", err->message, ret);
    add_excerpt(err->loc, source, source_size, colour ? GREEN : "", ret);
    add_notes(err, source, source_size, colour, ret);
    if (err->hint[0])
        add_words("  ", "hint:", colour ? YELLOW : "", err->hint, ret);
}

/* By position; errors without a line (of the command line) come last. Insertion sort: stable, at most 20. */
static bool stands_before(const tctl_error *a, const tctl_error *b)
{
    uint32_t line_a = a->loc.line ? a->loc.line : UINT32_MAX, line_b = b->loc.line ? b->loc.line : UINT32_MAX;
    return line_a != line_b ? line_a < line_b : a->loc.col < b->loc.col;
}

static void sort(tctl_diags *diags)
{
    for (size_t i = 1; i < diags->n; i++) {
        for (size_t k = i; k > 0 && stands_before(&diags->errors[k], &diags->errors[k - 1]); k--) {
            tctl_error swap = diags->errors[k];
            diags->errors[k] = diags->errors[k - 1];
            diags->errors[k - 1] = swap;
        }
    }
}

void tctl_diags_render(tctl_diags *diags, const char *source, size_t source_size, bool colour, tctl_buf *ret)
{
    sort(diags);
    for (size_t i = 0; i < diags->n; i++)
        tctl_diag_render(&diags->errors[i], source, source_size, colour, ret);
    if (tctl_diags_count(diags) > 1)
        tctl_buf_add_format(ret, "%zu errors", tctl_diags_count(diags));
    if (diags->n_dropped)
        tctl_buf_add_format(ret, ", %zu of them not shown", diags->n_dropped);
    if (tctl_diags_count(diags) > 1 || diags->n_dropped)
        tctl_buf_add_char(ret, '\n');
}

/* A JSON string of any bytes. */
static json_t *json_words(const char *words)
{
    tctl_buf repaired = TCTL_BUF_INIT;
    tctl_utf8_repair(words, strlen(words), &repaired);
    const char *text = tctl_buf_text(&repaired);
    json_t *value = text ? json_string(text) : NULL;
    tctl_buf_release(&repaired);
    return value;
}

/* {file, line, column, end_line, end_column}; what is unknown is left out. */
static int set_place(json_t *object, tctl_loc loc)
{
    int bad = 0;
    if (loc.file)
        bad |= json_object_set_new(object, "file", json_words(loc.file));
    if (loc.line && loc.col) {
        bad |= json_object_set_new(object, "line", json_integer(loc.line));
        bad |= json_object_set_new(object, "column", json_integer(loc.col));
    }
    if (loc.end_line && loc.end_col) {
        bad |= json_object_set_new(object, "end_line", json_integer(loc.end_line));
        bad |= json_object_set_new(object, "end_column", json_integer(loc.end_col));
    }
    return bad;
}

static json_t *note_json(const tctl_error *err, uint32_t i)
{
    json_t *note = json_object();
    int bad = !note;
    bad = bad || set_place(note, err->note_locs[i]);
    bad = bad || json_object_set_new(note, "message", json_words(err->notes[i]));
    if (bad) {
        json_decref(note);
        return NULL;
    }
    return note;
}

static json_t *error_json(const tctl_error *err)
{
    json_t *object = json_object(), *notes = json_array();
    int bad = !object || !notes;
    bad = bad || set_place(object, err->loc);
    bad = bad || json_object_set_new(object, "message", json_words(err->message));
    for (uint32_t i = 0; !bad && i < err->n_notes; i++)
        bad = json_array_append_new(notes, note_json(err, i));
    bad = bad || json_object_set(object, "notes", notes);
    if (err->hint[0])
        bad = bad || json_object_set_new(object, "hint", json_words(err->hint));
    json_decref(notes);
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}

json_t *tctl_diags_json(tctl_diags *diags)
{
    sort(diags);
    json_t *object = json_object(), *errors = json_array();
    int bad = !object || !errors;
    for (size_t i = 0; !bad && i < diags->n; i++)
        bad = json_array_append_new(errors, error_json(&diags->errors[i]));
    bad = bad || json_object_set(object, "errors", errors);
    bad = bad || json_object_set_new(object, "dropped", json_integer((json_int_t)diags->n_dropped));
    json_decref(errors);
    if (bad) {
        json_decref(object);
        return NULL;
    }
    return object;
}
