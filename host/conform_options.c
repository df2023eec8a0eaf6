/* SPDX-License-Identifier: Apache-2.0 */
/* See conform_options.h. */
#include "host/conform_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/num.h"

#define MAX_VALUES 16
#define LARGE      64 /* "much" for an integer without an upper bound */

typedef struct values {
    tctl_arena *arena;
    const tctl_option *option;
    const char **items;
    uint32_t n;
    bool lost;
} values;

static void add(values *v, const char *text)
{
    if (v->n == MAX_VALUES)
        return;
    /* A list of one is the simplest value of a REPEATED option; one scalar is read as that. */
    const char *item = tctl_arena_format(v->arena, "%s=%s", v->option->name, text);
    v->lost |= !item;
    v->items[v->n++] = item;
}

static void add_int(values *v, int64_t value, const char *unit)
{
    const tctl_option *o = v->option;
    bool bounded = o->int_min || o->int_max;
    if (bounded && (value < o->int_min || value > o->int_max))
        return;
    char text[128];
    snprintf(text, sizeof text, "%" PRId64 "%s%s", value, unit ? " " : "", unit ? unit : "");
    add(v, text);
}

static void add_sizes(values *v)
{
    static const struct {
        int64_t bytes;
        const char *text;
    } usual[] = {{0, "0"}, {4096, "4 KiB"}, {1048576, "1 MiB"}, {67108864, "64 MiB"}};
    const tctl_option *o = v->option;
    bool bounded = o->int_min || o->int_max;
    for (size_t i = 0; i < TCTL_COUNT_OF(usual); i++) {
        if (!bounded || (usual[i].bytes >= o->int_min && usual[i].bytes <= o->int_max))
            add(v, usual[i].text);
    }
}

static void add_ints(values *v)
{
    const tctl_option *o = v->option;
    bool bounded = o->int_min || o->int_max;
    static const int64_t usual[] = {0, 1, 2, 7};
    for (size_t i = 0; i < TCTL_COUNT_OF(usual); i++)
        add_int(v, usual[i], NULL);
    if (bounded && o->int_min > 7)
        add_int(v, o->int_min, NULL);
    /* A huge bound is a bound on paper; trying it would only show that memory ends. */
    add_int(v, bounded && o->int_max < LARGE ? o->int_max : LARGE, NULL);
}

static void add_reals(values *v)
{
    const tctl_option *o = v->option;
    bool bounded = fpclassify(o->real_min) != FP_ZERO || fpclassify(o->real_max) != FP_ZERO;
    double low = bounded ? o->real_min : 0, high = bounded ? o->real_max : 1;
    const double tried[] = {low, low + (high - low) / 2, high};
    for (size_t i = 0; i < TCTL_COUNT_OF(tried); i++) {
        char text[TCTL_REAL_TEXT + 4];
        size_t n = tctl_format_real(tried[i], text);
        if (o->type == TCTL_DURATION)
            snprintf(text + n, sizeof text - n, " s");
        add(v, text);
    }
}

tctl_status tctl_conform_values(tctl_arena *arena, const tctl_plugin *plugin, uint32_t i,
                                const char *const **ret, uint32_t *ret_n, tctl_error *err)
{
    const void *at = (const char *)plugin->options + (size_t)i * plugin->option_size;
    const tctl_option *o = at;
    values v = {
        .arena = arena, .option = o, .items = tctl_arena_take_array(arena, MAX_VALUES, sizeof *v.items)};
    if (!v.items)
        return tctl_fail_memory(err, MAX_VALUES * sizeof *v.items);
    if (!(o->flags & TCTL_OPT_SEMANTIC)) {
        if (o->type == TCTL_BOOL) {
            add(&v, "true");
            add(&v, "false");
        } else if (o->type == TCTL_INT) {
            add_ints(&v);
        } else if (o->type == TCTL_SIZE) {
            add_sizes(&v);
        } else if (o->type == TCTL_COUNT) {
            for (uint32_t k = 0; o->choices[k]; k++)
                add_int(&v, k + 1, o->choices[k]);
        } else if (o->type == TCTL_REAL || o->type == TCTL_DURATION) {
            add_reals(&v);
        } else if (o->type == TCTL_ENUM) {
            for (uint32_t k = 0; o->choices[k]; k++)
                add(&v, o->choices[k]);
        }
    }
    if (v.lost)
        return tctl_fail_memory(err, 0);
    *ret = v.items;
    *ret_n = v.n;
    return TCTL_OK;
}
