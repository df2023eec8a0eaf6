/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a spec as Markdown. docs/spec.md holds this text; a test compares the two. */
#include <string.h>

#include "config/scalar.h"
#include "config/spec_read.h"

/* Appends a text as one cell: a '|' would end it. */
static void add_cell(tctl_buf *ret, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            tctl_buf_add_char(ret, '\\');
        tctl_buf_add_char(ret, *text);
    }
}

static void add_type(tctl_buf *ret, tctl_arena *arena, const tctl_option *option)
{
    const char *section = option->choices ? option->choices[0] : "";
    switch (option->type) {
    case TCTL_SECTION:
        tctl_buf_add_format(ret, "[mapping](#%s)", section);
        return;
    case TCTL_SECTION_LIST:
        tctl_buf_add_format(ret, "list of [mappings](#%s)", section);
        return;
    case TCTL_SECTION_TEXTS:
        tctl_buf_add_format(ret, "a text or a [mapping](#%s), or a list of them", section);
        return;
    case TCTL_SECTION_MAP:
        tctl_buf_add_format(ret, "names, each with a [mapping](#%s)", section);
        return;
    case TCTL_PLUGIN:
        for (size_t i = 0; option->choices && option->choices[i]; i++)
            tctl_buf_add_format(ret, "%s`%s`", i ? " or " : "plugin with ", option->choices[i]);
        return;
    default:
        break;
    }
    const char *wanted = tctl_scalar_wanted(arena, option);
    add_cell(ret, wanted ? wanted : "");
    if (option->flags & TCTL_OPT_REPEATED)
        tctl_buf_add_text(ret, ", or a list of them");
}

static void add_option(tctl_buf *ret, tctl_arena *arena, const tctl_option *option)
{
    tctl_buf_add_format(ret, "| `%s` | ", option->name);
    add_type(ret, arena, option);
    if (option->flags & TCTL_OPT_REQUIRED)
        tctl_buf_add_text(ret, " | required | ");
    else if (option->default_yaml)
        tctl_buf_add_format(ret, " | `%s` | ", option->default_yaml);
    else
        tctl_buf_add_text(ret, " | | ");
    tctl_buf_add_text(ret, option->flags & TCTL_OPT_SEMANTIC ? "yes | " : "no | ");
    if (option->unit)
        tctl_buf_add_format(ret, "%s; ", option->unit);
    add_cell(ret, option->doc);
    tctl_buf_add_text(ret, " |\n");
}

void tctl_spec_reference(tctl_buf *ret)
{
    uint32_t n;
    const tctl_spec_section *sections = tctl_spec_sections(&n);
    tctl_arena *arena = tctl_arena_create();
    for (uint32_t i = 0; arena && i < n; i++) {
        const tctl_spec_section *section = &sections[i];
        tctl_buf_add_format(ret, "%s### %s\n\n%c%s.\n\n", i ? "\n" : "",
                            *section->name ? section->name : "Top level", section->doc[0] - 'a' + 'A',
                            section->doc + 1);
        tctl_buf_add_text(ret, "| key | value | default | in the recipe | |\n|---|---|---|---|---|\n");
        for (uint32_t k = 0; k < section->n_options; k++)
            add_option(ret, arena, &section->options[k]);
    }
    if (!arena)
        ret->broken = true;
    tctl_arena_destroy(arena);
}
