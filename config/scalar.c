/* SPDX-License-Identifier: Apache-2.0 */
/* See scalar.h. Units and what options want in words are in units.c. */
#include "config/scalar.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "base/size.h"
#include "config/units.h"

typedef struct reading {
    tctl_arena *arena;
    const char *folder;
    const tctl_option *option;
    const tctl_yaml_node *node;
    tctl_value *value;
    tctl_error *err;
} reading;

/* "'lr' must be a number of at least 0, got 'fast'", with the option's doc as the hint. */
static tctl_status refuse(const reading *r)
{
    const char *wanted = tctl_scalar_wanted(r->arena, r->option);
    const char *shown = tctl_yaml_show(r->arena, r->node->text, r->node->length);
    if (!wanted || !shown)
        return tctl_fail_memory(r->err, r->node->length);
    tctl_fail_at(r->err, TCTL_ESPEC, r->node->loc, "'%s' must be %s, got '%s'", r->option->name, wanted,
                 shown);
    if (r->option->doc)
        tctl_hint(r->err, "%s: %s", r->option->name, r->option->doc);
    return TCTL_ESPEC;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        if (strcmp(text, *words) == 0)
            return true;
    }
    return false;
}

static tctl_status read_bool(const reading *r)
{
    static const char *const yes[] = {"yes", "Yes", "YES", "on",   "On",   "ON",
                                      "y",   "Y",   "1",   "True", "TRUE", NULL};
    static const char *const no[] = {"no", "No", "NO", "off",   "Off",   "OFF",
                                     "n",  "N",  "0",  "False", "FALSE", NULL};
    const char *text = r->node->text, *name = r->option->name;
    bool is_true = strcmp(text, "true") == 0, is_false = strcmp(text, "false") == 0;
    if ((is_true || is_false) && !r->node->quoted) {
        r->value->i = is_true;
        return TCTL_OK;
    }
    tctl_status status = refuse(r);
    if (is_true || is_false)
        tctl_hint(r->err, "remove the quotes");
    else if (is_one_of(text, yes))
        tctl_hint(r->err, "write '%s: true'", name);
    else if (is_one_of(text, no))
        tctl_hint(r->err, "write '%s: false'", name);
    return status;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The text without the characters in `drop`, if what is left is an integer. */
static bool integer_without(const char *text, const char *drop, int64_t *ret)
{
    char kept[32];
    size_t n = 0;
    for (; *text; text++) {
        if (strchr(drop, *text))
            continue;
        if (n + 1 >= sizeof kept)
            return false;
        kept[n++] = *text;
    }
    return tctl_parse_int(kept, n, ret);
}

/* Says why a text that looks like an integer is not read as one. */
static void hint_int(const reading *r)
{
    const char *text = r->node->text;
    const char *digits = text + (*text == '-' || *text == '+');
    int64_t integer;
    double real;
    if (r->node->quoted && tctl_parse_int(text, r->node->length, &integer)) {
        tctl_hint(r->err, "remove the quotes");
    } else if (digits[0] == '0' && is_digit(digits[1])) {
        const char *significant = digits + strspn(digits, "0");
        if (strspn(digits, "0123456789") == strlen(digits))
            tctl_hint(r->err, "write %s%.30s: some readers take a leading zero for octal",
                      *text == '-' ? "-" : "", *significant ? significant : "0");
    } else if (digits[0] == '0' && (digits[1] == 'o' || digits[1] == 'b')) {
        tctl_hint(r->err, "write it in decimal, or in hexadecimal as 0x1f");
    } else if (strpbrk(text, "_,'") && integer_without(text, "_,'", &integer)) {
        tctl_hint(r->err, "write %" PRId64 ": digits are not grouped", integer);
    } else if (tctl_parse_real(text, r->node->length, &real) && real == floor(real) && fabs(real) < 9e15) {
        tctl_hint(r->err, "write %.0f", real);
    }
}

static bool int_in_range(const tctl_option *option, int64_t value, int64_t floor_if_unbounded)
{
    if (option->int_min == 0 && option->int_max == 0)
        return value >= floor_if_unbounded;
    return value >= option->int_min && value <= option->int_max;
}

static bool real_in_range(const tctl_option *option, double value, double floor_if_unbounded)
{
    if (option->real_min == option->real_max && option->real_min == 0)
        return value >= floor_if_unbounded;
    return value >= option->real_min && value <= option->real_max;
}

static tctl_status read_int(const reading *r)
{
    bool good = !r->node->quoted && tctl_parse_int(r->node->text, r->node->length, &r->value->i);
    if (good && int_in_range(r->option, r->value->i, INT64_MIN))
        return TCTL_OK;
    tctl_status status = refuse(r);
    if (!good)
        hint_int(r);
    return status;
}

static void hint_real(const reading *r)
{
    const char *text = r->node->text;
    size_t length = r->node->length;
    const char *comma = strchr(text, ',');
    double real;
    if (r->node->quoted && tctl_parse_real(text, length, &real)) {
        tctl_hint(r->err, "remove the quotes");
    } else if (length > 1 && text[length - 1] == '%' && tctl_parse_real(text, length - 1, &real)) {
        char shown[TCTL_REAL_TEXT];
        tctl_format_real(real / 100, shown);
        tctl_hint(r->err, "write %s", shown);
    } else if (comma && comma > text && comma[1] && !strchr(comma + 1, ',')) {
        tctl_hint(r->err, "the decimal sign is a point: %.*s.%.20s",
                  (int)(comma - text > 20 ? 20 : comma - text), text, comma + 1);
    } else if (strcasestr(text, "inf") || strcasestr(text, "nan")) {
        tctl_hint(r->err, "the number must be finite");
    } else if (strchr(text, '_')) {
        tctl_hint(r->err, "digits are not grouped with '_'");
    }
}

static tctl_status read_real(const reading *r)
{
    bool good = !r->node->quoted && tctl_parse_real(r->node->text, r->node->length, &r->value->r);
    if (good && real_in_range(r->option, r->value->r, -HUGE_VAL))
        return TCTL_OK;
    tctl_status status = refuse(r);
    if (!good)
        hint_real(r);
    return status;
}

static size_t length_of(const char *const *words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    return n;
}

static tctl_status read_enum(const reading *r)
{
    size_t n = length_of(r->option->choices);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(r->option->choices[i], r->node->text) == 0) {
            r->value->text = r->option->choices[i];
            return TCTL_OK;
        }
    }
    tctl_status status = refuse(r);
    const char *near = tctl_suggest(r->node->text, r->option->choices, n);
    if (near)
        tctl_hint(r->err, "did you mean '%s'?", near);
    return status;
}

static tctl_status read_path(const reading *r)
{
    const char *text = r->node->text;
    tctl_status status;
    if (text[0] == '\0')
        return refuse(r);
    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0')) {
        status = refuse(r);
        tctl_hint(r->err, "'~' is not expanded: write the whole path, or one relative to the spec");
        return status;
    }
    r->value->written = text;
    r->value->text = tctl_path_join(r->arena, r->folder ? r->folder : "", text);
    return r->value->text ? TCTL_OK : tctl_fail_memory(r->err, r->node->length);
}

/* Splits "200 steps" or "200steps" into number and unit; the unit may be empty. */
static void split(const tctl_yaml_node *node, size_t *ret_number, const char **ret_unit)
{
    const char *text = node->text;
    size_t number = strcspn(text, " \t");
    if (text[number] == '\0') {
        number = 0;
        while (text[number] && !((text[number] | 32) >= 'a' && (text[number] | 32) <= 'z'))
            number++;
    }
    const char *unit = text + number;
    *ret_number = number;
    *ret_unit = unit + strspn(unit, " \t");
}

static tctl_status read_count(const reading *r)
{
    size_t number, n = length_of(r->option->choices);
    const char *unit;
    split(r->node, &number, &unit);
    bool good = tctl_parse_int(r->node->text, number, &r->value->i);
    for (size_t i = 0; good && i < n; i++) {
        if (tctl_same_unit(unit, strlen(unit), r->option->choices[i]) &&
            int_in_range(r->option, r->value->i, 0)) {
            r->value->text = r->option->choices[i];
            return TCTL_OK;
        }
    }
    tctl_status status = refuse(r);
    const char *near = tctl_suggest(unit, r->option->choices, n);
    if (good && *unit == '\0' && n > 0)
        tctl_hint(r->err, "the unit is missing: write '%" PRId64 " %s'", r->value->i, r->option->choices[0]);
    else if (good && near && !tctl_same_unit(unit, strlen(unit), near))
        tctl_hint(r->err, "did you mean '%" PRId64 " %s'?", r->value->i, near);
    return status;
}

static tctl_status read_duration(const reading *r)
{
    size_t number;
    const char *unit;
    double amount;
    split(r->node, &number, &unit);
    bool good = tctl_parse_real(r->node->text, number, &amount);
    if (good && tctl_duration_in(amount, unit, &r->value->r) && real_in_range(r->option, r->value->r, 0))
        return TCTL_OK;
    tctl_status status = refuse(r);
    if (good && *unit == '\0')
        tctl_hint(r->err, "the unit is missing: write '%.20s s'; units are ms, s, min, h, d", r->node->text);
    else if (good && !tctl_duration_in(amount, unit, &amount))
        tctl_hint(r->err, "units are ms, s, min, h, d");
    return status;
}

static tctl_status read_size(const reading *r)
{
    size_t number;
    const char *unit;
    double amount;
    split(r->node, &number, &unit);
    bool good = tctl_parse_real(r->node->text, number, &amount) && amount >= 0;
    bool known = good && tctl_size_in(r->node->text, number, unit, &r->value->i);
    if (known && int_in_range(r->option, r->value->i, 0))
        return TCTL_OK;
    tctl_status status = refuse(r);
    const char *near = tctl_size_unit_near(unit);
    if (good && *unit == '\0')
        tctl_hint(r->err, "the unit is missing: write '%.20s MiB' or '%.20s B'", r->node->text,
                  r->node->text);
    else if (good && !known && near)
        tctl_hint(r->err, "did you mean '%.*s %s'?", (int)(number > 20 ? 20 : number), r->node->text, near);
    else if (good && !known)
        tctl_hint(r->err, "units are B, KiB, MiB, GiB, TiB and kB, MB, GB, TB");
    return status;
}

/* `lr:` with nothing behind it. */
static tctl_status refuse_empty(const reading *r)
{
    tctl_fail_at(r->err, TCTL_ESPEC, r->node->loc, "'%s' has no value", r->option->name);
    const char *wanted = tctl_scalar_wanted(r->arena, r->option);
    tctl_hint(r->err, "write %s%s", wanted ? wanted : "a value",
              r->option->flags & TCTL_OPT_REQUIRED ? "" : ", or leave the key out");
    return TCTL_ESPEC;
}

tctl_status tctl_scalar_read(tctl_arena *arena, const char *folder, const tctl_option *option,
                             const tctl_yaml_node *node, tctl_value *ret, tctl_error *err)
{
    reading r = {arena, folder, option, node, ret, err};
    if (node->length == 0 && !node->quoted)
        return refuse_empty(&r);
    switch (option->type) {
    case TCTL_BOOL:
        return read_bool(&r);
    case TCTL_INT:
        return read_int(&r);
    case TCTL_REAL:
        return read_real(&r);
    case TCTL_ENUM:
        return read_enum(&r);
    case TCTL_PATH:
        return read_path(&r);
    case TCTL_COUNT:
        return read_count(&r);
    case TCTL_DURATION:
        return read_duration(&r);
    case TCTL_SIZE:
        return read_size(&r);
    case TCTL_TEXT:
        ret->text = node->text;
        return TCTL_OK;
    default:
        return tctl_fail_at(err, TCTL_EPLUGIN, node->loc,
                            "'%s' has a type (%" PRId32 ") that this program does "
                            "not know",
                            option->name, option->type);
    }
}
