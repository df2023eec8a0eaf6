/* SPDX-License-Identifier: Apache-2.0 */
/* Reading tensors in the order of their shape. See array.h. */
#include "manifest/content/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool multiply(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret) && *ret <= INT64_MAX;
}

bool tctl_shape_elements(const uint64_t *shape, uint32_t rank, uint64_t *ret)
{
    uint64_t n = 1;
    bool empty = false;
    for (uint32_t i = 0; i < rank; i++)
        empty = empty || shape[i] == 0;
    for (uint32_t i = 0; i < rank && !empty; i++) {
        if (!multiply(n, shape[i], &n))
            return false;
    }
    *ret = empty ? 0 : n;
    return true;
}

static bool is_c_order(const tctl_array *t)
{
    uint64_t expected = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != expected)
            return false;
        expected *= t->shape[i];
    }
    return true;
}

/* Elements from the first to the last one in memory, both counted; there is at least one element. */
static bool span_of(const tctl_array *t, uint64_t *ret)
{
    uint64_t last = 0, reach;
    for (uint32_t i = 0; i < t->rank; i++) {
        if (t->strides == NULL)
            continue;
        if (!multiply(t->shape[i] - 1, t->strides[i], &reach) || last > INT64_MAX - reach)
            return false;
        last += reach;
    }
    *ret = t->strides == NULL ? t->n_elements : last + 1;
    return true;
}

tctl_status tctl_array_check(tctl_array *t, uint64_t limit, const char *what, tctl_error *err)
{
    uint64_t span = 0, bytes = 0;
    if (t->n_elements == 0 || (t->strides != NULL && is_c_order(t)))
        t->strides = NULL;
    if (t->n_elements == 0)
        return TCTL_OK;
    if (!span_of(t, &span) || !multiply(span, t->element_bytes, &bytes) || t->offset > limit ||
        bytes > limit - t->offset)
        return tctl_fail(err, TCTL_EFORMAT,
                         "%s reaches outside of its data: %" PRIu64 " elements of %" PRIu32
                         " bytes from byte %" PRIu64 ", of %" PRIu64 " bytes",
                         what, span, t->element_bytes, t->offset, limit);
    return TCTL_OK;
}

tctl_status tctl_array_begin(const tctl_array *t, tctl_array_reader *ret, tctl_error *err)
{
    tctl_array_reader r = {.tensor = t};
    uint64_t span = 0;
    if (t->strides != NULL) {
        bool fits = span_of(t, &span) && multiply(span, t->element_bytes, &span) && span <= TCTL_GATHER_BYTES;
        if (!fits)
            return tctl_fail(err, TCTL_EUNSUPPORTED,
                             "a tensor that is not in C order spans %" PRIu64 " bytes", span);
        r.span = malloc((size_t)span);
        if (r.span == NULL)
            return tctl_fail_memory(err, (size_t)span);
        tctl_status st = tctl_source_read(t->source, t->offset, r.span, (size_t)span, err);
        if (st != TCTL_OK) {
            free(r.span);
            return st;
        }
    }
    *ret = r;
    return TCTL_OK;
}

void tctl_array_end(tctl_array_reader *r)
{
    free(r->span);
    r->span = NULL;
}

static void copy_elements(unsigned char *into, const unsigned char *from, size_t step, size_t size,
                          uint64_t n)
{
    for (uint64_t i = 0; i < n; i++, into += size, from += step) {
        switch (size) { /* so that the usual sizes are one load and one store */
        case 2:
            memcpy(into, from, 2);
            break;
        case 4:
            memcpy(into, from, 4);
            break;
        case 8:
            memcpy(into, from, 8);
            break;
        default:
            memcpy(into, from, size);
        }
    }
}

/* `n` elements from element `first` of the shape's order, by runs of the last dimension. */
static void gather(const tctl_array_reader *r, uint64_t first, uint64_t n, unsigned char *into)
{
    const tctl_array *t = r->tensor;
    size_t size = t->element_bytes;
    while (n > 0) {
        uint64_t rest = first, at = 0;
        uint64_t last = t->shape[t->rank - 1], run = last - first % last;
        for (uint32_t i = t->rank; i-- > 0; rest /= t->shape[i])
            at += rest % t->shape[i] * t->strides[i];
        run = run < n ? run : n;
        copy_elements(into, r->span + at * size, (size_t)t->strides[t->rank - 1] * size, size, run);
        into += run * size;
        first += run;
        n -= run;
    }
}

static void swap(unsigned char *bytes, size_t n, size_t word)
{
    for (size_t at = 0; at + word <= n; at += word) {
        for (size_t i = 0; i < word / 2; i++) {
            unsigned char other = bytes[at + word - 1 - i];
            bytes[at + word - 1 - i] = bytes[at + i];
            bytes[at + i] = other;
        }
    }
}

tctl_status tctl_array_next(tctl_array_reader *r, void *into, size_t room, size_t *ret_n, tctl_error *err)
{
    const tctl_array *t = r->tensor;
    uint64_t n = t->n_elements - r->next;
    tctl_status st = TCTL_OK;
    *ret_n = 0;
    if (n == 0 || t->element_bytes == 0)
        return TCTL_OK;
    TCTL_BUG_IF(room < t->element_bytes);
    if (n > room / t->element_bytes)
        n = room / t->element_bytes;
    if (r->span != NULL)
        gather(r, r->next, n, into);
    else
        st = tctl_source_read(t->source, t->offset + r->next * t->element_bytes, into,
                              (size_t)n * t->element_bytes, err);
    if (st != TCTL_OK)
        return st;
    if (t->swap_bytes > 1)
        swap(into, (size_t)n * t->element_bytes, t->swap_bytes);
    r->next += n;
    *ret_n = (size_t)n;
    return TCTL_OK;
}
