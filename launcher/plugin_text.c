/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin_text.h. Names and types are ASCII by the rules of option tables, so bytes are columns. */
#include "launcher/plugin_text.h"

#include <stdio.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

/* ---- the table of options ---------------------------------------------------------------------------- */

enum { NAME, TYPE, RANGE, DEFAULT, EFFECT, DOC, N_COLUMNS };

typedef struct row {
    tctl_buf cells[N_COLUMNS];
} row;

static void fill_row(const json_t *option, row *r)
{
    const char *value = text_of(option, "default"), *unit = text_of(option, "unit");
    memset(r, 0, sizeof *r);
    for (int i = 0; i < N_COLUMNS; i++)
        r->cells[i] = (tctl_buf)TCTL_BUF_INIT;
    tctl_buf_add_text(&r->cells[NAME], text_of(option, "name"));
    tctl_buf_add_format(&r->cells[TYPE], "%s%s", text_of(option, "type"),
                        json_is_true(json_object_get(option, "repeated")) ? " list" : "");
    tctl_buf_add_text(&r->cells[RANGE], text_of(option, "range"));
    if (json_is_true(json_object_get(option, "required")))
        tctl_buf_add_text(&r->cells[DEFAULT], "(required)");
    else if (*value)
        tctl_buf_add_format(&r->cells[DEFAULT], "default %s", value);
    else
        tctl_buf_add_text(&r->cells[DEFAULT], "(optional)");
    tctl_buf_add_text(&r->cells[EFFECT], json_is_true(json_object_get(option, "changes_results"))
                                             ? "[changes results]"
                                             : "[no effect on results]");
    tctl_buf_add_text(&r->cells[DOC], text_of(option, "doc"));
    if (*unit)
        tctl_buf_add_format(&r->cells[DOC], ", in %s", unit);
}

static void measure(const json_t *options, size_t widths[N_COLUMNS])
{
    size_t i;
    const json_t *option;
    json_array_foreach(options, i, option)
    {
        row r;
        fill_row(option, &r);
        for (int c = 0; c < N_COLUMNS; c++) {
            widths[c] = r.cells[c].size > widths[c] ? r.cells[c].size : widths[c];
            tctl_buf_release(&r.cells[c]);
        }
    }
}

static void add_options(const json_t *options, const char *indent, tctl_buf *ret)
{
    size_t widths[N_COLUMNS] = {0}, i;
    const json_t *option;
    measure(options, widths);
    json_array_foreach(options, i, option)
    {
        row r;
        fill_row(option, &r);
        tctl_buf_add_text(ret, indent);
        for (int c = 0; c < N_COLUMNS; c++) {
            const char *cell = tctl_buf_text(&r.cells[c]);
            if (c == DOC)
                tctl_buf_add_format(ret, "%s\n", cell ? cell : "");
            else if (widths[c])
                tctl_buf_add_format(ret, "%-*s  ", (int)widths[c], cell ? cell : "");
            tctl_buf_release(&r.cells[c]);
        }
    }
}

/* ---- a plugin ---------------------------------------------------------------------------------------- */

static void add_list(const json_t *list, const char *separator, tctl_buf *ret)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item)
        tctl_buf_add_format(ret, "%s%s", i ? separator : "", json_string_value(item));
}

void tctl_plugin_provides(const json_t *plugin, tctl_buf *ret)
{
    static const char prefix[] = "trainctl.";
    size_t i;
    const json_t *item;
    json_array_foreach(json_object_get(plugin, "provides"), i, item)
    {
        const char *id = json_string_value(item);
        if (strncmp(id, prefix, sizeof prefix - 1) == 0)
            id += sizeof prefix - 1;
        tctl_buf_add_format(ret, "%s%.*s", i ? ", " : "", (int)strcspn(id, "/"), id);
    }
}

static void add_head(const json_t *p, tctl_buf *ret)
{
    bool same = strcmp(text_of(p, "bits"), "same") == 0;
    tctl_buf_add_format(ret, "%s %s  (%s)  ABI %s\n  %s\n\n", text_of(p, "name"), text_of(p, "version"),
                        text_of(p, "license"), text_of(p, "abi"), text_of(p, "summary"));
    tctl_buf_add_format(ret, "effect on bits  %s\n",
                        same ? "none: it may be added or left out freely"
                             : "part of the recipe: results depend on it");
    tctl_buf_add_text(ret, "same bits for   ");
    if (json_array_size(json_object_get(p, "claims")))
        add_list(json_object_get(p, "claims"), ", ", ret);
    else
        tctl_buf_add_text(ret, "nothing is claimed");
    tctl_buf_add_format(ret, "\npath            %s\nsha256          %s\n", text_of(p, "path"),
                        text_of(p, "sha256"));
    if (*text_of(p, "build_id"))
        tctl_buf_add_format(ret, "build-id        %s\n", text_of(p, "build_id"));
    tctl_buf_add_text(ret, "\nprovides\n  ");
    add_list(json_object_get(p, "provides"), "\n  ", ret);
    tctl_buf_add_text(ret, "\n");
}

static void add_conduct(const json_t *p, tctl_buf *ret)
{
    size_t i;
    const json_t *item;
    if (json_array_size(json_object_get(p, "forbidden")))
        tctl_buf_add_text(ret, "\nimports that a plugin should not need\n");
    json_array_foreach(json_object_get(p, "forbidden"), i, item)
        tctl_buf_add_format(ret, "  %-16s  %s\n", text_of(item, "symbol"), text_of(item, "why"));
    if (json_array_size(json_object_get(p, "exports"))) {
        tctl_buf_add_text(ret, "\nexports besides its descriptor (build it with -fvisibility=hidden)\n  ");
        add_list(json_object_get(p, "exports"), "\n  ", ret);
        tctl_buf_add_text(ret, "\n");
    }
}

void tctl_plugin_text(const json_t *plugin, tctl_buf *ret)
{
    size_t i;
    const json_t *op;
    add_head(plugin, ret);
    tctl_buf_add_text(ret, "\noptions\n");
    if (json_array_size(json_object_get(plugin, "options")))
        add_options(json_object_get(plugin, "options"), "  ", ret);
    else
        tctl_buf_add_text(ret, "  none\n");
    if (json_array_size(json_object_get(plugin, "operators")))
        tctl_buf_add_text(ret, "\noperators\n");
    json_array_foreach(json_object_get(plugin, "operators"), i, op)
    {
        tctl_buf_add_format(ret, "  %s: %s\n", text_of(op, "name"), text_of(op, "doc"));
        add_options(json_object_get(op, "options"), "      ", ret);
    }
    add_conduct(plugin, ret);
}

/* ---- a stub ------------------------------------------------------------------------------------------ */

static void add_stub_option(const json_t *option, tctl_buf *ret)
{
    const char *value = text_of(option, "default"), *range = text_of(option, "range");
    bool required = json_is_true(json_object_get(option, "required"));
    tctl_buf line = TCTL_BUF_INIT;
    if (required)
        tctl_buf_add_format(&line, "%s: ...", text_of(option, "name"));
    else
        tctl_buf_add_format(&line, "# %s:%s%s", text_of(option, "name"), *value ? " " : "", value);
    const char *text = tctl_buf_text(&line);
    tctl_buf_add_format(ret, "%-28s # %s%s%s: %s\n", text ? text : "", text_of(option, "type"),
                        *range ? " " : "", range, text_of(option, "doc"));
    tctl_buf_release(&line);
}

void tctl_plugin_yaml(const json_t *plugin, tctl_buf *ret)
{
    size_t i;
    const json_t *option;
    tctl_buf_add_format(ret, "# %s\nuse: %s\n", text_of(plugin, "summary"), text_of(plugin, "use"));
    json_array_foreach(json_object_get(plugin, "options"), i, option) add_stub_option(option, ret);
}
