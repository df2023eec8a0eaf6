/* SPDX-License-Identifier: Apache-2.0 */
/* See element.h. */
#include "manifest/content/element.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/num.h"

typedef struct float_type {
    const char *name;
    size_t bytes;
    unsigned mantissa; /* bits */
} float_type;

static const float_type floats[] = {{"f16", 2, 10}, {"bf16", 2, 7}, {"f32", 4, 23}, {"f64", 8, 52}};

static const float_type *find_float(const char *dtype, size_t size)
{
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        if (strcmp(floats[i].name, dtype) == 0 && floats[i].bytes == size)
            return &floats[i];
    }
    return NULL;
}

static uint64_t get(const void *little_endian, size_t size)
{
    unsigned char bytes[8] = {0};
    memcpy(bytes, little_endian, size < sizeof bytes ? size : sizeof bytes);
    return tctl_get_u64(bytes);
}

void tctl_element_bits(const void *little_endian, size_t size, tctl_buf *ret)
{
    const unsigned char *bytes = little_endian;
    for (size_t i = 0; i < size && i < 16; i++)
        tctl_buf_add_format(ret, "%02x", (unsigned)bytes[size - 1 - i]);
    if (size > 16)
        tctl_buf_add_text(ret, "...");
}

static uint64_t magnitude_mask(const float_type *t)
{
    return (UINT64_C(1) << (8 * t->bytes - 1)) - 1;
}

static bool is_finite(const float_type *t, uint64_t bits)
{
    uint64_t exponent = magnitude_mask(t) & ~((UINT64_C(1) << t->mantissa) - 1);
    return (bits & exponent) != exponent;
}

static double real_of(const float_type *t, uint64_t bits)
{
    double real;
    if (t->bytes == 8) {
        memcpy(&real, &bits, sizeof real);
        return real;
    }
    unsigned exponent_bits = (unsigned)(8 * t->bytes) - 1 - t->mantissa;
    uint64_t magnitude = bits & magnitude_mask(t), fraction = magnitude & ((UINT64_C(1) << t->mantissa) - 1);
    int exponent = (int)(magnitude >> t->mantissa), bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent != 0)
        fraction |= UINT64_C(1) << t->mantissa;
    real = ldexp((double)fraction, (exponent == 0 ? 1 : exponent) - bias - (int)t->mantissa);
    return bits > magnitude ? -real : real;
}

static bool add_float(const float_type *t, uint64_t bits, tctl_buf *ret)
{
    char text[TCTL_REAL_TEXT];
    uint64_t fraction = bits & ((UINT64_C(1) << t->mantissa) - 1);
    bool negative = bits > magnitude_mask(t);
    if (!is_finite(t, bits)) {
        tctl_buf_add_text(ret, fraction != 0 ? "NaN" : negative ? "-Infinity" : "Infinity");
        return true;
    }
    tctl_format_real(real_of(t, bits), text);
    tctl_buf_add_text(ret, negative && (bits & magnitude_mask(t)) == 0 ? "-0" : text);
    return true;
}

bool tctl_element_value(const char *dtype, const void *little_endian, size_t size, tctl_buf *ret)
{
    const float_type *t = find_float(dtype, size);
    uint64_t bits = get(little_endian, size);
    bool is_signed = dtype[0] == 'i', whole = size <= 8 && (is_signed || dtype[0] == 'u');
    if (t != NULL)
        return add_float(t, bits, ret);
    if (strcmp(dtype, "bool") == 0) {
        tctl_buf_add_text(ret, bits != 0 ? "true" : "false");
        return true;
    }
    if (!whole || size == 0 || dtype[1] < '0' || dtype[1] > '9')
        return false;
    if (is_signed && size < 8 && (bits >> (8 * size - 1) & 1) != 0)
        bits |= ~UINT64_C(0) << (8 * size);
    if (is_signed)
        tctl_buf_add_format(ret, "%" PRId64, (int64_t)bits);
    else
        tctl_buf_add_format(ret, "%" PRIu64, bits);
    return true;
}

bool tctl_element_ulps(const char *dtype, const void *a, const void *b, size_t size, uint64_t *ret)
{
    const float_type *t = find_float(dtype, size);
    uint64_t x = get(a, size), y = get(b, size);
    if (t == NULL || !is_finite(t, x) || !is_finite(t, y))
        return false;
    uint64_t mask = magnitude_mask(t), m = x & mask, n = y & mask;
    if ((x > mask) != (y > mask))
        *ret = m + n; /* across zero */
    else
        *ret = m > n ? m - n : n - m;
    return true;
}
