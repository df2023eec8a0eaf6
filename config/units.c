/* SPDX-License-Identifier: Apache-2.0 */
/* See units.h and scalar.h. */
#include "config/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/size.h"
#include "config/scalar.h"

bool tctl_same_unit(const char *a, size_t length_a, const char *b)
{
    size_t length_b = strlen(b);
    if (length_a > 1 && a[length_a - 1] == 's')
        length_a--;
    if (length_b > 1 && b[length_b - 1] == 's')
        length_b--;
    return length_a > 0 && length_a == length_b && memcmp(a, b, length_a) == 0;
}

bool tctl_duration_in(double amount, const char *unit, double *ret)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"s", 1},    {"sec", 1},     {"second", 1}, {"min", 60},   {"minute", 60},
                 {"h", 3600}, {"hour", 3600}, {"d", 86400},  {"day", 86400}};
    size_t length = strlen(unit);
    if (strcmp(unit, "ms") == 0) {
        *ret = amount / 1000;
        return true;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double seconds = amount * units[i].seconds;
        if (tctl_same_unit(unit, length, units[i].unit) && isfinite(seconds)) {
            *ret = seconds;
            return true;
        }
    }
    return false;
}

static const struct {
    const char *unit;
    uint64_t bytes;
} size_units[] = {
    {"TiB", (uint64_t)1 << 40},
    {"GiB", (uint64_t)1 << 30},
    {"MiB", (uint64_t)1 << 20},
    {"KiB", 1024},
    {"B", 1},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"kB", 1000},
};

enum { N_SIZE_UNITS = sizeof size_units / sizeof size_units[0], N_EXACT_UNITS = 5 };

bool tctl_size_in(const char *number, size_t length, const char *unit, int64_t *ret)
{
    uint64_t bytes = 0, count = 0;
    double real = 0;
    for (size_t i = 0; i < N_SIZE_UNITS; i++) {
        if (strcmp(unit, size_units[i].unit) == 0)
            bytes = size_units[i].bytes;
    }
    if (tctl_parse_uint(number, length, &count)) {
        size_t product;
        if (*unit == '\0' && count == 0)
            bytes = 1;
        if (bytes == 0 || !tctl_mul_size(count, bytes, &product) || product > INT64_MAX)
            return false;
        *ret = (int64_t)product;
        return true;
    }
    if (bytes == 0 || !tctl_parse_real(number, length, &real))
        return false;
    double product = real * (double)bytes;
    if (product < 0 || product >= 9223372036854775808.0 || product != floor(product))
        return false;
    *ret = (int64_t)product;
    return true;
}

const char *tctl_size_unit_near(const char *unit)
{
    if (*unit == '\0' || strlen(unit) > 3)
        return NULL;
    for (size_t i = 0; i < N_SIZE_UNITS; i++) {
        const char *known = size_units[i].unit;
        if (strcmp(known, unit) == 0)
            return NULL;
    }
    for (size_t i = 0; i < N_SIZE_UNITS; i++) {
        const char *known = size_units[i].unit;
        if (strcasecmp(known, unit) == 0 || (unit[1] == '\0' && strncasecmp(known, unit, 1) == 0))
            return known;
    }
    return NULL;
}

void tctl_size_text(int64_t bytes, char out[32])
{
    for (size_t i = 0; i < N_EXACT_UNITS; i++) {
        int64_t unit = (int64_t)size_units[i].bytes;
        if (bytes >= unit && bytes % unit == 0) {
            snprintf(out, 32, "%" PRId64 " %s", bytes / unit, size_units[i].unit);
            return;
        }
    }
    snprintf(out, 32, "%" PRId64 " B", bytes);
}

/* ---- what an option wants, in words --------------------------------------------------------------- */

/* " from 1 to 9", " of at least 1", " of at most 9" or nothing, of two bounds as texts; NULL: no bound. */
static void add_range(tctl_buf *buf, const char *low, const char *high)
{
    if (low && high)
        tctl_buf_add_format(buf, " from %s to %s", low, high);
    else if (low)
        tctl_buf_add_format(buf, " of at least %s", low);
    else if (high)
        tctl_buf_add_format(buf, " of at most %s", high);
}

static void add_int_range(tctl_buf *buf, const tctl_option *option)
{
    char low[32], high[32];
    if (option->int_min == 0 && option->int_max == 0)
        return;
    if (option->type == TCTL_SIZE) {
        tctl_size_text(option->int_min, low);
        tctl_size_text(option->int_max, high);
    } else {
        snprintf(low, sizeof low, "%" PRId64, option->int_min);
        snprintf(high, sizeof high, "%" PRId64, option->int_max);
    }
    add_range(buf, option->int_min == INT64_MIN ? NULL : low, option->int_max == INT64_MAX ? NULL : high);
}

static void add_real_range(tctl_buf *buf, const tctl_option *option)
{
    char low[TCTL_REAL_TEXT + 2] = "", high[TCTL_REAL_TEXT + 2] = "";
    double min = option->real_min, max = option->real_max;
    if (min == max && min == 0)
        return;
    const char *unit = option->type == TCTL_DURATION ? " s" : "";
    /* A bound at the end of the doubles is no bound for a person. */
    bool has_low = isfinite(min) && fabs(min) < 1e300, has_high = isfinite(max) && fabs(max) < 1e300;
    if (has_low)
        memcpy(low + tctl_format_real(min, low), unit, strlen(unit) + 1);
    if (has_high)
        memcpy(high + tctl_format_real(max, high), unit, strlen(unit) + 1);
    add_range(buf, has_low ? low : NULL, has_high ? high : NULL);
}

static void add_choices(tctl_buf *buf, const char *const *choices, const char *last)
{
    for (size_t i = 0; choices && choices[i]; i++) {
        if (i > 0)
            tctl_buf_add_text(buf, choices[i + 1] ? ", " : last);
        tctl_buf_add_text(buf, choices[i]);
    }
}

static void add_wanted(tctl_buf *buf, const tctl_option *option)
{
    switch (option->type) {
    case TCTL_BOOL:
        tctl_buf_add_text(buf, "true or false");
        break;
    case TCTL_INT:
        tctl_buf_add_text(buf, "an integer");
        add_int_range(buf, option);
        break;
    case TCTL_REAL:
        tctl_buf_add_text(buf, "a number");
        add_real_range(buf, option);
        break;
    case TCTL_ENUM:
        tctl_buf_add_text(buf, "one of ");
        add_choices(buf, option->choices, ", ");
        break;
    case TCTL_PATH:
        tctl_buf_add_text(buf, "a path");
        break;
    case TCTL_COUNT:
        tctl_buf_add_text(buf, "a count");
        add_int_range(buf, option);
        tctl_buf_add_text(buf, " in ");
        add_choices(buf, option->choices, " or ");
        break;
    case TCTL_DURATION:
        tctl_buf_add_text(buf, "a duration like '90 s'");
        add_real_range(buf, option);
        break;
    case TCTL_SIZE:
        tctl_buf_add_text(buf, "a size like '64 MiB'");
        add_int_range(buf, option);
        break;
    case TCTL_PLUGIN:
        tctl_buf_add_text(buf, "a plugin, {use: NAME, ...}");
        break;
    default:
        tctl_buf_add_text(buf, "a text");
        break;
    }
}

const char *tctl_scalar_wanted(tctl_arena *arena, const tctl_option *option)
{
    tctl_buf buf = TCTL_BUF_INIT;
    add_wanted(&buf, option);
    const char *text = tctl_buf_text(&buf);
    const char *copy = text ? tctl_arena_copy(arena, text, buf.size) : NULL;
    tctl_buf_release(&buf);
    return copy;
}
