/* SPDX-License-Identifier: Apache-2.0 */
/* See num.h. The grammar is checked here; libc converts, in the "C" locale whatever the process has set. */
#include "base/num.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool tctl_parse_uint(const char *text, size_t length, uint64_t *ret)
{
    unsigned base = 10;
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        base = 16;
        text += 2;
        length -= 2;
    } else if (length > 1 && text[0] == '0') {
        return false;
    }
    if (length == 0)
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        int digit = base == 16 || is_digit(text[i]) ? hex_digit(text[i]) : -1;
        if (digit < 0 || value > (UINT64_MAX - (unsigned)digit) / base)
            return false;
        value = value * base + (unsigned)digit;
    }
    *ret = value;
    return true;
}

bool tctl_parse_int(const char *text, size_t length, int64_t *ret)
{
    bool negative = length > 0 && text[0] == '-';
    if (length > 0 && (text[0] == '-' || text[0] == '+')) {
        text++;
        length--;
    }
    uint64_t magnitude;
    if (!tctl_parse_uint(text, length, &magnitude) || magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

static size_t skip_digits(const char *text, size_t length, size_t i)
{
    while (i < length && is_digit(text[i]))
        i++;
    return i;
}

/* True if the text is a decimal number as a whole. */
static bool is_decimal(const char *text, size_t length)
{
    size_t i = length > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
    size_t whole = i;
    i = skip_digits(text, length, i);
    size_t digits = i - whole;
    if (i < length && text[i] == '.') {
        size_t fraction = ++i;
        i = skip_digits(text, length, i);
        digits += i - fraction;
    }
    if (digits == 0)
        return false;
    if (i < length && (text[i] == 'e' || text[i] == 'E')) {
        i++;
        if (i < length && (text[i] == '-' || text[i] == '+'))
            i++;
        size_t exponent = i;
        i = skip_digits(text, length, i);
        if (i == exponent)
            return false;
    }
    return i == length;
}

/* strtod of a checked decimal, with '.' as the point whatever LC_NUMERIC says. */
static double convert(const char *decimal)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = c ? uselocale(c) : (locale_t)0;
    double value = strtod(decimal, NULL);
    if (c) {
        uselocale(old);
        freelocale(c);
    }
    return value;
}

bool tctl_parse_real(const char *text, size_t length, double *ret)
{
    char small[64];
    if (!is_decimal(text, length))
        return false;
    char *copy = length < sizeof small ? small : malloc(length + 1);
    if (!copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    double value = convert(copy);
    if (copy != small)
        free(copy);
    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

/* value = 0.d1 d2 … dn x 10^point; digits without trailing zeros. */
typedef struct decimal {
    char digits[20];
    int n, point;
} decimal;

/* Reads printf's "d.ddde±xx" with n digits into *d. */
static void read_scientific(const char *text, decimal *d)
{
    d->n = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++) {
        if (is_digit(*p))
            d->digits[d->n++] = *p;
    }
    int64_t exponent = 0;
    if (*p == 'e')
        exponent = strtol(p + 1, NULL, 10);
    d->point = (int)exponent + 1;
    while (d->n > 1 && d->digits[d->n - 1] == '0')
        d->n--;
}

static void write_scientific(const decimal *d, char *out, size_t size)
{
    snprintf(out, size, "%c.%.*se%d", d->digits[0], d->n - 1, d->digits + 1, d->point - 1);
}

/* Adds one unit in the last of `n` digits. */
static void increment(decimal *d, int n)
{
    while (d->n < n)
        d->digits[d->n++] = '0';
    int i = n - 1;
    while (i >= 0 && d->digits[i] == '9')
        d->digits[i--] = '0';
    if (i >= 0) {
        d->digits[i]++;
    } else {
        memmove(d->digits + 1, d->digits, (size_t)n - 1);
        d->digits[0] = '1';
        d->point++;
    }
}

/*
 * The shortest digits that read back as `value` > 0. printf gives, for each length, the decimal nearest to the
 * value; just above a power of two the rounding interval is lopsided and the next decimal up can be the only
 * one of that length inside it, so that one is tried as well.
 */
static decimal shortest(double value)
{
    decimal d = {{0}, 0, 0};
    char text[40];
    for (int n = 1; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, value);
        read_scientific(text, &d);
        if (strtod(text, NULL) == value)
            return d;
        decimal up = d;
        increment(&up, n);
        write_scientific(&up, text, sizeof text);
        if (strtod(text, NULL) == value)
            return up;
    }
    return d;
}

static size_t zeros(char *out, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = '0';
    return n > 0 ? (size_t)n : 0;
}

/* ECMA-262, Number::toString, steps 5 to 10; k = d->n, n = d->point. */
static size_t layout(const decimal *d, char *out)
{
    size_t at = 0;
    if (d->n <= d->point && d->point <= 21) {
        memcpy(out, d->digits, (size_t)d->n);
        at = (size_t)d->n;
        at += zeros(out + at, d->point - d->n);
    } else if (0 < d->point && d->point <= 21) {
        at = (size_t)d->point;
        memcpy(out, d->digits, at);
        out[at++] = '.';
        memcpy(out + at, d->digits + d->point, (size_t)(d->n - d->point));
        at += (size_t)(d->n - d->point);
    } else if (-6 < d->point && d->point <= 0) {
        out[at++] = '0';
        out[at++] = '.';
        at += zeros(out + at, -d->point);
        memcpy(out + at, d->digits, (size_t)d->n);
        at += (size_t)d->n;
    } else {
        out[at++] = d->digits[0];
        if (d->n > 1) {
            out[at++] = '.';
            memcpy(out + at, d->digits + 1, (size_t)d->n - 1);
            at += (size_t)d->n - 1;
        }
        at += (size_t)snprintf(out + at, 8, "e%+d", d->point - 1);
    }
    out[at] = '\0';
    return at;
}

static size_t format_in_c_locale(double value, char *out)
{
    size_t at = 0;
    if (value == 0) {
        memcpy(out, "0", 2);
        return 1;
    }
    if (value < 0) {
        out[at++] = '-';
        value = -value;
    }
    decimal d = shortest(value);
    return at + layout(&d, out + at);
}

size_t tctl_format_real(double value, char *out)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = c ? uselocale(c) : (locale_t)0;
    size_t n = format_in_c_locale(value, out);
    if (c) {
        uselocale(old);
        freelocale(c);
    }
    return n;
}
